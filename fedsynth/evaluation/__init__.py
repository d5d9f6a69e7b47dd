"""What synthetic rows are worth and what they give away: fidelity, utility, attacks, a report."""
