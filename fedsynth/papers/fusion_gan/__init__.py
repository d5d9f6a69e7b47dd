"""Fusion GAN (paper 004, Algorithm 6), as published and with privacy of records."""
