"""Fusion by mean embedding: one noisy sum of random features, then a generator trained to match it.

Harder, Adamczewski, Park 2021, "DP-MERF: Differentially private mean embeddings with random
features for practical privacy-preserving data generation".
"""
