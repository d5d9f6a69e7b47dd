"""The terms of messages that are sent as they are, as papers publish them."""

from __future__ import annotations

from fedsynth.privacy.terms import Terms

# A clip is part of all terms; numbers below 1e100 never come near this one, so it bounds nothing.
_NO_BOUND = 1e150


def unprotected_terms() -> Terms:
    """Of a client's message as it is, with no noise: its epsilon is infinite."""
    return Terms(unit="client", trust="local", clip=_NO_BOUND, noise_multiplier=0.0)
