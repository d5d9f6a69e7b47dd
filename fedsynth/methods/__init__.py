"""Methods: a room each, and what they share in sampling and training."""
