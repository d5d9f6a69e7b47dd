"""What methods share in training networks: batches, learners, generators, watches."""
