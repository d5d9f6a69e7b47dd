"""Private selection: settings of a synthesizer tried on private rows, and the best try released.

Papernot and Steinke 2022. Whoever tries is trusted (central trust), and nothing leaves it but the
best trial: no number of trials, no time, no log, no other score. So one entry of the ledger charges
all of it, written before anything is asked (:mod:`fedsynth.privacy.selecting`).
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedsynth.agreed import demand_whole
from fedsynth.data.persons import people_of
from fedsynth.demands import demand_known, demand_number, demand_path
from fedsynth.errors import Caution, ConfigError, DataError, FederationError, PrivacyError, warn_of
from fedsynth.evaluation.federated.scoring import federated_scores, plan_scores
from fedsynth.federation.simulation.repeats import apart
from fedsynth.federation.simulation.simulation import Owners, Simulation, by_name
from fedsynth.files import writing
from fedsynth.jobs.loading import load
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.plain import hash_plain
from fedsynth.planning.selecting import largest_trial, laws_of
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.selecting import BestOf, Selecting, part_of
from fedsynth.privacy.trail.certificate import LEDGER, SCHEMA, Certificate
from fedsynth.privacy.trail.job import Event, Job, Planned, count_terms
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trials import Trials
from fedsynth.queries.arguments import budget_of
from fedsynth.queries.options import OUTSIDE, Options
from fedsynth.queries.plan import Plan
from fedsynth.release import is_release, write_release
from fedsynth.schema import Schema
from fedsynth.tuning.selecting import demand_candidates
from fedsynth.views import Grid, Said, Shown, View

_WORDS = {
    "auroc": "AUROC",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "columns": "total variation of columns",
}
SCORES = tuple(_WORDS)
"""Of rows: a classifier's that learned from them, on private rows; or the mean total variation of
their columns to private ones, negative, so that more is better."""
_SEEDS = 2**31


@dataclass(frozen=True, eq=False, repr=False)
class PrivatelySelected(Shown):
    """The best trial of a private selection.

    Attributes:
        best: its synthesizer, as the release has it.
        chosen: its place among the candidates.
        settings: of each candidate, what was set.
        score: its own, more is better, with the noise that it was released with, and ``measure``
            what it is of; None where the noise left nothing to tell.
        trials: the law of how many there were; how many there were is told to nobody.
        each: epsilon of one trial by itself.
        certificate: of the release.
    """

    best: Synthesizer[Any]
    chosen: int
    settings: tuple[Mapping[str, Any], ...]
    score: float | None
    measure: str
    trials: Trials
    each: float
    certificate: Certificate

    def _view(self) -> View:
        rows = [
            (str(place), ", ".join(f"{k}={v}" for k, v in own.items()))
            for place, own in enumerate(self.settings)
        ]
        told = "hidden by the noise" if self.score is None else f"{abs(self.score):.3f}"
        return View(
            f"Candidate {self.chosen} of {len(rows)}, by private selection",
            [
                Grid(("candidate", "method and settings"), rows, strong=[self.chosen]),
                Said(
                    f"{_WORDS[self.measure]} of the best trial, on private rows and with noise: "
                    f"{told}. The best of several scores flatters itself. A trial by itself costs "
                    f"epsilon {self.each:.3g}; their number, secret, is {self.trials.mean:g} on "
                    "average."
                ),
                Said(self.certificate.sentence, "strong"),
                Said(BestOf.caution[0].upper() + BestOf.caution[1:], "caution"),
            ],
        )


@dataclass(frozen=True, eq=False)
class _Trying:
    """What all trials have in common; each draws a candidate and is drawn alike.

    Attributes:
        learned: the rows that are fitted to, and ``held`` those that are only scored on.
    """

    candidates: Sequence[Synthesizer[Any]]
    plans: Sequence[Plan]
    budget: Budget
    learned: Simulation
    held: Mapping[str, pd.DataFrame]
    schema: Schema
    measure: str
    rows: int
    source: NoiseSource

    def run(self) -> tuple[float, int, Synthesizer[Any], pd.DataFrame]:
        """The trial's score, minus infinity where the noise leaves nothing to tell; the place of
        its candidate, the synthesizer and its rows."""
        place = int(self.source.uniform(1)[0] * len(self.candidates))
        synth, plan = self.candidates[place].__sklearn_clone__(), self.plans[place]
        seeds = [self.source.seed() % _SEEDS for _ in range(3)]
        synth.fit(
            self.learned,
            self.budget,
            plan=plan,
            seed=seeds[0],
            outside="allow",
            progress=False,
            caution=lambda sentence: None,
        )
        _demand_planned(synth.ledger, plan)
        drawn = synth.sample(self.rows, seed=seeds[1])
        scores = federated_scores(
            self.held,
            drawn,
            self.schema,
            self.budget,
            per_owner=False,
            seed=seeds[2],
            progress=False,
        )
        found = None
        if scores.pooled is not None:
            name = "mean_distance" if self.measure == "columns" else self.measure
            found = getattr(scores.pooled, name)
        if found is None or not math.isfinite(found.value):
            return -math.inf, place, synth, drawn
        return -found.value if self.measure == "columns" else found.value, place, synth, drawn


def select_privately(
    candidates: Sequence[Synthesizer[Any]],
    owners: Owners,
    folder: str | Path,
    budget: Budget | Mapping[str, Any] | float | None = None,
    *,
    trials: float = 10,
    score: str | None = None,
    holdout: float = 0.2,
    rows: int = 10_000,
    outside: float | str = OUTSIDE,
    owners_ledgers: Mapping[str, Ledger] | None = None,
    owners_provenance: str = "declared",
    caution: Caution = warn_of,
    **words: Any,
) -> PrivatelySelected:
    """Try settings on private rows, as often as chance says, and release the best try alone.

    A trial draws one of the candidates, fits it, draws rows and scores them by one noisy sum over
    records that were not fitted to. Epsilon holds for whoever gets the release and nothing else;
    not for whoever runs this, sees how long it takes, or is asked as an owner. Nothing of it is
    resumed: what is interrupted stays charged.

    Args:
        candidates: two or more synthesizers for one schema of a table; each is as likely in every
            trial.
        owners: their tables, as `fit` takes them.
        folder: new or empty, of the release.
        budget: of all of it, under trust "central"; or its fields as keywords.
        trials: how many there are on average, 1 or more; which law their number has is chosen such
            that the best costs least.
        score: "auroc" (of two classes, the default there), "accuracy" or "balanced_accuracy" of a
            classifier that learned from the rows (accuracy is the default of more classes), or
            "columns", how far columns lie off.
        holdout: share of the records, each drawn by a secret coin, that are only scored on.
        rows: of the release, and of each trial.
        outside, owners_ledgers, owners_provenance, caution: as `fit` takes them; owners' accounts
            are charged once, with the whole.

    Raises:
        ConfigError, DataError: what does not go together; nothing was asked.
        PrivacyError: another trust, or an account that does not carry it; nothing was asked.
        FederationError: no trial was made, or none that could be scored; it is charged.

    Example:
        >>> tried = [fs.AIM(schema), fs.AIM(schema, bins=12)]                     # doctest: +SKIP
        >>> found = fs.select_privately(tried, owners, "runs/best", epsilon=1, trust="central")
    """
    schema, allowed = demand_candidates(candidates), budget_of(budget, **words)
    folder, rows = demand_path("folder", folder), demand_whole("rows", rows, 1)
    holdout = demand_number("holdout", holdout, "a share in (0, 1)", lambda share: 0 < share < 1)
    trials = demand_number("trials", trials, "1 or more", lambda mean: mean >= 1)
    options = Options(
        outside=outside,
        owners_ledgers={} if owners_ledgers is None else owners_ledgers,
        owners_provenance=owners_provenance,
        caution=caution,
    )
    BestOf(Trials(1.0, "geometric"), ()).admit(allowed.trusts, Everyone())
    if not allowed.private:
        raise ConfigError("private selection takes a finite epsilon")
    if not allowed.protects.per_record or allowed.protects.joined:
        raise ConfigError(
            "private selection protects records (unit record): scores of clients, and of persons, "
            "have no cut between what is fitted to and what is scored on"
        )
    if is_release(folder) or (folder.exists() and any(folder.iterdir())):
        raise ConfigError(f"{folder} is not empty: name a new folder")
    measure = _measure(score, schema)
    tables = by_name(owners)
    allowed = allowed.for_clients(len(tables))
    law, each, plans, terms = _agree(candidates, allowed, trials, len(tables))
    whole, source = Simulation(tables, schema), NoiseSource()
    # What owners are told of their tables, and refused for, is told once, before anything is asked.
    whole.open(source, options.owners_ledgers, None, allowed, None, options.most_outside, caution)
    named = tuple(
        {"method": one.name, **one.settings.model_dump(mode="json", exclude_unset=True)}
        for one in candidates
    )
    settings = _settings(candidates, law, measure, holdout, rows)
    job = Job(
        budget=allowed,
        plan=(Planned(BestOf.name, terms, 1),),
        schema_digest=schema.digest,
        schema_provenance=schema.provenance,
        owners_provenance=owners_provenance,
        settings_digest=hash_plain(settings),
        method=BestOf.name,
        clients=len(tables),
    )
    event = Event(BestOf.name, 0, terms, job.job)
    _demand_left(options.owners_ledgers, event)
    with writing(folder):
        ledger = Ledger.create(job, folder / LEDGER)
    try:
        ledger.charge(event)
    finally:
        ledger.close()
    for own in options.owners_ledgers.values():
        own.charge(event)
    for sentence in (*allowed.cautions(), *whole.recall(ledger)):
        caution(sentence)
    learned, held = _cut(tables, schema, holdout, source)
    with _silence(), apart():
        trying = _Trying(
            candidates,
            plans,
            each,
            Simulation(learned, schema),
            held,
            schema,
            measure,
            rows,
            source,
        )
        best = _best(trying, law)
    if best is None:
        raise FederationError(
            "no trial gave rows that could be scored: none was made, or all failed. "
            f"{folder} holds what was charged for it, and no release"
        )
    value, chosen, synth, drawn = best
    synth.account_by(ledger)
    told = value if math.isfinite(value) else None
    content = {
        "schema": SCHEMA,
        "privacy": _privacy(allowed),
        "method": BestOf.name,
        "settings": settings,
        "chosen": chosen,
        "score": told,
        **_accounts(tables, options.owners_ledgers),
    }
    certificate = write_release(folder, synth, drawn, config=content)
    return PrivatelySelected(
        best=load(folder),
        chosen=chosen,
        settings=named,
        score=told,
        measure=measure,
        trials=law,
        each=each.epsilon,
        certificate=certificate,
    )


def _best(trying: _Trying, law: Trials) -> tuple[float, int, Any, pd.DataFrame] | None:
    """The trial of the highest score; of equal ones the first. One that fails has none."""
    best = None
    for _ in range(law.draw(trying.source)):
        try:
            found = trying.run()
        except PrivacyError:
            raise
        except Exception:
            # Whatever it is: that a trial failed must not show, unless all did.
            continue
        if best is None or found[0] > best[0]:
            best = found
    return best


def _agree(
    candidates: Sequence[Synthesizer[Any]], budget: Budget, mean: float, clients: int
) -> tuple[Trials, Budget, list[Plan], Selecting]:
    """The law of the number of trials, the budget of each, the candidates' plans and what all of
    it is charged as."""

    def parts(each: Budget) -> tuple[list[Plan], tuple[Any, ...]]:
        plans = [one.plan(each, clients) for one in candidates]
        # A record is fitted to or scored on, never both: so what it costs is the larger.
        every = [*(plan.releases for plan in plans), plan_scores(each, clients).releases]
        return plans, tuple(dict.fromkeys(part_of(count_terms(one)) for one in every))

    def each_of(epsilon: float) -> Budget:
        return Budget(
            epsilon=epsilon, delta=budget.resolved_delta, unit=budget.unit, trust=budget.trust
        ).for_clients(clients)

    def terms(made: tuple[Any, ...], law: Trials) -> Selecting:
        return Selecting(unit=budget.unit, trust=budget.trust, trials=law, parts=made)

    def cost(made: tuple[Any, ...], law: Trials) -> float:
        return spent({terms(made, law): 1}, budget.resolved_delta).epsilon

    def least(epsilon: float) -> float:
        made = parts(each_of(epsilon))[1]
        return min(cost(made, law) for law in laws_of(mean))

    each = each_of(largest_trial(least, mean, budget.epsilon))
    plans, made = parts(each)
    law = min(laws_of(mean), key=lambda one: cost(made, one))
    return law, each, plans, terms(made, law)


def _settings(
    candidates: Sequence[Synthesizer[Any]], law: Trials, measure: str, holdout: float, rows: int
) -> dict[str, Any]:
    """What decides which trials there are, plain: the ledger's first line holds its hash."""
    return {
        "candidates": [
            {
                "method": one.name,
                "settings": one.settings.model_dump(mode="json", exclude_none=True),
            }
            for one in candidates
        ],
        "trials": law.mean,
        "law": law.kind,
        "score": measure,
        "holdout": holdout,
        "rows": rows,
    }


def _privacy(budget: Budget) -> dict[str, Any]:
    return {
        "epsilon": budget.epsilon,
        "delta": budget.resolved_delta,
        "unit": budget.unit,
        "trust": budget.trust,
    }


def _accounts(owners: Iterable[str], ledgers: Mapping[str, Ledger]) -> dict[str, Any]:
    """What a job's file says of owners' accounts, where each has one of the same budget."""
    budgets = {ledger.job.budget for ledger in ledgers.values()}
    if len(budgets) != 1 or set(ledgers) != set(owners):
        return {}
    (own,) = budgets
    limit = {"epsilon": own.epsilon} if own.private else {}
    return {"federation": {"ledgers": {**limit, "delta": own.resolved_delta}}}


def _measure(score: str | None, schema: Schema) -> str:
    """Raises ConfigError for a score that the schema's task does not have."""
    if score is None:
        return {0: "columns", 2: "auroc"}.get(schema.classes, "accuracy")
    demand_known("score", score, SCORES)
    if (score != "columns" and not schema.classes) or (score == "auroc" and schema.classes != 2):
        needed = "a target of two classes" if score == "auroc" else "a target of categories"
        raise ConfigError(f"score {score} takes {needed}: take columns")
    return score


def _demand_planned(ledger: Ledger, plan: Plan) -> None:
    """Raises PrivacyError where a trial asked what was not charged: no plan of a method's does."""
    planned = count_terms(plan.releases)
    if any(count > planned.get(terms, 0) for terms, count in ledger.counts.items()):
        raise PrivacyError("a trial asked more than was charged: nothing is released")


def _demand_left(ledgers: Mapping[str, Ledger], event: Event) -> None:
    """Raises PrivacyError where an owner's account does not carry a selection."""
    for name, ledger in ledgers.items():
        ledger.admit(event.terms)
        if ledger.would_exceed(event.terms):
            left = ledger.job.budget.epsilon
            raise PrivacyError(
                f"the account of {name}, of epsilon {left:g} across jobs, does not carry this "
                "selection: nothing was asked of anybody"
            )


def _cut(
    tables: Mapping[str, Any], schema: Schema, holdout: float, source: NoiseSource
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows to fit to and rows to score on, by a secret coin for each person: where one more row
    lies says nothing of others'."""
    learned, held = {}, {}
    for name, table in tables.items():
        if not isinstance(table, pd.DataFrame):
            raise DataError(f"{name}: private selection is for tables")
        people = people_of(table, schema, name)
        away = (source.uniform(int(people.max(initial=-1)) + 1) < holdout)[people]
        learned[name] = table[~away].reset_index(drop=True)
        held[name] = table[away].reset_index(drop=True)
    return learned, held


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing that a trial warns of or logs leaves it: no logger's of this process, since any may
    have a level of its own, and libraries log, too."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
