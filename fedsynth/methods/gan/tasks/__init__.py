"""The client half: gradients of records, or steps of local training."""
