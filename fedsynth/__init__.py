"""fedsynth: private synthetic data from owners who may not pool their rows."""
