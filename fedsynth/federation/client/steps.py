"""A client's own training: what it learns of its rows is a number of noisy sums, known before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.site import Board, Site
from fedsynth.federation.request import Request
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.clipping import Rows, clip_and_sum

Contribution = Callable[[Site, NDArray[np.int64]], Rows]
"""From a site and the positions of its drawn records to one row for each of them, not clipped."""


class Steps:
    """The door inside a client, for a task that trains there (DP-SGD; Abadi et al. 2016).

    A training task sees this instead of its site, so whatever it sends is made of noisy sums: each
    draws records in secret, clips their rows, and carries all of the noise.

    Args:
        site: whose records they are.
        request: with the terms of every step and their number.
        noise: where samples and noise come from.
    """

    def __init__(self, site: Site, request: Request, noise: NoiseSource) -> None:
        self._site, self._request, self._noise = site, request, noise
        self.left = request.steps or 0

    @property
    def client(self) -> str:
        """The client's name, which is public."""
        return self._site.name

    @property
    def board(self) -> Board:
        """What the server announced."""
        return self._site.board

    @property
    def coins(self) -> NoiseSource:
        """Randomness that nobody else may predict."""
        return self._site.coins

    def sum(self, contribution: Contribution) -> NDArray[np.float64]:
        """One noisy sum over a fresh sample of the records.

        Args:
            contribution: of the drawn records, perhaps of none. A row may depend on its own record
                and on what is public or came out of earlier steps, and on nothing else.

        Raises:
            PrivacyError: more steps than were charged, or more rows than records.
        """
        if not self.left:
            raise PrivacyError(
                f"task {self._request.task}: all {self._request.steps} steps are taken"
            )
        self.left -= 1
        terms = self._request.terms
        sample = drawn(self._site, self._request, self._noise)
        rows = contribution(self._site, sample)
        if len(rows) > len(sample):
            raise PrivacyError(f"task {self._request.task}: more rows than {terms.unit}s")
        total = clip_and_sum(rows, terms.clip, terms.norm)
        return terms.client_noised(total, self._noise)


def drawn(site: Site, request: Request, noise: NoiseSource) -> NDArray[np.int64]:
    """Positions of a site's records that take part: at the record level drawn in secret."""
    terms = request.terms
    if terms.protects.per_record:
        return terms.sampling.draw(site.records, noise)
    return np.arange(site.records)
