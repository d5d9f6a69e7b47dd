"""`fedsynth plan`: the price of a job before anything is asked of anybody."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from fedsynth.cli.options import Json
from fedsynth.errors import ConfigError, FedsynthError

if TYPE_CHECKING:
    from rich.console import Console

    from fedsynth.methods.synthesizer import Synthesizer
    from fedsynth.planning.forecast import Forecast
    from fedsynth.planning.training import Training
    from fedsynth.privacy.budget import Budget
    from fedsynth.queries.plan import Plan
    from fedsynth.release import Settings
    from fedsynth.schema import ImageSchema, Schema

# Values of a column that no schema describes, as many as the bins of a number.
_VALUES = 24
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
    compare: Annotated[
        bool, typer.Option("--compare", help="Every unit and trust beside each other.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="A new .svg file.")] = None,
    as_json: Json = False,
) -> None:
    """Know the price before: noise, epsilon for each adversary, errors, bytes. Asks nobody.

    What is left out is solved for. Noise: --epsilon 1. Epsilon: --noise 1 of a training. Clients:
    both, with --rounds and --per-round. Epsilon of each of several jobs: --releases 12 --within 3;
    or how many of them: --within 3.
    """
    privacy = {
        "epsilon": epsilon,
        "delta": delta,
        "unit": unit,
        "trust": trust,
        "curious": curious,
    }
    wanted = _Wanted(
        {key: value for key, value in privacy.items() if value is not None},
        clients,
        records,
        each,
        survivors,
        releases,
        within,
    )
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
        if method is not None or compare:
            raise ConfigError("a method, and --compare, go with a schema: give --schema FILE")
        _plan_training(wanted, {**trained, "per_round": per_round}, plot, as_json=as_json)
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
class _Wanted:
    """The public facts that options give."""

    privacy: Mapping[str, Any]
    clients: int | None
    records: int | None
    each: int | None
    survivors: float | None
    releases: int | None
    within: float | None

    def budget(self, given: Mapping[str, Any], *, noise: bool) -> Budget:
        """Of a job file, if any, with the options in its keys' place."""
        from fedsynth.privacy.budget import Budget

        fields = {**given, **self.privacy}
        if "epsilon" not in fields:
            if self.within is not None and self.releases is not None:
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
        wanted: _Wanted,
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
                public = read_public(job, schema, base)
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
    subject: _Subject, wanted: _Wanted, *, compare: bool, plot: Path | None, as_json: bool
) -> None:
    from fedsynth.planning.forecast import plan as forecast_of
    from fedsynth.planning.repeating import cost_of, epsilon_of_each, fit_within

    budget, clients = subject.budget, subject.clients
    solved: dict[str, Any] = {}
    if wanted.releases is not None and wanted.within is not None:
        own = replace(budget, delta=budget.for_clients(clients).resolved_delta)
        each = epsilon_of_each(
            lambda one: subject.plan(replace(own, epsilon=one)), wanted.releases, wanted.within
        )
        budget = replace(own, epsilon=each)
        solved["epsilon of each"] = each
    records = wanted.all_records(clients)
    found = forecast_of(
        subject.synth, budget, clients, records=records, survivors=subject.survivors
    )
    if subject.reason is not None:
        found = replace(found, reason=subject.reason)
    if wanted.releases is not None:
        solved["releases"] = wanted.releases
        solved["epsilon together"] = cost_of(found.plan, wanted.releases)
    elif wanted.within is not None:
        together = fit_within(found.plan, wanted.within)
        solved |= {
            "releases": together.jobs,
            "epsilon together": together.epsilon,
            "releases that an owner's own account admits": together.owner,
        }
    table = _compare(subject, budget, records) if compare else None
    if plot is not None:
        _plot_job(subject, found, plot)
    if as_json:
        from fedsynth.plain import print_json

        print_json({**found.to_dict(), "solved_for": solved, "compared": table})
        return
    _show(found, solved, table)


def _compare(subject: _Subject, budget: Budget, records: int | None) -> list[dict[str, Any]]:
    """The same job for every unit and trust: what it would cost, or why it cannot be."""
    from fedsynth.planning.forecast import plan as forecast_of

    found = []
    for unit in ("record", "client"):
        for trust in ("central", "distributed", "local"):
            line: dict[str, Any] = {"unit": unit, "trust": trust}
            units = budget.units if unit == budget.unit else None
            curious = budget.curious if trust == "distributed" else None
            other = replace(budget, unit=unit, trust=trust, units=units, curious=curious)
            try:
                one = forecast_of(
                    subject.synth,
                    other,
                    subject.clients,
                    records=records,
                    survivors=subject.survivors,
                )
            except FedsynthError as error:
                found.append({**line, "epsilon": None, "noise": None, "said": [str(error)]})
                continue
            noises = [question.noise for question in one.questions]
            found.append(
                {**line, "epsilon": one.epsilon, "noise": noises, "said": list(one.warnings)}
            )
    return found


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
    lines = dict(list(lines.items())[:5])
    label = f"{up} against epsilon: {', '.join(lines)}"
    budget = found.plan.budget
    at = budget.epsilon if budget.private else None
    save_plot(draw_lines(lines, across="epsilon", up=up, label=label, at=at), file)


def _plan_training(
    wanted: _Wanted, given: Mapping[str, Any], plot: Path | None, *, as_json: bool
) -> None:
    from fedsynth.planning import training as rounds
    from fedsynth.planning.repeating import cost_of, fit_within
    from fedsynth.planning.warnings import suggestions_for, warnings_for

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
    made = training.plan(budget, clients, survivors)
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
    content = {
        "clients": clients,
        "rounds": training.rounds,
        "noise_multiplier": made.releases[0].terms.noise_multiplier,
        "epsilon": epsilon,
        "delta": made.budget.resolved_delta,
        "participations": made.participations,
        "adversaries": [asdict(one) for one in found],
        "solved_for": solved,
        "warnings": warnings_for(known, epsilon, found, records),
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
        lines = {
            "central: by the server": list(zip(several, drawn.central, strict=True)),
            "local: an average client": list(zip(several, drawn.local, strict=True)),
            "local: the worst client": list(zip(several, drawn.worst, strict=True)),
        }
        label = "epsilon against the number of clients, noise in the mean kept"
        save_plot(draw_lines(lines, across="clients", up="epsilon", label=label, at=clients), plot)
    if as_json:
        from fedsynth.plain import print_json
        from fedsynth.planning.forecast import spell_infinite

        print_json(spell_infinite(content))
        return
    _show_training(content)


def _enough_noise(
    training: Training, budget: Budget, clients: int, survivors: float, epsilon: float
) -> list[str]:
    """The least noise for an epsilon that promises something, where the given one does not."""
    from fedsynth.planning.warnings import MOST

    if training.noise_multiplier is None or epsilon <= MOST:
        return []
    enough = replace(training, noise_multiplier=None)
    made = enough.plan(replace(budget, epsilon=MOST), clients, survivors)
    return [f"noise: {made.releases[0].terms.noise_multiplier:.4g} costs epsilon {MOST:g}"]


def _show_training(content: Mapping[str, Any]) -> None:
    from rich.console import Console

    from fedsynth.cli.terminal import show_adversaries

    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"\n{content['rounds']:,} rounds among {content['clients']:,} clients, noise multiplier "
        f"{content['noise_multiplier']:.4g}: epsilon {content['epsilon']:.4g} at delta "
        f"{content['delta']:.3g}",
        style="bold",
    )
    if content["participations"] is not None:
        console.print(f"A client refuses after {content['participations']:,} rounds.")
    _show_solved(content["solved_for"], console)
    show_adversaries(_spelled(content["adversaries"]), console)
    _show_words(content, console)


def _spelled(adversaries: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As certificates spell an epsilon without bound."""
    return [
        {**one, "epsilon": "inf" if math.isinf(one["epsilon"]) else one["epsilon"]}
        for one in adversaries
    ]


def _show_solved(solved: Mapping[str, Any], console: Console) -> None:
    for what, figure in solved.items():
        told = f"{figure:,}" if isinstance(figure, int) else f"{figure:.5g}"
        console.print(f"{what[0].upper()}{what[1:]}: {told}", style="bold", markup=False)


def _show_words(content: Mapping[str, Any], console: Console) -> None:
    for warning in content["warnings"]:
        console.print(f"Caution: {warning}", style="yellow", markup=False)
    for suggestion in content["suggestions"]:
        console.print(f"Nearest: {suggestion}", markup=False)
    for note in content["notes"]:
        console.print(f"  {note}", markup=False)


def _show(
    found: Forecast, solved: Mapping[str, Any], compared: list[dict[str, Any]] | None
) -> None:
    from rich.console import Console
    from rich.table import Table

    from fedsynth.cli.terminal import format_bytes, show_adversaries

    console = Console(highlight=False, soft_wrap=True)
    budget = found.plan.budget
    because = "" if found.reason is None else f", because {found.reason}"
    console.print(f"\nMethod: {found.method}{because}.", markup=False)
    console.print(
        f"Epsilon {found.epsilon:.6g} at delta {budget.resolved_delta:.3g}, for a {budget.unit}; "
        f"{budget.trust} trust, {found.plan.clients:,} clients",
        style="bold",
        markup=False,
    )
    console.print(f"Solved for: {found.solved}.", markup=False)
    _show_solved(solved, console)
    table = Table("question", "multiplier", "noise", "a client adds", "epsilon", "signal", "up")
    for one in found.questions:
        times = f", {one.count:,} times" if one.count > 1 else ""
        drawn = "" if one.sampling.startswith("every") else f", {one.sampling}"
        table.add_row(
            f"{one.label}{times}{drawn}",
            f"{one.noise_multiplier:.4g}",
            "a choice" if one.noise is None else f"{one.noise:.4g}",
            f"{one.client_noise:.4g}",
            _figure(one.epsilon),
            _figure(one.signal),
            "-" if one.bytes_up is None else format_bytes(one.bytes_up),
        )
    console.print(table)
    if found.bytes_up is not None:
        console.print(f"A client sends {format_bytes(found.bytes_up)} in all.")
    console.print("Epsilon: of a question by itself. Signal: of a round, over its noise, at most.")
    show_adversaries(_spelled([asdict(one) for one in found.adversaries]), console)
    if found.errors:
        _show_errors(found, console)
    if compared is not None:
        _show_compared(compared, console)
    _show_words(asdict(replace(found, plan=None)), console)  # type: ignore[arg-type]


def _show_errors(found: Forecast, console: Console) -> None:
    from rich.table import Table

    record = found.plan.budget.protects.per_record
    table = Table("tables", "mean error of a cell", "cells")
    if record and found.records is not None:
        table.add_column("records in a cell, on average")
    for one in found.errors:
        cells = [one.what, f"{one.error:,.3g}", f"{one.cells:,.0f}"]
        if record and found.records is not None:
            cells.append(f"{found.records / one.cells:,.3g}")
        table.add_row(*cells)
    console.print(table)
    if not record:
        console.print("  Errors are in clients: one's rows count for 1 together.")


def _show_compared(compared: list[dict[str, Any]], console: Console) -> None:
    from rich.table import Table

    table = Table("unit", "trust", "epsilon", "noise of the questions")
    for one in compared:
        noises = ", ".join("a choice" if x is None else f"{x:.4g}" for x in one["noise"] or ())
        table.add_row(one["unit"], one["trust"], _figure(one["epsilon"]), noises or "refused")
    console.print(table)
    said: dict[str, list[str]] = {}
    for one in compared:
        for sentence in one["said"]:
            said.setdefault(sentence, []).append(f"{one['unit']}, {one['trust']}")
    for sentence, places in said.items():
        console.print(f"  {'; '.join(places)}: {sentence}", markup=False)


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return "no bound" if math.isinf(value) else f"{value:,.4g}"
