"""Noise beyond the standard mechanisms, a module each."""
