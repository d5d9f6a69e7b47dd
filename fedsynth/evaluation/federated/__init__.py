"""Scores of synthetic rows against owners' data that are never pooled, through the one door."""

from fedsynth.evaluation.federated.estimates import Figure, Scores
from fedsynth.evaluation.federated.result import FederatedScores
from fedsynth.evaluation.federated.scoring import federated_scores
from fedsynth.evaluation.federated.spread import Across

__all__ = ["Across", "FederatedScores", "Figure", "Scores", "federated_scores"]
