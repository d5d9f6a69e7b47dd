"""The client half: gradients of records, or an epoch of local training."""
