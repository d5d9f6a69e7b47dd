"""Methods kept as their papers have them; only the registry imports them."""
