"""Methods on noisy marginals: AIM, MST, PrivBayes."""
