"""The client half of what every method may ask: records, counts, marginals."""
