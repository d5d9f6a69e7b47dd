"""A Gaussian copula for every class, learned from noisy second moments."""
