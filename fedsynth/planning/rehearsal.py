"""A job on invented rows: how long it takes here, and how much memory."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedsynth.agreed import demand_whole
from fedsynth.encoding.nominal import nominal_encoding
from fedsynth.errors import ConfigError
from fedsynth.federation.simulation.partitions import partition
from fedsynth.methods.fitting import Method
from fedsynth.planning.warnings import settle_two
from fedsynth.privacy.budget import Budget
from fedsynth.progress import Report
from fedsynth.schema import Schema
from fedsynth.views import spell_bytes

# Of rows that hang together: a column's frequencies in a group are its own times e^normal.
_GROUPS = 5


@dataclass(frozen=True)
class Rehearsal:
    """What a job on invented rows took on this machine, with all clients in one process.

    Attributes:
        records: invented.
        seconds: on the clock, of the fit; ``processor_seconds`` of all its threads together.
        memory: bytes that the process held at most, ``before`` of them before the fit.
    """

    records: int
    seconds: float
    processor_seconds: float
    memory: float
    before: float

    @property
    def sentence(self) -> str:
        """What to know of it."""
        return (
            f"Rehearsed here on {self.records:,} invented rows, all clients in one process: "
            f"{_spell(self.seconds)} s, {_spell(self.processor_seconds)} s of processors, at most "
            f"{spell_bytes(self.memory)} of memory ({spell_bytes(self.before)} before the fit). "
            "What a method learns decides what it does next: on real rows of two tables, four "
            "methods took .8 to 1.8 times the processors' time of a rehearsal, and as much memory."
        )


def rehearse(
    synth: Method[Any],
    budget: Budget,
    clients: int,
    records: int | None,
    *,
    survivors: float = 1.0,
    secure: bool = False,
    seed: int = 0,
    progress: Report | bool = False,
) -> Rehearsal:
    """Fit to rows that are made up from the schema alone. It takes as long as a job.

    Args:
        synth: stays as it is.
        records: of all clients together.
        progress: as a fit takes it.

    Raises:
        ConfigError: their number is not known, or there are no rows to invent.
    """
    schema = synth.schema
    if not isinstance(schema, Schema):
        raise ConfigError("a rehearsal invents rows of tables, and this schema is of images")
    if records is None:
        raise ConfigError("a rehearsal needs the number of records: give it, or --each")
    rows = invent(schema, demand_whole("records", records, clients), seed)
    owners = partition(rows, clients, "uniform", schema=schema, seed=seed)
    other, before = synth.__sklearn_clone__(), _peak()
    began, worked = time.perf_counter(), time.process_time()
    other.fit(
        owners,
        settle_two(budget, clients),
        survivors=survivors,
        secure=secure,
        seed=seed,
        # Nobody's rows: nothing is remembered of a job with known noise.
        insecure_noise_seed=seed,
        progress=progress,
        caution=lambda _: None,
    )
    return Rehearsal(
        records,
        time.perf_counter() - began,
        time.process_time() - worked,
        _peak(),
        before,
    )


def invent(schema: Schema, records: int, seed: int) -> pd.DataFrame:
    """Rows [records] of a schema, of a few groups whose columns hang together."""
    rng = np.random.default_rng(seed)
    encoding = nominal_encoding(schema, 24)
    groups = rng.integers(_GROUPS, size=records)
    codes = np.empty((records, len(encoding.sizes)), np.int64)
    for place, frequencies in enumerate(encoding.frequencies):
        for group in range(_GROUPS):
            own = frequencies * np.exp(rng.normal(size=len(frequencies)))
            inside = groups == group
            codes[inside, place] = rng.choice(len(own), int(inside.sum()), p=own / own.sum())
    return encoding.decode(codes, rng)


def _spell(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"


def _peak() -> float:
    """Bytes that this process has held at most."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(held if sys.platform == "darwin" else held * 1024)
