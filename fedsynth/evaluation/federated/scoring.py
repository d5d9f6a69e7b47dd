"""Scores of synthetic rows against owners' data that are never pooled, within a budget."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from fedsynth.agreed import Agreed
from fedsynth.data.images import Images
from fedsynth.demands import demand_flag, demand_path
from fedsynth.durable import write_whole
from fedsynth.errors import ConfigError, DataError, FedsynthError
from fedsynth.evaluation.federated.estimates import (
    Counts,
    Estimate,
    Scores,
    estimate,
)
from fedsynth.evaluation.federated.recipe import (
    Floats,
    Layout,
    Recipe,
    arrays_of,
    owned_records_of,
    records_of,
)
from fedsynth.evaluation.federated.result import FederatedScores
from fedsynth.evaluation.federated.scorer import scorer_of
from fedsynth.evaluation.federated.spread import Across, across, across_sums
from fedsynth.evaluation.federated.tasks import NAME, SCORES, Blocks, client_norm, client_scores
from fedsynth.federation.request import Released
from fedsynth.federation.server.incidents import names_clients
from fedsynth.federation.simulation.simulation import Simulation
from fedsynth.files import writing
from fedsynth.holding import hold
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.certificate import SCHEMA, certify
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.sealing import seal
from fedsynth.queries.arguments import budget_of
from fedsynth.queries.options import Options, Progress
from fedsynth.queries.plan import Plan, count_survivors
from fedsynth.queries.session import Session, begin
from fedsynth.queries.shares import Stage, share_out
from fedsynth.queries.terms import terms_for_everyone
from fedsynth.release import discard_checkpoint
from fedsynth.schema import Categorical, ImageSchema, Schema, demand_schema
from fedsynth.yaml_files import yaml_text

SCORES_FILE = "scores.json"
_MOST_NUMBERS = 2**28
"""Numbers that all owners may send together: 2 GiB of traffic."""


class ScoreSettings(Agreed):
    """What decides which figures come out: the ledger's first line holds its hash.

    Attributes:
        synthetic: hash of schema, synthetic rows, bins and seed.
        per_owner: a block of counts for each owner beside that of all.
        cap: records from which a client has its full weight; None weighs all clients alike.
    """

    fault: ClassVar[type[FedsynthError]] = ConfigError

    synthetic: Annotated[str, Field(description="a hash")]
    bins: Annotated[int, Field(ge=2, le=1000, description="a whole number from 2 to 1000")]
    seed: Annotated[int, Field(ge=0, description="a whole number of at least 0")]
    per_owner: Annotated[bool, Field(description="true or false")]
    cap: Annotated[int | None, Field(ge=1, description="None or a number of at least 1")]


def federated_scores(
    owners: Mapping[str, pd.DataFrame | Images],
    synthetic: pd.DataFrame | Images,
    schema: Schema | ImageSchema,
    budget: Budget | Mapping[str, Any] | float,
    *,
    bins: int = 10,
    per_owner: bool = True,
    cap: int | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
    survivors: float = 1.0,
    secure: bool = False,
    owners_ledgers: Mapping[str, Ledger] | None = None,
    progress: Progress | bool = True,
    owners_provenance: str = "declared",
    insecure_noise_seed: int | None = None,
) -> FederatedScores:
    """Score synthetic rows against every owner's records, by one noisy sum and nothing else.

    Args:
        owners: tables or images by owner's name; names are public.
        synthetic: rows of a release, which are public.
        budget: what these scores may cost, beside what the release did. An infinite epsilon gives
            exact figures, and a certificate that says so.
        bins: quantile bins of synthetic numbers; categories told apart, the commonest.
        per_owner: scores of each owner too, at the record level. Their blocks double the noise
            variance and make every message as long as there are owners.
        cap: at the client level, records from which a client has its full weight.
        folder: new; gets ledger, schema, ``scores.json`` and certificate, for `fs.verify`.
        seed, survivors, secure, owners_ledgers, progress, owners_provenance, insecure_noise_seed:
            as in :class:`fedsynth.queries.options.Options`.

    Raises:
        DataError, ConfigError: data that do not fit the schema; nothing was asked.
        PrivacyError: the budget carries no release, or the folder holds a ledger already.
        FederationError: too few owners answered; the scores are charged and lost.
    """
    if not isinstance(owners, Mapping):
        raise ConfigError("give the owners' data by name: {'north': table, ...}")
    demand_schema(schema, "federated_scores")
    demand_flag("per_owner", per_owner)
    budget = budget_of(budget)
    if budget.protects.joined:
        raise ConfigError(
            "scores cannot protect persons: a score is of single rows, and a person has several. "
            "Score on public rows, or keep the figures to yourself"
        )
    made = records_of(synthetic, schema, "synthetic")
    if not len(made):
        raise DataError("synthetic: has no rows")
    recipe = Recipe(schema, made, bins, seed)
    settings = ScoreSettings(
        synthetic=recipe.digest, bins=bins, seed=seed, per_owner=per_owner, cap=cap
    )
    options = Options(
        seed=seed,
        folder=None if folder is None else demand_path("folder", folder),
        survivors=survivors,
        secure=secure,
        owners_ledgers={} if owners_ledgers is None else owners_ledgers,
        progress=progress,
        owners_provenance=owners_provenance,
        insecure_noise_seed=insecure_noise_seed,
    )
    layout = scorer_of(recipe).layout
    apart = per_owner and budget.protects.per_record and len(owners) > 1
    blocks = Blocks(layout, len(owners) if apart else 0)
    if blocks.dim * len(owners) > _MOST_NUMBERS:
        raise ConfigError(
            f"scores of {len(owners)} owners each need messages of {blocks.dim} numbers: set "
            "per_owner to False"
        )
    clients = Simulation(owners, schema, owned_records_of)

    norm = 1.0 if budget.protects.per_record else client_norm(layout)

    def plan(resolved: Budget, clients: int) -> Plan:
        return plan_scores(resolved, clients, survivors, norm)

    with begin(clients, schema, budget, plan, options, settings, NAME) as session:
        session.progress("scores", 0, 1)
        released = session.channel.sum(
            NAME,
            session.plan.terms(NAME),
            blocks.dim if budget.protects.per_record else 3 * len(client_scores(layout)),
            arrays=arrays_of(made),
            settings={
                "owners": list(session.channel.names) if apart else [],
                "bins": bins,
                "seed": seed,
                "cap": cap,
            },
        )
        session.progress("scores", 1, 1)
    return _finished(session, recipe, blocks, released, cap)


def plan_scores(budget: Budget, clients: int, survivors: float = 1.0, norm: float = 1.0) -> Plan:
    """What scoring asks, whichever rows it scores.

    Args:
        budget: for so many clients.
        norm: of what a unit sends; that of a record is 1.
    """
    whole = count_survivors(survivors, clients)

    def terms(multiplier: float) -> Terms:
        return terms_for_everyone(budget, norm, multiplier, whole)

    releases = share_out([Stage(NAME, 1.0, terms)], budget)
    return Plan(budget=budget, clients=clients, releases=releases)


def _finished(
    session: Session, recipe: Recipe, blocks: Blocks, released: Released, cap: int | None
) -> FederatedScores:
    """Scores from the released sum, written with their certificate."""
    layout, terms = blocks.layout, session.plan.terms(NAME)
    names = session.channel.names
    absent = {incident.client for incident in released.incidents} & set(names)
    scale = terms.summed_scale(released.answered)
    notes = [] if layout.why is None else [layout.why]
    if absent:
        notes.append(f"did not answer: {', '.join(sorted(absent))}")
    pooled: Estimate | None = None
    owners: tuple[Scores, ...] = ()
    if not terms.protects.per_record:
        over = _over_clients(layout, released.value, scale, cap)
        vague = [name for name, score in over.items() if score.weighted is None]
        if vague:
            notes.append(f"{', '.join(vague)}: the noise leaves nothing to tell")
    else:
        pooled, owners = _of_records(blocks, released.value, scale, names, absent)
        over = {name: across(owners, attrgetter(name)) for name in SCORES} if owners else {}
    gaps = [share[-1] for share in layout.shares] if layout.gaps else []
    target = recipe.schema.target
    name = target.name if isinstance(target, Categorical) else target
    scores = FederatedScores(
        unit=terms.unit,
        target=None if layout.labels is None else name,
        pooled=None if pooled is None else pooled.scores,
        owners=owners,
        across=over,
        columns={} if pooled is None else dict(zip(layout.names, pooled.distances, strict=False)),
        synthetic_missing=float(np.mean(gaps)) if gaps else None,
        notes=tuple(notes),
        synthetic=recipe.digest,
        certificate=certify(session.ledger, {}),
    )
    return scores if session.options.folder is None else _written(scores, recipe, session)


def _of_records(
    blocks: Blocks, total: Floats, scale: float, names: Sequence[str], absent: set[str]
) -> tuple[Estimate, tuple[Scores, ...]]:
    """The scores of all records, and of each owner's."""
    layout = blocks.layout
    common, own = blocks.split(total, scale)
    answered = [counts for name, counts in zip(names, own, strict=False) if name not in absent]
    pooled = estimate(_together(common, answered), layout, "all")
    if len(names) == 1:
        return pooled, (replace(pooled.scores, name=names[0]),)
    owners = [
        Scores(name, None, notes=("did not answer",))
        if name in absent
        else estimate(counts, layout, name).scores
        for name, counts in zip(names, own, strict=False)
    ]
    return pooled, tuple(owners)


def _together(common: Counts, own: Sequence[Counts]) -> Counts:
    """The counts of all records told twice, by their block and by the sum of the owners' blocks,
    each weighed by its precision."""
    if not own or common.sigma == 0:
        return common
    # The owners' tables weigh as much as those of all, so their sum has this many times the noise.
    share = 1 / (len(own) + 1)

    def mixed(first: Floats, others: Sequence[Floats]) -> Floats:
        mean: Floats = (1 - share) * first + share * np.sum(others, axis=0)
        return mean

    columns = tuple(
        mixed(column, [counts.columns[j] for counts in own])
        for j, column in enumerate(common.columns)
    )
    labels = common.labels
    if labels is not None:
        labels = mixed(labels, [counts.labels for counts in own if counts.labels is not None])
    factor = (1 - share) ** 0.5
    return Counts(columns, labels, common.sigma * factor, common.label_sigma * factor)


def _over_clients(
    layout: Layout, total: Floats, scale: float, cap: int | None
) -> dict[str, Across]:
    names = client_scores(layout)
    sums = total.reshape(len(names), 3)
    return {
        name: across_sums(three, scale, cap is not None)
        for name, three in zip(names, sums, strict=True)
    }


def _written(scores: FederatedScores, recipe: Recipe, session: Session) -> FederatedScores:
    """The scores, written beside their ledger and certified together with it."""
    folder = session.options.folder
    assert folder is not None
    body = json.dumps(scores.figures(), indent=1, allow_nan=False) + "\n"
    named = names_clients(session.ledger.job.budget)
    incidents = session.channel.dropped.entries() if named else ()
    with writing(folder), hold(folder):
        write_whole(folder / SCHEMA, yaml_text(recipe.schema.to_dict()).encode())
        write_whole(folder / SCORES_FILE, body.encode())
        certificate = seal(folder, session.ledger, (SCHEMA, SCORES_FILE), incidents)
        discard_checkpoint(folder)
    return replace(scores, certificate=certificate)
