"""Clients simulated in one process: partitions, state, progress."""
