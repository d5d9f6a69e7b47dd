"""A job up to the moment at which somebody would be asked: all that can go wrong before is seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fedsynth.encoding.resolution import resolution_cautions
from fedsynth.errors import Caution
from fedsynth.federation.simulation.simulation import Simulation
from fedsynth.jobs.config import AUTO, Config
from fedsynth.jobs.data import prepare
from fedsynth.jobs.run import check_sample, demand_one_method
from fedsynth.methods.persons import person_cautions
from fedsynth.planning.forecast import Forecast, plan
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.certificate import not_covered
from fedsynth.registry import choose, make


def dry_run(config: Config, base: Path, caution: Caution) -> Forecast:
    """What a job would ask, cost and be worth, after its tables were read and looked at.

    Nobody is asked, nothing is charged and nothing written. What owners' own accounts have left is
    not looked at (:func:`~fedsynth.planning.accounts.read_accounts`).

    Args:
        base: what the job's paths are relative to.
        caution: called with all that a run would call it with before it asks: some of it are
            figures of private rows, for their owners.

    Raises:
        FedsynthError: as a run would before it asks.
    """
    demand_one_method(config)
    data, reason = prepare(config, base, caution), None
    if config.method == AUTO:
        choice = choose(data.schema, config.privacy.budget)
        config, reason = config.model_copy(update={"method": choice.method}), choice.reason
    check_sample(config, data, caution)
    agreed = config.federation
    outside = 1.0 if config.outside == "allow" else config.outside
    runtime = Simulation(data.owners, data.schema).open(
        NoiseSource(), {}, None, config.privacy.budget, agreed.most_records, outside, caution
    )
    told: Iterable[str] = (
        *not_covered(data.schema.provenance, data.owners_provenance),
        *resolution_cautions(data.schema),
        *person_cautions(data.schema, config.privacy.budget),
    )
    for sentence in told:
        caution(sentence)
    method = make(config.method, data.schema, config.settings, data.public)
    # A plan would take two owners to hold each other off; a run has that said.
    budget = config.privacy.budget.for_clients(len(runtime.clients))
    found = plan(
        method,
        budget,
        len(runtime.clients),
        survivors=agreed.survivors,
        secure=agreed.secure,
    )
    return replace(found, reason=reason)
