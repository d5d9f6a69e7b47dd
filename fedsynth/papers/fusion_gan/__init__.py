"""Fusion GAN (paper 004, Algorithm 6), as published and with privacy of records."""

from fedsynth.papers.fusion_gan.settings import FusionGANSettings
from fedsynth.papers.fusion_gan.synthesizer import FusionGAN

__all__ = ["FusionGAN", "FusionGANSettings"]
