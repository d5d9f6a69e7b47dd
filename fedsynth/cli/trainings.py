"""A training planned by itself, for `fedsynth plan` without a schema."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedsynth.errors import ConfigError

if TYPE_CHECKING:
    from fedsynth.planning.training import Training
    from fedsynth.privacy.budget import Budget
    from fedsynth.views import Grid


@dataclass(frozen=True)
class Wanted:
    """The public facts that options give."""

    privacy: Mapping[str, Any]
    clients: int | None
    records: int | None
    each: int | None
    survivors: float | None
    releases: int | None
    within: float | None
    trials: float | None
    secure: bool | None = None
    rows_a_person: Sequence[float] | None = None

    def budget(self, given: Mapping[str, Any], *, noise: bool) -> Budget:
        """Of a job file, if any, with the options in its keys' place."""
        from fedsynth.privacy.budget import Budget

        fields = {**given, **self.privacy}
        if "epsilon" not in fields:
            if self.within is not None and (self.releases or self.trials) is not None:
                # What each may cost is solved for.
                fields["epsilon"] = self.within
            elif noise:
                fields["epsilon"] = math.inf
            else:
                raise ConfigError("give --epsilon; or --noise of a training, for what it costs")
        return Budget(**fields)

    def all_records(self, clients: int) -> int | None:
        if self.each is not None and self.records is not None:
            raise ConfigError("give --records of all clients, or --each, not both")
        return self.records if self.each is None else self.each * clients


def plan_training(
    wanted: Wanted, given: Mapping[str, Any], plot: Path | None, *, as_json: bool
) -> None:
    from fedsynth.planning import training as rounds
    from fedsynth.planning.repeating import cost_of, fit_within
    from fedsynth.planning.warnings import settle_two, suggestions_for, warn_of_two, warnings_for

    training = rounds.Training(**{key: value for key, value in given.items() if value is not None})
    budget = wanted.budget({"unit": "client"}, noise=training.noise_multiplier is not None)
    if training.rate is None and training.per_round is None:
        raise ConfigError("how many units does a round draw? Give --per-round N or --rate SHARE")
    clients, solved, survivors = wanted.clients, dict[str, Any](), wanted.survivors or 1.0
    if clients is None:
        clients = rounds.clients_for(training, budget, survivors)
        solved["clients"] = clients
        budget = replace(budget, epsilon=math.inf)
    elif training.noise_multiplier is not None and budget.private:
        solved["epsilon allowed"] = budget.epsilon
    settled = settle_two(budget, clients)
    made = training.plan(settled, clients, survivors)
    epsilon, found = made.epsilon(), made.adversaries()
    if training.noise_multiplier is None:
        solved["noise multiplier"] = made.releases[0].terms.noise_multiplier
    if wanted.within is not None:
        together = fit_within(made, wanted.within)
        solved |= {"releases": together.jobs, "epsilon together": together.epsilon}
    elif wanted.releases is not None:
        solved["epsilon together"] = cost_of(made, wanted.releases)
    known = replace(made.budget, epsilon=epsilon)
    records = wanted.all_records(clients)
    warnings = list(warnings_for(replace(made, budget=known), epsilon, found, records))
    if settled != budget:
        careless = training.plan(replace(budget, curious=0), clients, survivors)
        warnings.insert(0, warn_of_two(careless.adversaries()))
    content = {
        "clients": clients,
        "rounds": training.rounds,
        "noise_multiplier": made.releases[0].terms.noise_multiplier,
        "epsilon": epsilon,
        "delta": made.budget.resolved_delta,
        "participations": made.participations,
        "average": rounds.average_cost(made),
        "adversaries": [asdict(one) for one in found],
        "solved_for": solved,
        "warnings": warnings,
        "suggestions": [
            *suggestions_for(known, epsilon, found, records),
            *_enough_noise(training, made.budget, clients, survivors, epsilon),
        ],
        "notes": [
            "A training by itself: a job asks counts before it, which cost a little more.",
            *([rounds.CAVEAT] if made.budget.unit == "client" else []),
        ],
    }
    if plot is not None:
        if training.per_round is None:
            raise ConfigError("epsilon is plotted against clients for --per-round N, not --rate")
        from fedsynth.planning.drawing import draw_lines, save_plot

        several = tuple(round(training.per_round * 10 ** (step / 2)) for step in range(1, 15))
        drawn = rounds.curves(training.per_round, training.rounds, several)
        content["curves"] = asdict(drawn)
        lines = {
            "central: by the server": list(zip(several, drawn.central, strict=True)),
            "local: an average client": list(zip(several, drawn.local, strict=True)),
            "local: the worst client": list(zip(several, drawn.worst, strict=True)),
        }
        label = "epsilon against the number of clients, noise in the mean kept"
        save_plot(draw_lines(lines, across="clients", up="epsilon", label=label, at=clients), plot)
    if as_json:
        from fedsynth.plain import print_json, spell_infinite

        print_json(spell_infinite(content))
        return
    _show(content)


def _enough_noise(
    training: Training, budget: Budget, clients: int, survivors: float, epsilon: float
) -> list[str]:
    """The least noise for an epsilon that promises something, where the given one does not."""
    from fedsynth.planning.training import clients_for
    from fedsynth.planning.warnings import MOST

    if training.noise_multiplier is None or epsilon <= MOST:
        return []
    enough = replace(training, noise_multiplier=None)
    allowed = replace(budget, epsilon=MOST)
    made = enough.plan(allowed, clients, survivors)
    found = [f"noise: {made.releases[0].terms.noise_multiplier:.4g} costs epsilon {MOST:g}"]
    if training.per_round is not None and budget.trusts.server_adds and budget.unit == "client":
        # Delta falls with their number, as one over its power 1.1.
        more = training.scaled()
        needed = clients_for(more, replace(allowed, delta=None, units=None), survivors)
        found.append(
            f"clients: {needed:,}, of whom {more.per_round:,} in a round with noise "
            f"{more.noise_multiplier:g}, keep the noise in the mean and cost epsilon {MOST:g}"
        )
    return found


def _show(content: Mapping[str, Any]) -> None:
    from fedsynth.cli.terminal import on_stdout
    from fedsynth.planning.forecast import figure
    from fedsynth.privacy.adversaries import adversary_grid
    from fedsynth.views import Grid, Said, View

    title = (
        f"{content['rounds']:,} rounds among {content['clients']:,} clients, noise multiplier "
        f"{content['noise_multiplier']:.4g}: epsilon {figure(content['epsilon'])}, delta "
        f"{content['delta']:.3g}"
    )
    parts: list[Grid | Said] = []
    if content["participations"] is not None:
        parts.append(Said(f"A client refuses after {content['participations']:,} rounds."))
    if content["average"] is not None:
        often, epsilon = content["average"]
        parts.append(
            Said(
                f"To one that takes part as often as on average, {often:,} "
                f"time{'s' * (often != 1)}, it costs epsilon "
                f"{figure(epsilon)}; the figures below are of one that does so as often as it may."
            )
        )
    if content["solved_for"]:
        parts.append(solved_grid(content["solved_for"]))
    parts.append(adversary_grid(content["adversaries"]))
    if "curves" in content:
        drawn = content["curves"]
        columns = ("clients", "central", "local, an average client", "local, the worst")
        lines = zip(*(drawn[key] for key in ("clients", "central", "local", "worst")), strict=True)
        rows = [(f"{n:,}", *map(figure, costs)) for n, *costs in lines]
        parts.append(Said("Epsilon by the number of clients, the noise in the mean kept:"))
        parts.append(Grid(columns, rows, figures=range(4), most=len(rows)))
    parts += [Said(sentence, "caution") for sentence in content["warnings"]]
    parts += [Said(f"Nearest: {sentence}") for sentence in content["suggestions"]]
    parts += [Said(sentence, "quiet") for sentence in content["notes"]]
    on_stdout().print(View(title, parts))


def solved_grid(solved: Mapping[str, Any]) -> Grid:
    """What followed from the options, a line each."""
    from fedsynth.planning.forecast import figure
    from fedsynth.views import Grid

    told = [
        (what, f"{value:,}" if isinstance(value, int) else figure(value, 5))
        for what, value in solved.items()
    ]
    return Grid((), told, figures=(1,), strong=range(len(told)))
