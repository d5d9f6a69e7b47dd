"""What methods with discriminators share: a network that learns, rows of gradients, a generator's
training."""
