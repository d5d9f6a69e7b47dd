"""Synthetic rows evaluated: fidelity, utility, privacy attacks, and a report of them."""
