"""Settings of a synthesizer, chosen on public rows of the same schema: nothing private is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.agreed import demand_whole, shown
from fedsynth.data.persons import people_of, split_people
from fedsynth.demands import demand_number
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.measures.marginals import marginal_error
from fedsynth.federation.simulation.partitions import partition
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.privacy.budget import Budget
from fedsynth.progress import Report
from fedsynth.queries.arguments import budget_of
from fedsynth.schema import Schema
from fedsynth.schema.frames import demand_frame
from fedsynth.views import Grid, Said, Shown, View

Score = Callable[[pd.DataFrame, pd.DataFrame], float]
"""Of synthetic rows and of public rows that were held out: more is better."""

_LIKE = (
    "Chosen on public rows, and nothing private was asked. It is as good on private rows as far as "
    "these are like them, and as many."
)


@dataclass(frozen=True, eq=False, repr=False)
class Selected(Shown):
    """What a choice among candidates found.

    Attributes:
        best: the candidate to be fitted to private rows, unfitted: the first, unless another was
            better every time; of those, the one that is best on average.
        chosen: its place among the candidates.
        settings: of each candidate, what was set.
        scores: [candidates, repeats], more is better.
        records: of all public owners together, in every fit.
        told: what the fits warned of, each once.
    """

    best: Synthesizer[Any]
    chosen: int
    settings: tuple[Mapping[str, Any], ...]
    scores: NDArray[np.float64]
    records: int
    told: tuple[str, ...]

    def _view(self) -> View:
        rows = [
            (
                str(place),
                ", ".join(f"{name}={value}" for name, value in own.items()) or "defaults",
                f"{scores.mean():.4g}",
                f"{scores.min():.4g}",
                f"{scores.max():.4g}",
            )
            for place, (own, scores) in enumerate(zip(self.settings, self.scores, strict=True))
        ]
        head = ("candidate", "settings", "score", "least", "most")
        kept = "" if self.chosen else " (no other was better every time)"
        return View(
            f"Candidate {self.chosen} of {len(rows)}{kept}, by {self.scores.shape[1]} fits of each "
            f"to {self.records:,} public rows",
            [
                Grid(head, rows, figures=(2, 3, 4), strong=[self.chosen], most=len(rows)),
                *(Said(one, "caution") for one in self.told),
                Said(_LIKE, "quiet"),
            ],
        )


def select(
    candidates: Sequence[Synthesizer[Any]],
    public: pd.DataFrame,
    budget: Budget | Mapping[str, Any] | float,
    clients: int,
    *,
    records: int | None = None,
    repeats: int = 3,
    score: Score | None = None,
    holdout: float = 0.25,
    seed: int = 0,
    progress: Report | None = None,
) -> Selected:
    """Choose settings by fits to public rows, which cost nothing; then fit once to private rows.

    Each candidate is fitted ``repeats`` times under the private job's budget to as many owners, and
    scored on public rows that were held out. Of tries on private rows see
    :func:`fedsynth.select_privately`.

    Args:
        candidates: two or more synthesizers for one schema, the one that you would take without
            looking first. They stay unfitted.
        public: a table that is known to everybody, as similar to the private ones as can be had.
        budget: of the private job.
        clients: of the private job.
        records: of the private job, where that may be published: public rows are drawn with
            replacement to as many, so that the noise weighs as much against them. By default the
            rows that were not held out.
        repeats: fits of each candidate, at least 2, with noise of their own.
        score: of synthetic rows, as many as were held out, and those; more is better. By default
            the mean total variation of pairs of columns, negative.
        holdout: share of the public rows that is only scored on.
        seed: of cuts, draws and noise, so that the choice can be repeated.
        progress: called with a step's name, fits done and all of them.

    Raises:
        ConfigError: fewer than two candidates, of several schemas, or settings, budget and clients
            that do not go together.
        DataError: too few rows, or rows that do not fit the schema.

    Example:
        >>> tried = [fs.AIM(schema), fs.AIM(schema, bins=12)]                # doctest: +SKIP
        >>> fs.select(tried, public, 1.0, clients=10).best.fit(owners, 1.0)  # doctest: +SKIP
    """
    schema, allowed = demand_candidates(candidates), budget_of(budget)
    clients, repeats = demand_whole("clients", clients, 1), demand_whole("repeats", repeats, 2)
    seed = demand_whole("seed", seed, 0)
    count = None if records is None else demand_whole("records", records, clients)
    for name, given in (("score", score), ("progress", progress)):
        if not (given is None or callable(given)):
            raise ConfigError(f"{name} must be a function, not {shown(given)}")
    for one in candidates:
        one.plan(allowed, clients)
    learned, held = _cut(demand_frame(public, "public"), schema, holdout, clients, seed)
    count = len(learned) if count is None else count
    scores = np.empty((len(candidates), repeats))
    told: dict[str, None] = {}
    for again in range(repeats):
        rng = np.random.default_rng((seed, again))
        rows = learned
        if records is not None:
            rows = learned.iloc[rng.integers(len(learned), size=count)].reset_index(drop=True)
        own = int(rng.integers(2**31))
        owners = partition(rows, clients, "uniform", schema=schema, seed=own)
        for place, one in enumerate(candidates):
            if progress is not None:
                done = again * len(candidates) + place
                progress("select", done, len(candidates) * repeats, 0.0)
            synth = one.__sklearn_clone__()
            # Public rows need no secret noise; with known noise the choice can be repeated.
            synth.fit(
                owners,
                allowed,
                seed=own,
                insecure_noise_seed=own,
                progress=False,
                caution=lambda sentence: told.setdefault(sentence),
            )
            drawn = synth.sample(len(held), seed=own)
            scores[place, again] = _demand_score(
                _score_pairs(drawn, held, schema) if score is None else score(drawn, held)
            )
    chosen = _choose(scores)
    return Selected(
        best=candidates[chosen].__sklearn_clone__(),
        chosen=chosen,
        settings=tuple(one.settings.model_dump(exclude_unset=True) for one in candidates),
        scores=scores,
        records=count,
        told=tuple(told),
    )


def _choose(scores: NDArray[np.float64]) -> int:
    """The first, unless others were better every time: then the best of them on average."""
    better = (scores > scores[0]).all(axis=1)
    return int(np.argmax(np.where(better, scores.mean(axis=1), -np.inf))) if better.any() else 0


def _score_pairs(drawn: pd.DataFrame, held: pd.DataFrame, schema: Schema) -> float:
    order = min(2, len(schema.observed))
    return -marginal_error(held, drawn, schema, order).mean


def _demand_score(value: object) -> float:
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = np.nan
    if not np.isfinite(found):
        raise ConfigError(f"score must give a finite number, not {value!r}")
    return found


def demand_candidates(candidates: Sequence[Synthesizer[Any]]) -> Schema:
    """Their one schema, of tables."""
    several = isinstance(candidates, list | tuple) and len(candidates) >= 2
    if not several or not all(isinstance(one, Synthesizer) for one in candidates):
        raise ConfigError(
            "select chooses among two synthesizers and more: "
            "[fs.AIM(schema), fs.AIM(schema, bins=12)]"
        )
    schema = candidates[0].schema
    if not isinstance(schema, Schema):
        raise ConfigError("select is for tables: these candidates are for images")
    if any(one.schema.digest != schema.digest for one in candidates):
        raise ConfigError("candidates have different schemas: choose under one")
    return schema


def _cut(
    table: pd.DataFrame, schema: Schema, holdout: float, clients: int, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to learn from, and rows that were held out: other persons', where there are any."""
    holdout = demand_number("holdout", holdout, "a share in (0, 1)", lambda share: 0 < share < 1)
    people = people_of(table, schema, "public rows")
    count = int(people.max(initial=-1)) + 1
    cut = count - round(holdout * count)
    if cut < clients or cut == count:
        raise DataError(
            f"{len(table):,} public rows are too few for {clients:,} clients and some held out"
        )
    kept, rest = split_people(people, cut, np.random.default_rng(seed))
    learned, held = table.iloc[kept], table.iloc[rest]
    return learned.reset_index(drop=True), held.reset_index(drop=True)
