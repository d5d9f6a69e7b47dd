"""What is measured of synthetic rows: fidelity and utility."""
