"""PATE-GAN: the clients' discriminators are the teachers of the one that a generator faces."""

from fedsynth.synthesizers.pategan.settings import PATEGANSettings
from fedsynth.synthesizers.pategan.synthesizer import PATEGAN

__all__ = ["PATEGAN", "PATEGANSettings"]
