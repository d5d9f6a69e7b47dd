"""PATE: private aggregation of teacher ensembles, with the clients as teachers."""

from fedsynth.methods.pate.settings import PATESettings
from fedsynth.methods.pate.synthesizer import PATE

__all__ = ["PATE", "PATESettings"]
