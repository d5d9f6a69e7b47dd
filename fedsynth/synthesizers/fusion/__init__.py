"""Fusion learning: one message a client, regeneration and training at the server (paper 004)."""
