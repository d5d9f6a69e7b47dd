"""The teachers' votes: each labels all queries, and their noisy sum is one release.

PATE (Papernot et al. 2017, "Semi-supervised knowledge transfer for deep learning from private
training data"; with Gaussian noise: Papernot et al. 2018, "Scalable private learning with PATE").
A teacher's row is one-hot on each of Q queries: its L2 norm is sqrt(Q), its L1 norm Q. A record
exchanges its teacher's row for another, which moves the sum by at most sqrt(2 Q), or 2 Q in L1: the
papers' sqrt(2) and 2 for one query. Queries are charged for whatever the votes are: accounting that
depends on the votes would itself have to be released privately.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedsynth.federation.client.groups import GROUPS
from fedsynth.federation.server.channel import Channel
from fedsynth.methods.pate.tasks import VOTES
from fedsynth.privacy.terms import Terms
from fedsynth.queries.votes import Votes

Floats = NDArray[np.float64]


def ask_votes(
    channel: Channel, terms: Terms, queries: Floats, classes: int, teachers: int, steps: int
) -> Votes:
    """Release the votes on queries [Q, width]."""
    sent = queries.astype(np.float32)
    released = channel.sum(
        VOTES.name,
        terms,
        len(queries) * classes,
        arrays={"queries": sent},
        settings={GROUPS: teachers, "steps": steps},
    )
    return Votes.of(released, terms, len(queries), teachers)
