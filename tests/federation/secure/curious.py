"""What a curious server learns from the frames that it saw, exactly.

Masks of different keys are taken as independent and uniform, as those of a cipher are to whoever
has no key. `formal_masks` then writes a masked contribution down as what it is, an integer
combination of contributions and masks, and `learn` finds every combination of honest contributions
that the frames give away once all masks are taken off whose keys the server can work out. Two
worlds look the same to it if and only if all of these have the same values in both.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from fedsynth.federation.secure import frames, keys, masks, shamir
from fedsynth.federation.secure.frames import Step
from fedsynth.federation.secure.keys import PublicKeys, Secrets
from fedsynth.federation.secure.rules import Roster

DIM = 128
MASKING, OWN = 0, 1


class Formal:
    """Vectors with a coordinate for each contribution and each mask.

    Args:
        ignored: the key of masks that are zero.
    """

    def __init__(self, ignored=None):
        self.names, self.ignored = {}, ignored

    def index(self, name):
        return self.names.setdefault(name, len(self.names))

    def contribution(self, place, round):
        values = np.zeros(DIM, "<u8")
        values[self.index((place, round))] = 1
        return values

    def mask(self, values, added, removed):
        """In place of :func:`masks.mask`."""
        for keys_, sign in ((added, 1), (removed, -1)):
            for key in keys_:
                if key != self.ignored:
                    values.view(np.int64)[self.index(key)] += sign


@dataclass
class Server:
    """All that a server and the curious owners saw.

    Attributes:
        corrupt: places of owners that tell it all that they know.
    """

    roster: Roster
    formal: Formal
    corrupt: frozenset[int] = frozenset()
    public: dict = field(default_factory=dict)
    shares: dict = field(default_factory=lambda: defaultdict(dict))
    living: dict = field(default_factory=dict)
    masked: list = field(default_factory=list)
    secrets: dict = field(default_factory=dict)

    def corrupted(self, place, round, attempt, seed):
        """The secrets of a curious owner of an attempt."""
        context = self.roster.context(round, attempt)
        self.secrets[round, attempt, place] = Secrets.make(seed, context)

    def see(self, place, request, reply):
        """What an owner was asked and answered."""
        cohort = self.roster.rules.cohort
        for asked, part in zip(frames.read(request), frames.read(reply), strict=True):
            name = (part.round, part.attempt)
            match part.step:
                case Step.KEYS:
                    self.public[*name, place] = PublicKeys.read(*part.fields)
                case Step.SHARES:
                    self._unseal(place, part)
                case Step.MASKED if place not in self.corrupt:
                    self.masked.append(frames.read_vector(*part.fields).view(np.int64))
                case Step.LIVING:
                    self.living[*name, place] = frames.read_members(asked.fields[0], cohort)
                case Step.UNMASK:
                    about = frames.read_members(part.fields[0], cohort)
                    for field, given in enumerate(part.fields[1:]):
                        pieces = frames.cut(given, keys.SHARE, len(about))
                        for who, share in zip(about, pieces, strict=True):
                            kind = OWN if who in self.living[*name, place] else MASKING
                            # A second field, which no owner should send, is of the other kind.
                            self._add(name, who, kind ^ field, place, share)

    def _add(self, name, about, kind, helper, share):
        self.shares[*name, about, kind][helper] = int.from_bytes(share)

    def _unseal(self, dealer, part):
        """Shares of both kinds that a dealer dealt to curious owners."""
        name = (part.round, part.attempt)
        takers = frames.read_members(part.fields[0], self.roster.rules.cohort)
        boxes = dict(zip(takers, frames.cut(part.fields[1], keys.BOX, len(takers)), strict=True))
        for taker in [place for place in takers if (*name, place) in self.secrets]:
            sealing = self.secrets[*name, taker].sealing
            (agreed,) = masks.agree(sealing, [self.public[*name, dealer].sealing])
            key = keys.box_key(agreed, self.roster.context(*name), dealer, taker)
            both = masks.unseal(key, boxes[taker])
            self._add(name, dealer, MASKING, taker, both[: keys.SHARE])
            self._add(name, dealer, OWN, taker, both[keys.SHARE :])

    def known_keys(self):
        """Keys of all masks that it can work out, those that were shown or used again included."""
        secrets = {(OWN, one.own) for one in self.secrets.values()}
        secrets |= {(MASKING, one.masking) for one in self.secrets.values()}
        secrets |= set(self._opened())
        contexts = {name[:2]: self.roster.context(*name[:2]) for name in self.public}
        shown = defaultdict(list)
        for name, public in self.public.items():
            shown[public.masking].append(name)
        found = set()
        for kind, secret in secrets:
            if kind == OWN:
                found |= {keys.own_mask(secret, context) for context in contexts.values()}
                continue
            key = keys.masking_key(secret)
            for round, attempt, place in shown[masks.public_of(key)]:
                for other in set(range(self.roster.rules.cohort)) - {place}:
                    if peer := self.public.get((round, attempt, other)):
                        (agreed,) = masks.agree(key, [peer.masking])
                        context = contexts[round, attempt]
                        found.add(keys.pair_mask(agreed, context, place, other))
        return found

    def _opened(self):
        """Secrets about which it has as many shares as the threshold."""
        threshold = self.roster.rules.threshold
        for (*_, kind), shares in self.shares.items():
            if len(shares) >= threshold:
                helpers = sorted(shares)[:threshold]
                weights = shamir.weights(tuple(helper + 1 for helper in helpers))
                secret = shamir.combine([shares[helper] for helper in helpers], weights)
                yield kind, secret.to_bytes(keys.SHARE)[-keys.SECRET :]

    def learn(self):
        """Combinations of honest contributions that it knows the values of.

        Returns:
            A basis in reduced echelon form: each a mapping of (place, round) to a coefficient.
        """
        names = {index: name for name, index in self.formal.names.items()}
        known, rows = self.known_keys(), []
        for numbers in self.masked:
            row = {names[index]: Fraction(int(numbers[index])) for index in np.flatnonzero(numbers)}
            rows.append({name: value for name, value in row.items() if name not in known})
        for name in {name for row in rows for name in row if isinstance(name, bytes)}:
            rows, pivot = _eliminate(rows, name)
            # So what is found is right modulo 2^64 as well.
            assert pivot is None or abs(pivot[name]) == 1
        learned = []
        while rows := [row for row in rows if row]:
            name = min(key for row in rows for key in row)
            rows, pivot = _eliminate(rows, name)
            learned = [_without(row, pivot, name) for row in learned]
            learned.append({key: value / pivot[name] for key, value in pivot.items()})
        return [dict(sorted(row.items())) for row in learned]


def _eliminate(rows, name):
    """The others of the rows, without a name; and the row that was taken for it."""
    pivot = next((row for row in rows if name in row), None)
    return [_without(row, pivot, name) for row in rows if row is not pivot], pivot


def _without(row, pivot, name):
    if name not in row:
        return row
    factor = row[name] / pivot[name]
    less = {key: row.get(key, 0) - factor * pivot.get(key, 0) for key in {*row, *pivot}}
    return {key: value for key, value in less.items() if value}
