"""Checks of a release by what shares no code with its accounting."""
