"""Fusion learning as published, and its hybrid (paper 004)."""
