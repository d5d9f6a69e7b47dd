from __future__ import annotations

from hypothesis import settings

# Machines differ; no test has a time limit.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
