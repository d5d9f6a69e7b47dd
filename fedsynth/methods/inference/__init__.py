"""One-shot federated inference from noisy sufficient statistics."""
