"""PATE-GAN: the clients' discriminators are the teachers of the one that a generator faces."""

from fedsynth.methods.gan.pategan.settings import PATEGANSettings
from fedsynth.methods.gan.pategan.synthesizer import PATEGAN

__all__ = ["PATEGAN", "PATEGANSettings"]
