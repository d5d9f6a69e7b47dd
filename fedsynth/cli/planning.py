"""`fedsynth plan`: the price of a job before anything is asked of anybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from fedsynth.cli.options import Json
from fedsynth.cli.trainings import Wanted, plan_training, solved_grid
from fedsynth.errors import ConfigError, FedsynthError
from fedsynth.plain import print_note

if TYPE_CHECKING:
    from fedsynth.methods.synthesizer import Synthesizer
    from fedsynth.planning.comparing import Compared
    from fedsynth.planning.forecast import Forecast
    from fedsynth.privacy.budget import Budget
    from fedsynth.queries.plan import Plan
    from fedsynth.release import Settings
    from fedsynth.schema import ImageSchema, Schema

# Values of a column that no schema describes, as many as the bins of a number.
_VALUES = 24
_LINES = 5
"""That a plot tells apart."""
_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def plan(
    config: Annotated[
        str | None, typer.Argument(help="A job file; or say with options what is planned.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a key of the job file."),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="A schema file, in place of a job's.")] = None,
    columns: Annotated[
        int | None, typer.Option(help="So many columns of 24 values, in place of a schema.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="A method; default: as auto chooses.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Of the whole job.")] = None,
    delta: Annotated[float | None, typer.Option(help="In (0, 1).")] = None,
    unit: Annotated[str | None, typer.Option(help="record or client.")] = None,
    trust: Annotated[str | None, typer.Option(help="central, distributed or local.")] = None,
    curious: Annotated[int | None, typer.Option(help="Owners that may collude.")] = None,
    clients: Annotated[int | None, typer.Option(help="How many take part.")] = None,
    records: Annotated[int | None, typer.Option(help="Records of all clients together.")] = None,
    each: Annotated[int | None, typer.Option(help="Records of each client.")] = None,
    survivors: Annotated[
        float | None, typer.Option(help="Share of the clients that is sure to answer.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Of a training.")] = None,
    per_round: Annotated[
        int | None, typer.Option(help="Clients that a round draws on average.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Share of units that a round draws.")] = None,
    noise: Annotated[
        float | None, typer.Option(help="Multiplier of a training: its noise over its clip.")
    ] = None,
    releases: Annotated[int | None, typer.Option(help="So many jobs like this one.")] = None,
    within: Annotated[
        float | None, typer.Option(help="An epsilon for several jobs like this together.")
    ] = None,
    trials: Annotated[
        float | None,
        typer.Option(help="Of settings, on average, of which the best alone is released."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Every unit and trust beside each other.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="A new .svg or .png file.")] = None,
    as_json: Json = False,
) -> None:
    """Know the price before: noise, epsilon for each adversary, errors, bytes. Asks nobody.

    What is left out is solved for. Noise: --epsilon 1. Epsilon: --noise 1 of a training. Clients:
    both, with --rounds and --per-round. Epsilon of each of several jobs: --releases 12 --within 3;
    or how many of them: --within 3. Of each of so many trials of settings: --trials 10 --within 1.
    """
    privacy = {
        "epsilon": epsilon,
        "delta": delta,
        "unit": unit,
        "trust": trust,
        "curious": curious,
    }
    wanted = Wanted(
        {key: value for key, value in privacy.items() if value is not None},
        clients,
        records,
        each,
        survivors,
        releases,
        within,
        trials,
    )
    if trials is not None and releases is not None:
        raise ConfigError("--releases keeps every job, --trials the best alone: give one of them")
    trained = {"rounds": rounds, "rate": rate, "noise_multiplier": noise}
    trained = {key: value for key, value in trained.items() if value is not None}
    if plot is not None and plot.exists():
        raise ConfigError(f"{plot} exists already: name a new file")
    if config is None and schema is None and columns is None:
        if rounds is None:
            raise ConfigError(
                "say what is planned: a job file, --schema FILE, --columns N, or a training by "
                "itself: --rounds N with --per-round or --rate"
            )
        if method is not None or compare or trials is not None:
            raise ConfigError(
                "a method, --compare and --trials go with a schema: give --schema FILE"
            )
        plan_training(wanted, {**trained, "per_round": per_round}, plot, as_json=as_json)
        return
    if per_round is not None:
        if wanted.clients is None:
            raise ConfigError("--per-round goes with --clients here")
        trained["rate"] = per_round / wanted.clients
    if (config is not None) + (schema is not None) + (columns is not None) > 1:
        raise ConfigError("give one of a job file, --schema and --columns")
    if config is None and changes:
        raise ConfigError("--set changes a job file: name one")
    subject = _Subject.of(config, changes or [], schema, columns, method, trained, wanted)
    _plan_job(subject, wanted, compare=compare, plot=plot, as_json=as_json)


@dataclass(frozen=True)
class _Subject:
    """What is planned: a synthesizer, and what a job file says beside it."""

    synth: Synthesizer[Any]
    reason: str | None
    budget: Budget
    clients: int
    survivors: float

    @classmethod
    def of(
        cls,
        config: str | None,
        changes: list[str],
        schema_file: Path | None,
        columns: int | None,
        method: str | None,
        trained: Mapping[str, Any],
        wanted: Wanted,
    ) -> _Subject:
        schema: Schema | ImageSchema
        settings: Settings | None = None
        clients, survivors, given = wanted.clients, 1.0, dict[str, Any]()
        public = None
        if config is not None:
            from fedsynth.jobs.config import AUTO, load_config
            from fedsynth.jobs.data import count_clients, read_public, read_schema

            job, base = load_config(config, changes)
            schema = read_schema(job, base)
            given, survivors = job.privacy.model_dump(), job.federation.survivors
            clients = count_clients(job, schema) if clients is None else clients
            if method is None and job.method != AUTO:
                method = job.method
                settings = job.settings
                public = read_public(job, schema, base, _caution)
        else:
            schema = _schema_of(schema_file, columns)
        if clients is None:
            raise ConfigError("give --clients: how many take part is public, and sizes the noise")
        from fedsynth.registry import choose, synthesizer

        budget = wanted.budget(given, noise="noise_multiplier" in trained)
        reason = None
        if method is None:
            choice = choose(schema, budget)
            method, reason = choice.method, choice.reason
        synth = synthesizer(method, schema, settings, public)
        for name in trained:
            if name not in synth.settings_type.model_fields:
                option = {"noise_multiplier": "noise"}.get(name, name)
                raise ConfigError(
                    f"--{option} is of a training, and {method} has none: its noise follows from "
                    "--epsilon"
                )
        if trained:
            more = {} if public is None else {"public": public}
            # A protocol that all methods' settings meet, which are models.
            synth = type(synth)(schema, cast("Any", settings), **trained, **more)
        given_survivors = survivors if wanted.survivors is None else wanted.survivors
        return cls(synth, reason, budget, clients, given_survivors)

    def plan(self, budget: Budget) -> Plan:
        return self.synth.plan(budget, self.clients, self.survivors)


def _caution(sentence: str) -> None:
    print_note(f"Caution: {sentence}")


def _schema_of(file: Path | None, columns: int | None) -> Schema | ImageSchema:
    from fedsynth.schema import Categorical, Schema, load_schema

    if file is not None:
        return load_schema(file)
    assert columns is not None
    if columns < 1:
        raise ConfigError(f"--columns must be at least 1, not {columns}")
    values = tuple(range(_VALUES))
    names = (f"column {k + 1}" for k in range(columns))
    return Schema(columns=tuple(Categorical(name=name, values=values) for name in names))


def _plan_job(
    subject: _Subject, wanted: Wanted, *, compare: bool, plot: Path | None, as_json: bool
) -> None:
    from fedsynth.planning.forecast import plan as forecast_of
    from fedsynth.planning.repeating import cost_of, epsilon_of_each, fit_within
    from fedsynth.planning.selecting import epsilon_of_trial
    from fedsynth.planning.warnings import settle_two

    budget, clients = subject.budget, subject.clients
    solved: dict[str, Any] = {}
    if wanted.within is not None and (wanted.releases or wanted.trials) is not None:
        own = settle_two(budget, clients)
        own = replace(own, delta=own.for_clients(clients).resolved_delta)

        def one(epsilon: float) -> Plan:
            return subject.plan(replace(own, epsilon=epsilon))

        if wanted.trials is not None:
            each = epsilon_of_trial(one, wanted.trials, wanted.within)
            solved["epsilon of each trial"] = each
        else:
            assert wanted.releases is not None
            each = epsilon_of_each(one, wanted.releases, wanted.within)
            solved["epsilon of each"] = each
        budget = replace(budget, delta=own.delta, epsilon=each)
    records = wanted.all_records(clients)
    found = forecast_of(
        subject.synth,
        budget,
        clients,
        records=records,
        survivors=subject.survivors,
        trials=wanted.trials,
    )
    if subject.reason is not None:
        found = replace(found, reason=subject.reason)
    if wanted.releases is not None:
        solved["releases"] = wanted.releases
        solved["epsilon together"] = cost_of(found.plan, wanted.releases)
    elif found.selection is not None:
        solved["trials, on average"] = found.selection.mean
        solved["epsilon of the best alone"] = found.selection.epsilon
    elif wanted.within is not None:
        together = fit_within(found.plan, wanted.within)
        solved |= {
            "releases": together.jobs,
            "epsilon together": together.epsilon,
            "releases that an owner's own account admits": together.owner,
        }
    table = None
    if compare:
        from fedsynth.planning.comparing import compare as compare_all

        table = compare_all(
            subject.synth, budget, clients, records=records, survivors=subject.survivors
        )
    if plot is not None:
        _plot_job(subject, found, plot)
    if as_json:
        from fedsynth.plain import print_json, spell_infinite

        several = None if table is None else [one.to_dict() for one in table]
        print_json(spell_infinite({**found.to_dict(), "solved_for": solved, "compared": several}))
        return
    _show(found, solved, table)


def _plot_job(subject: _Subject, found: Forecast, file: Path) -> None:
    """Errors against epsilon; where a method states none, the noise of its questions."""
    from fedsynth.planning.drawing import draw_lines, save_plot
    from fedsynth.planning.forecast import plan as forecast_of

    lines: dict[str, list[tuple[float, float]]] = {}
    for epsilon in _EPSILONS:
        try:
            one = forecast_of(
                subject.synth,
                replace(found.plan.budget, epsilon=epsilon),
                subject.clients,
                survivors=subject.survivors,
            )
        except FedsynthError:
            # Fixed noise may cost more than so little.
            continue
        figures = {error.what: error.error for error in one.errors if "target" not in error.what}
        if not found.errors:
            figures = {question.label: question.noise_multiplier for question in one.questions}
        for name, figure in figures.items():
            lines.setdefault(name, []).append((epsilon, figure))
    unit = found.plan.budget.unit
    up = f"mean error of a cell, in {unit}s" if found.errors else "noise multiplier"
    if left_out := list(lines)[_LINES:]:
        _caution(f"the plot has room for {_LINES} lines: it leaves out {', '.join(left_out)}")
    lines = dict(list(lines.items())[:_LINES])
    label = f"{up} against epsilon: {', '.join(lines)}"
    budget = found.plan.budget
    at = budget.epsilon if budget.private else None
    save_plot(draw_lines(lines, across="epsilon", up=up, label=label, at=at), file)


def _show(found: Forecast, solved: Mapping[str, Any], compared: Sequence[Compared] | None) -> None:
    from fedsynth.cli.terminal import on_stdout

    console = on_stdout()
    console.print(found)
    if solved:
        console.print()
        console.print(solved_grid(solved))
    if compared is not None:
        console.print()
        from fedsynth.planning.comparing import comparison_view

        table, said = comparison_view(compared)
        console.print(table)
        for sentence in said:
            console.print(sentence)
