"""Fusion by mean embedding: one noisy sum of random features, then a generator trained to match it.

Harder, Adamczewski, Park 2021, "DP-MERF: Differentially private mean embeddings with random
features for practical privacy-preserving data generation".
"""

from __future__ import annotations

from fedsynth.methods.embedding.settings import MeanEmbeddingSettings
from fedsynth.methods.embedding.synthesizer import MeanEmbedding

__all__ = ["MeanEmbedding", "MeanEmbeddingSettings"]
