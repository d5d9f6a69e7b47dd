"""An owner's half: what it answers, and what it never answers, whatever the server says."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from fedsynth.errors import ConfigError, FederationError, PrivacyError
from fedsynth.federation.secure import frames, keys, masks
from fedsynth.federation.secure.frames import Part, Step
from fedsynth.federation.secure.keys import PublicKeys, Secrets
from fedsynth.federation.secure.rules import Roster
from fedsynth.federation.secure.state import Session, Standing, State


class Party:
    """One owner in the sums of one job.

    Args:
        name: the owner's own, in the roster.
        identity: its secret Ed25519 key, 32 bytes.
        roster: the owners and rules that it has on file itself; none of it comes from the server.
        keep: stores the state for good, before the answer that it belongs to is given; what it
            raises is raised, and no answer is given.
        state: of a party that resumes: what was kept last. An older one would forget openings.
        earliest: the first round that it takes part in, where no state was kept: one behind the
            last that the owner's ledger knows.

    Raises:
        ConfigError: the roster has another key of that name.
        PrivacyError: the state is damaged, or of another owner, job or roster.
    """

    def __init__(
        self,
        name: str,
        identity: bytes,
        roster: Roster,
        keep: Callable[[bytes], None],
        state: bytes | None = None,
        earliest: int = 0,
    ) -> None:
        if roster.keys.get(name) != masks.identity_of(identity):
            raise ConfigError(f"{name}: the roster has no such owner, or another key of it")
        self._identity, self._roster, self._keep = identity, roster, keep
        self._place = roster.names.index(name)
        self._whose = masks.join(roster.digest, name.encode())
        fresh = State(earliest=earliest)
        self._state = fresh if state is None else State.read(state, self._whose)
        self._made: dict[tuple[bytes, bytes], tuple[Secrets, PublicKeys]] = {}

    @property
    def standing(self) -> Standing:
        """Where it stands, which is no secret."""
        return self._state.standing

    @property
    def state(self) -> bytes:
        """What :attr:`keep` gets with the next answer, as it stands."""
        return self._state.write(self._whose)

    def answer(
        self, request: bytes, contribute: Callable[[int], masks.Vector] | None = None
    ) -> bytes:
        """What a request gets; the same again if it comes again.

        Args:
            contribute: called with a round that asks for masked numbers: uint32 or uint64 [dim],
                noise included, and the same in all attempts at the round.

        Raises:
            FederationError: it is no request, or none that fits what went before.
            PrivacyError: the answer could open more than one sum of a round.
        """
        state, answers = self._state, []
        for part in frames.read(request):
            if self._roster.rules.needs_all and part.step not in (Step.KEYS, Step.MASKED):
                raise PrivacyError(f"{part.name}: where all owners are needed nothing is dealt")
            if part.step is Step.KEYS:
                self._demand(part)
                state = state.begin(part, os.urandom(masks.KEY))
            session = state.find(part)
            context = self._roster.context(part.round, part.attempt)
            secrets, shown = self._make(session.seed, context)
            match part.step:
                case Step.KEYS:
                    answer = [shown.write()]
                case Step.SHARES:
                    session, *answer = self._deal(part, session, context, secrets, shown)
                case Step.MASKED:
                    session, *answer = self._mask(part, session, (secrets, shown), contribute)
                case Step.LIVING:
                    session, *answer = self._sign(part, session, context)
                case Step.UNMASK:
                    answer = self._unmask(part, session, context, secrets)
            state = state.move(session, part.step)
            answers.append(replace(part, fields=tuple(answer)))
        self._keep(state.write(self._whose))
        self._state = state
        # What no step can ask for any more is made of nothing that stays.
        seeds = {one.seed for one in (state.current, state.coming) if one}
        self._made = {key: made for key, made in self._made.items() if key[0] in seeds}
        return frames.write(answers)

    def _make(self, seed: bytes, context: bytes) -> tuple[Secrets, PublicKeys]:
        """An attempt's secrets, and what is shown of them."""
        if (seed, context) not in self._made:
            secrets = Secrets.make(seed, context)
            self._made[seed, context] = secrets, secrets.show(self._identity, context)
        return self._made[seed, context]

    def _demand(self, part: Part) -> None:
        """Raise PrivacyError where the server has other owners or rules in mind than this owner."""
        digest, numbers = part.expect(masks.KEY, 3)
        own = self._roster.rules.numbers
        if numbers != own:
            asked, insisted = (", ".join(map(str, one)) for one in (numbers, own))
            raise PrivacyError(
                f"the server asks for cohort, threshold, curious of {asked}; this owner insists on "
                f"{insisted}"
            )
        if digest != self._roster.digest:
            raise PrivacyError("the server has another job, or other owners or keys on file")

    def _deal(
        self, part: Part, session: Session, context: bytes, secrets: Secrets, own: PublicKeys
    ) -> tuple[Session, bytes, bytes]:
        """Shares of this owner's secrets, a box for each other owner that has keys."""
        members, public = part.expect(self._cohort, None)
        takers = self._read(members, range(self._cohort))
        others = [place for place in takers if place != self._place]
        if not session.takers:
            shown = self._check(public, takers, context, own)
            agreed = masks.agree(secrets.sealing, [shown[place].sealing for place in others])
            session = replace(session, agreed=b"".join(agreed))
        session = session.fix(takers=members, public=public)
        dealt = secrets.deal(self._roster.rules.threshold, others)
        boxes = [
            masks.seal(keys.box_key(agreed, context, self._place, taker), b"".join(shares))
            for (taker, agreed), shares in zip(self._agreed(session), dealt, strict=True)
        ]
        return session, frames.write_members(others, self._cohort), b"".join(boxes)

    def _check(
        self, public: bytes, takers: Sequence[int], context: bytes, own: PublicKeys
    ) -> dict[int, PublicKeys]:
        """The public keys of those who take part, if every one signed its own for this attempt."""
        shown = keys.read_public(public, takers)
        if shown[self._place] != own:
            raise PrivacyError("the server shows other keys of this owner than its own")
        different = {key for one in shown.values() for key in (one.sealing, one.masking)}
        if len(different) < 2 * len(shown):
            raise PrivacyError("two owners of an attempt have the same key")
        for place, one in shown.items():
            # Its own, which it signed itself, are the same to the byte.
            if place != self._place and not one.is_signed(self._roster.key(place), context):
                raise PrivacyError(f"{self._roster.names[place]} did not sign the keys shown of it")
        return shown

    def _mask(
        self,
        part: Part,
        session: Session,
        made: tuple[Secrets, PublicKeys],
        contribute: Callable[[int], masks.Vector] | None,
    ) -> tuple[Session, bytes, bytes]:
        """The contribution under one mask with each owner that dealt, and this owner's own.

        Where all are needed all have one with each other, which cancel in the only sum that there
        is; so nobody needs an own one.
        """
        context, (secrets, own) = self._roster.context(part.round, part.attempt), made
        session, places = self._fix_others(part, session, own)
        if contribute is None:
            raise FederationError(f"{part.name} asks for a contribution, and there is none")
        kind, masked = frames.copy_vector(contribute(part.round))
        digest = hashlib.sha256(kind)
        digest.update(masked.data)
        session = session.fix(digest=digest.digest())
        shown = keys.read_public(session.public, self._known(part, session.takers))
        others = [place for place in places if place != self._place]
        agreed = masks.agree(
            keys.masking_key(secrets.masking), [shown[place].masking for place in others]
        )
        needs_all = self._roster.rules.needs_all
        added = [] if needs_all else [keys.own_mask(secrets.own, context)]
        removed = list[bytes]()
        for place, secret in zip(others, agreed, strict=True):
            side = added if self._place < place else removed
            side.append(keys.pair_mask(secret, context, self._place, place))
        masks.mask(masked, added, removed)
        return session, kind, masked.tobytes()

    def _fix_others(
        self, part: Part, session: Session, own: PublicKeys
    ) -> tuple[Session, tuple[int, ...]]:
        """With whom there are masks: those that dealt, or, where all are needed, all, by their
        keys."""
        members, told = part.expect(self._cohort, None)
        if not self._roster.rules.needs_all:
            dealers = self._read(members, self._known(part, session.takers))
            frames.cut(told, keys.BOX, len(dealers) - 1)
            return session.fix(dealers=members, boxes=told), dealers
        everybody = self._read(members, range(self._cohort))
        if not session.takers:
            self._check(told, everybody, self._roster.context(part.round, part.attempt), own)
        return session.fix(takers=members, public=told), everybody

    def _sign(self, part: Part, session: Session, context: bytes) -> tuple[Session, bytes]:
        """A signature of whose masked numbers are in the sum; of one such list an attempt."""
        (members,) = part.expect(self._cohort)
        self._read(members, self._known(part, session.dealers))
        session = session.fix(living=members)
        return session, masks.sign(self._identity, _believed(session, context))

    def _unmask(
        self, part: Part, session: Session, context: bytes, secrets: Secrets
    ) -> list[bytes]:
        """For each dealer one share: of its own mask if it is living, else of its masking key."""
        members, signatures = part.expect(self._cohort, None)
        living = self._known(part, session.living)
        signers = self._read(members, living, own=False)
        message = _believed(session, context)
        signed = zip(signers, frames.cut(signatures, masks.SIGNATURE, len(signers)), strict=True)
        for place, signature in signed:
            if place == self._place:
                # Signatures are deterministic, and to make one is cheaper than to check it.
                good = signature == masks.sign(self._identity, message)
            else:
                good = masks.is_signed(self._roster.key(place), signature, message)
            if not good:
                raise PrivacyError(
                    f"{self._roster.names[place]} signed another list of whose numbers are in the "
                    "sum; nothing is opened"
                )
        given = self._hand_over(session, context, secrets, living)
        return [frames.write_members(given, self._cohort), b"".join(given.values())]

    def _hand_over(
        self, session: Session, context: bytes, secrets: Secrets, living: Collection[int]
    ) -> dict[int, bytes]:
        """Shares about whom they are; none about a dealer whose box holds none."""
        dealers = frames.read_members(session.dealers, self._cohort)
        others = [place for place in dealers if place != self._place]
        boxes = frames.cut(session.boxes, keys.BOX, len(others))
        agreed = dict(self._agreed(session))
        (own,) = secrets.deal(self._roster.rules.threshold, [self._place])
        opened: dict[int, bytes | None] = {self._place: b"".join(own)}
        for place, box in zip(others, boxes, strict=True):
            key = keys.box_key(agreed[place], context, place, self._place)
            opened[place] = masks.unseal(key, box)
        return {
            place: shares[keys.SHARE :] if place in living else shares[: keys.SHARE]
            for place in dealers
            if (shares := opened[place])
        }

    def _read(self, field: bytes, among: Collection[int], *, own: bool = True) -> tuple[int, ...]:
        """A list of owners that says nothing false: threshold or more of these, this one too."""
        members = frames.read_members(field, self._cohort)
        if not set(members) <= set(among) or (own and self._place not in members):
            raise FederationError("a list of owners names others than it may, or not this one")
        if len(members) < self._roster.rules.threshold:
            raise FederationError(
                f"a list of {len(members)} owners is below the threshold of "
                f"{self._roster.rules.threshold}"
            )
        return members

    def _known(self, part: Part, field: bytes) -> tuple[int, ...]:
        """A list that an earlier step of the attempt fixed."""
        if not field:
            raise FederationError(f"{part.name} came before the step that it builds on")
        return frames.read_members(field, self._cohort)

    def _agreed(self, session: Session) -> list[tuple[int, bytes]]:
        """What this owner's sealing key agrees on with each other owner that has keys."""
        takers = frames.read_members(session.takers, self._cohort)
        others = [place for place in takers if place != self._place]
        return list(zip(others, frames.cut(session.agreed, masks.KEY, len(others)), strict=True))

    @property
    def _cohort(self) -> int:
        return self._roster.rules.cohort


def _believed(session: Session, context: bytes) -> bytes:
    lists = (session.takers, session.public, session.dealers, session.living)
    return keys.believed(context, *lists)
