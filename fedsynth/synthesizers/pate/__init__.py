"""PATE: private aggregation of teacher ensembles, with the clients as teachers."""

from fedsynth.synthesizers.pate.settings import PATESettings
from fedsynth.synthesizers.pate.synthesizer import PATE

__all__ = ["PATE", "PATESettings"]
