"""The server's way to sites in secure sums: who is waited for, and whose keys are whose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from fedsynth.errors import FederationError, PrivacyError
from fedsynth.federation.request import Incident
from fedsynth.federation.secure.masks import KEY

Replies = Iterable[tuple[str, bytes | None]]
"""Owners, and their part in a step as it comes; None of who takes none."""


class Steps:
    """The steps of a round's sum: who did not answer one is not waited for at the next.

    Args:
        ask: has a step asked of owners, by name, and waits for them until a deadline.
        present: who is there.
        incidents: of those who have nothing to give.
        heard: who took part in a step that came with the question.

    Attributes:
        heard: who took part in the last one.
    """

    def __init__(
        self,
        ask: Callable[[Mapping[str, bytes]], Replies],
        present: Callable[[], Sequence[str]],
        incidents: Sequence[Incident],
        heard: Sequence[str],
    ) -> None:
        self._ask, self._present = ask, present
        # Who was not there may be there by now; who was late is at work on something else.
        self._away = {one.client for one in incidents if one.reason.startswith("did not")}
        self._out = {one.client for one in incidents} - self._away
        self.heard = list(heard)

    def exchange(self, requests: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
        """What comes back: :data:`fedsynth.federation.secure.carrying.Exchange`."""
        self.heard = []
        waited = (self._away - set(self._present())) | self._out
        silent = set(requests) - waited
        for name, reply in self._ask({name: requests[name] for name in silent}):
            silent.discard(name)
            if reply is not None:
                self.heard.append(name)
                yield name, reply
        present = set(self._present())
        self._out |= silent & present
        self._away = (self._away - set(self.heard)) | (silent - present)


def agree_keys(owners: Sequence[str], told: Mapping[str, object]) -> dict[str, bytes]:
    """Owners' public keys, of which each site that is there told what it has on file.

    Raises:
        PrivacyError: two of them have different ones.
        FederationError: what one told are none.
    """
    agreed: dict[str, tuple[bytes, str]] = {}
    for name, keys in told.items():
        try:
            if not isinstance(keys, dict) or set(keys) != set(owners):
                raise ValueError("of others")
            found = {owner: bytes.fromhex(keys[owner]) for owner in owners}
            if any(len(key) != KEY for key in found.values()):
                raise ValueError("of another length")
        except (TypeError, ValueError):
            raise FederationError(f"{name} did not tell the keys of all owners") from None
        for owner, key in found.items():
            before, by = agreed.setdefault(owner, (key, name))
            if before != key:
                raise PrivacyError(
                    f"{name} and {by} have different keys of {owner} on file (identity, and peers "
                    "of their site files): one of them was given a wrong one. Nothing was asked of "
                    "anybody, and nothing paid"
                )
    return {owner: agreed[owner][0] for owner in owners}
