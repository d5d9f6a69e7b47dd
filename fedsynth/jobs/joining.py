"""A job at one of its owners: its site file, rows and account, and the server that it dials."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from fedsynth.agreed import Agreed, plain, suggestion
from fedsynth.errors import Caution, ConfigError, FedsynthError, warn_of
from fedsynth.federation.keys import Keys, demand_name, load_keys
from fedsynth.federation.runtimes.courier import Parcel
from fedsynth.federation.runtimes.messages import open_parcel
from fedsynth.federation.runtimes.rules import Rules
from fedsynth.federation.runtimes.site import Site
from fedsynth.federation.runtimes.stream import attend
from fedsynth.federation.secure.masks import identity_of
from fedsynth.federation.secure.rules import Rules as Sums
from fedsynth.federation.simulation.repeats import key_of
from fedsynth.federation.simulation.simulation import Simulation
from fedsynth.federation.wire import Frame, read, write
from fedsynth.jobs.data import read_owner, split_rows, take_rows
from fedsynth.jobs.inputs import OwnData, Place, expand_path
from fedsynth.jobs.sections import Count, Section, section
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.signatures import read_keys, read_secret
from fedsynth.queries.options import OUTSIDE
from fedsynth.registry import METHODS
from fedsynth.schema import load_schema
from fedsynth.yaml_files import read_yaml

JOBS = ".jobs"
"""What the name of the folder ends in that lies beside an account: what is kept of jobs."""
_MEBI = 1 << 20
_HEX = re.compile(r"[0-9A-Fa-f]{64}")

Epsilon = Annotated[float, Field(gt=0, description="a number above 0, or inf")]
Delta = Annotated[float, Field(gt=0, lt=1, description="a number between 0 and 1")]


def _spell_peers(value: object) -> object:
    """Names are texts, whatever YAML took them for; so are keys of digits alone."""
    given = plain(value)
    return {str(n): str(k) for n, k in given.items()} if isinstance(given, dict) else given


class Account(Section):
    """What all jobs together may cost: its file, and the most that it ever carries, set once."""

    place: ClassVar[str] = "account"

    path: Place
    epsilon: Epsilon
    delta: Delta = 1e-5


class Limits(Section):
    """Of what a server may ask: the size of a message in MiB, numbers in an answer, rounds of a
    job, and hours of silence after which the site gives up."""

    place: ClassVar[str] = "rules: limits"

    message: Annotated[int, Field(ge=1, le=64, description="MiB, from 1 to 64")] = 64
    numbers: Count = 10_000_000
    rounds: Count = 10_000
    wait: Annotated[float, Field(gt=0, description="hours above 0")] = 24.0


class SiteRules(Section):
    """What an owner insists on: :class:`fedsynth.federation.runtimes.rules.Rules`."""

    place: ClassVar[str] = "rules"

    unit: Annotated[str, Field(description="record, person or client")] = "record"
    trust: Annotated[str, Field(description="central, distributed or local")]
    job_epsilon: Epsilon
    job_delta: Delta = 1e-5
    methods: Annotated[tuple[str, ...] | None, Field(description="a list of methods")] = None
    cohort: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 1
    pad: Annotated[float, Field(ge=0, le=3600, description="seconds, from 0 to 3600")] = 0.0
    peers: Annotated[
        dict[str, str] | None,
        BeforeValidator(_spell_peers),
        Field(description="owners' public keys by their names: NAME.pub, or 64 hex digits"),
    ] = None
    threshold: Annotated[int, Field(ge=1, description="a whole number of at least 1")] | None = None
    curious: Annotated[int, Field(ge=0, description="a whole number, 0 or more")] | None = None
    limits: Annotated[Limits, section(Limits, "limits"), Field(description="a section")] = Limits()

    @model_validator(mode="after")
    def _check_known(self) -> SiteRules:
        for name in self.methods or ():
            if name not in METHODS:
                raise ValueError(f"`methods`: {name!r} is not known{suggestion(name, METHODS)}")
        self.budget  # noqa: B018
        if not self.peers:
            given = [name for name in ("threshold", "curious") if getattr(self, name) is not None]
            if given or self.peers is not None:
                raise ValueError(
                    f"`{(given or ['peers'])[0]}` needs `peers` that are named: all other owners "
                    "of jobs under distributed trust, each with its public key"
                )
            return self
        curious = self.curious or 0
        if self.threshold is not None:
            # As a job with these owners would have to be.
            Sums(len(self.peers) + 1, self.threshold, curious)
        return self

    @property
    def budget(self) -> Budget:
        """The most that one job may cost."""
        return Budget(self.job_epsilon, delta=self.job_delta, unit=self.unit, trust=self.trust)

    @property
    def words(self) -> str:
        """What jobs are joined, and no others."""
        methods = ", ".join(self.methods or ()) or "any method"
        owners = f"{self.cohort} owners or more"
        if self.peers:
            owners = f"{len(self.peers) + 1} owners, who are it and {', '.join(self.peers)}"
        return (
            f"jobs of {methods}; that protect a {self.unit} under trust {self.trust} or a stricter "
            f"one, at epsilon {self.job_epsilon:g} and delta {self.job_delta:g} at the most; of "
            f"{owners}; of {self.limits.rounds:,} rounds at the most; under its own schema alone"
        )


class SiteFile(Agreed):
    """An owner's site file. Attributes are its keys; `schema_` is the key `schema`."""

    fault: ClassVar[type[FedsynthError]] = ConfigError

    name: Annotated[str, BeforeValidator(lambda given: str(plain(given)))]
    server: Annotated[str | None, Field(description="HOST:PORT")] = None
    keys: Place = None
    identity: Place = None
    data: Annotated[OwnData, section(OwnData, "data"), Field(description="a section")]
    schema_: Annotated[str, Field(alias="schema", description="a path")]
    holdout: Annotated[float, Field(ge=0, lt=1, description="a share from 0 to below 1")] = 0.0
    outside: Annotated[float, Field(ge=0, le=1, description="a share from 0 to 1")] = OUTSIDE
    account: Annotated[Account, section(Account, "account"), Field(description="a section")]
    rules: Annotated[SiteRules, section(SiteRules, "rules"), Field(description="a section")]

    @classmethod
    def whereabouts(cls, values: Any) -> str:
        return "site"

    @model_validator(mode="after")
    def _check_whole(self) -> SiteFile:
        demand_name(self.name)
        if self.data.builtin is not None or (self.data.path is None and self.data.url is None):
            raise ValueError("`data` needs `path`, or `url` with `query`: this owner's own rows")
        if self.name in (self.rules.peers or {}):
            raise ValueError(f"`rules: peers` are the others: leave {self.name!r} out of them")
        return self

    @property
    def missing(self) -> str | None:
        """What it lacks to take part under distributed trust; None where it lacks nothing."""
        lacks = {
            "`identity` (the private key of `fedsynth key NAME`)": self.identity is None,
            "`rules: peers` (the other owners' public keys)": not self.rules.peers,
        }
        found = [what for what, lacking in lacks.items() if lacking]
        return " and ".join(found) if found else None


def load_site(path: Path) -> SiteFile:
    """Read a site file. Raises ConfigError, naming the file and the key at fault."""
    content = read_yaml(path, ConfigError)
    try:
        return SiteFile(**{str(key): entry for key, entry in content.items()})
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


@contextmanager
def open_site(
    file: SiteFile, base: Path, caution: Caution = warn_of, *, insecure: bool = False
) -> Iterator[Site]:
    """An owner's site: rows read and held against the schema, account opened.

    Args:
        base: what the file's paths are relative to.
        caution: called with what its owner is to know of its table.
        insecure: whether jobs are joined that promise nothing, for a trial.

    Raises:
        ConfigError, DataError: rows or schema cannot be used.
        PrivacyError: the account is in use, or was begun with another budget.
    """
    schema = load_schema(expand_path(file.schema_, base))
    rows = read_owner(file.name, file.data, file.data, schema, base, caution)
    key = key_of(rows)
    if file.holdout:
        # The same at every start, or rows that were held out would be learned from.
        rows = take_rows(rows, split_rows(rows, schema, file.name, file.holdout, 0)[0])
    told = file.rules
    identity = None if file.identity is None else read_secret(expand_path(file.identity, base))
    rules = Rules(
        budget=told.budget,
        methods=told.methods,
        schema=schema.digest,
        cohort=told.cohort,
        insecure=insecure,
        peers=_peers(told.peers or {}, identity, base),
        threshold=told.threshold or 0,
        curious=told.curious,
        pad=told.pad,
        most_bytes=told.limits.message * _MEBI,
        most_numbers=told.limits.numbers or 0,
        most_rounds=told.limits.rounds or 0,
    )
    account, path = file.account, expand_path(str(file.account.path), base)
    # The weakest trust: an owner's rules say what each job needs.
    budget = Budget(account.epsilon, delta=account.delta, unit=told.unit, trust="central")
    if not math.isfinite(told.job_epsilon) and budget.private:
        raise ConfigError(
            "rules: `job_epsilon` is infinite, and no account of finite epsilon carries it"
        )
    # What no allowed method asks is not known here.
    for name in told.methods or METHODS:
        METHODS[name]
    ledger = Ledger.of_owner(path, budget)
    try:
        owner = Simulation({file.name: rows}, schema)
        (client,) = owner.clients(
            NoiseSource(), {file.name: ledger}, rules.floor, file.outside, caution
        )
        digest = hashlib.sha256(repr((key, file.holdout)).encode()).hexdigest()
        site = Site(client, rules, path.with_name(path.name + JOBS), digest, identity)
        try:
            yield site
        finally:
            site.close()
    finally:
        ledger.close()


def answer_parcel(
    path: Path,
    parcel: Parcel,
    caution: Caution = warn_of,
    tell: Callable[[str], None] = print,
    *,
    insecure: bool = False,
) -> list[bytes]:
    """What an owner's site says to frames of a message, in a process that ends with it; where it
    is to dial, once the job is finished.

    Args:
        path: of the site file.

    Raises:
        FedsynthError: as :func:`open_site` and :func:`join`; what it says is for the owner alone.
    """
    if len(parcel) == 1 and (frame := read(parcel[0])).kind == "start":
        finished = join(path, caution, tell, insecure=insecure, token=frame.get("token", str))
        return [write(Frame("receipt", {"job": job})) for job in finished]
    file, base = load_site(path), path.parent
    with open_site(file, base, caution, insecure=insecure) as site:
        return open_parcel(site, parcel)


def _peers(told: Mapping[str, str], identity: bytes | None, base: Path) -> dict[str, bytes]:
    """Public keys of the other owners, of their files or as they stand there.

    Raises:
        ConfigError: one is none, another's, or this site's own.
    """
    own = {} if identity is None else {identity_of(identity): "this site"}
    peers = dict[str, bytes]()
    for name, key in told.items():
        if _HEX.fullmatch(key):
            peers[name] = bytes.fromhex(key)
        else:
            path = expand_path(key, base)
            if path.is_dir():
                raise ConfigError(f"site: rules: peers: {name}: {path} is a folder, not a key")
            (found,) = read_keys(path)
            peers[name] = bytes.fromhex(found)
        before = own.setdefault(peers[name], name)
        if before != name:
            raise ConfigError(
                f"site: rules: peers: {name} has the same key as {before}; each owner needs its own"
            )
    return peers


def keys_of(file: SiteFile, base: Path, *, insecure: bool = False) -> Keys | None:
    """A site's keys; None without encryption.

    Raises:
        ConfigError: no keys, another's, or keys that are not to be used.
    """
    if insecure:
        return None
    if file.keys is None:
        raise ConfigError(
            "site: `keys` is needed: the folder of this site's keys (`fedsynth keys`); for a trial "
            "on one machine --insecure does without"
        )
    keys = load_keys(expand_path(file.keys, base))
    if keys.name != file.name:
        raise ConfigError(
            f"site: `name` is {file.name!r}, and the certificate in `keys` is of {keys.name!r}"
        )
    return keys


def join(
    path: Path,
    caution: Caution = warn_of,
    tell: Callable[[str], None] = print,
    *,
    insecure: bool = False,
    stay: bool = False,
    over: Event | None = None,
    token: str = "",
) -> tuple[str, ...]:
    """Serve a job as an owner: dial, answer, dial again, until the server has finished it.

    Args:
        path: of the site file.
        tell: called with how the stream fares.
        stay: for job after job, until it is over.
        over: set by whoever ends it before.
        token: as of :func:`attend`.

    Returns:
        The jobs that were finished.

    Raises:
        FederationError: the server sent the site away, or was silent for too long.
        ConfigError, DataError, PrivacyError: as :func:`open_site`.
    """
    file, base = load_site(path), path.parent
    if file.server is None:
        raise ConfigError(f"{path}: site: `server` is needed: HOST:PORT of the server to dial")
    keys = keys_of(file, base, insecure=insecure)
    with open_site(file, base, caution, insecure=insecure) as site:
        wait = 3600 * file.rules.limits.wait
        attend(site, file.server, keys, tell=tell, over=over, stay=stay, wait=wait, token=token)
        return tuple(site.finished)
