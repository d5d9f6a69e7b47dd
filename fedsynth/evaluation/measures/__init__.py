"""What is measured of synthetic rows: fidelity, utility, privacy."""
