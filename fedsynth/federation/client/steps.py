"""A client's own training: what it learns of its rows is a number of noisy sums, known before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.joining import Joiner, demand_order, draw_records
from fedsynth.federation.client.memory import Board
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.clipping import Rows, clip_and_sum

Contribution = Callable[[View, NDArray[np.int64]], Rows]
"""From a client and the positions of its drawn records to one row for each of them, not clipped."""


class Steps:
    """The door inside a client, for a task that trains there (DP-SGD; Abadi et al. 2016).

    A training task sees this instead of its client, so whatever it sends is made of noisy sums:
    each draws records in secret, clips their rows, and carries all of the noise.

    Args:
        client: whose records they are.
        request: with the terms of every step and their number.
        keeps_order: whether a contribution has a row for every record of its sample, in its order.

    Raises:
        PrivacyError: terms under which a step does not carry all of its noise, or hides a client;
            or persons are to be hidden by a task that does not keep the order.
    """

    def __init__(self, client: View, request: Request, keeps_order: bool = False) -> None:
        terms = request.terms
        demand_order(request, keeps_order)
        if not (terms.trusts.alone and terms.protects.per_record):
            # The client's own check: with less than all of the noise in every step, or a row of
            # all its records, what it learned would protect nobody, and no sum mends that.
            raise PrivacyError(
                f"task {request.task}: a client trains for records under local trust alone, where "
                f"each step carries all of the noise; not for a {terms.unit} under {terms.trust}"
            )
        self._client, self._request = client, request
        self.left = request.steps or 0

    @property
    def client(self) -> str:
        """The client's name, which is public."""
        return self._client.name

    @property
    def board(self) -> Board:
        """What the server announced."""
        return self._client.board

    @property
    def coins(self) -> NoiseSource:
        """Randomness that nobody else may predict."""
        return self._client.coins

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
        sample = draw_records(self._client, self._request)
        rows = contribution(self._client, sample)
        if len(rows) > len(sample):
            raise PrivacyError(f"task {self._request.task}: more rows than {terms.unit}s")
        joiner = Joiner(self._client, sample, self._request)
        total = clip_and_sum(joiner.join(rows), terms.clip, terms.norm)
        joiner.demand_all()
        return terms.client_noised(total, self.coins)
