"""The client half: gradients of records, or some epochs of local training."""
