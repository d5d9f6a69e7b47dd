"""`fedsynth plan`: the price of a job before anything is asked of anybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsynth.cli.options import Json
from fedsynth.cli.subjects import Subject, warn
from fedsynth.cli.trainings import Wanted, plan_training, solved_grid
from fedsynth.errors import ConfigError, FedsynthError
from fedsynth.plain import print_note

if TYPE_CHECKING:
    from fedsynth.planning.comparing import Compared
    from fedsynth.planning.forecast import Forecast
    from fedsynth.planning.rehearsal import Rehearsal
    from fedsynth.queries.plan import Plan

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
    unit: Annotated[str | None, typer.Option(help="record, person or client.")] = None,
    trust: Annotated[str | None, typer.Option(help="central, distributed or local.")] = None,
    curious: Annotated[int | None, typer.Option(help="Owners that may collude.")] = None,
    weigh: Annotated[
        str | None, typer.Option(help="Of persons: person (1/k for each of k rows) or row.")
    ] = None,
    person_clip: Annotated[
        float | None, typer.Option(help="Of persons: how many rows one may count together.")
    ] = None,
    person_share: Annotated[
        float | None, typer.Option(help="Of persons: the share that counts their rows; 0 for none.")
    ] = None,
    rows_a_person: Annotated[
        str | None,
        typer.Option(metavar="N,N,..", help="Persons of 1, 2, 3-4, 5-8, .. rows, as expected."),
    ] = None,
    clients: Annotated[int | None, typer.Option(help="How many take part.")] = None,
    records: Annotated[int | None, typer.Option(help="Records of all clients together.")] = None,
    each: Annotated[int | None, typer.Option(help="Records of each client.")] = None,
    survivors: Annotated[
        float | None, typer.Option(help="Share of the clients that is sure to answer.")
    ] = None,
    secure: Annotated[
        bool | None, typer.Option("--secure/--no-secure", help="With secure sums, or without.")
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
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", help="Time and memory, by the job itself on invented rows."),
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
        "weigh": weigh,
        "person_clip": person_clip,
        "person_share": person_share,
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
        secure,
        None if rows_a_person is None else _read_numbers("--rows-a-person", rows_a_person),
    )
    if trials is not None and releases is not None:
        raise ConfigError("--releases keeps every job, --trials the best alone: give one of them")
    trained = {"rounds": rounds, "rate": rate, "noise_multiplier": noise}
    trained = {key: value for key, value in trained.items() if value is not None}
    if plot is not None:
        from fedsynth.planning.drawing import demand_plot

        demand_plot(plot)
    if config is None and schema is None and columns is None:
        if rounds is None:
            raise ConfigError(
                "say what is planned: a job file, --schema FILE, --columns N, or a training by "
                "itself: --rounds N with --per-round or --rate"
            )
        if method is not None or compare or rehearse or trials is not None or secure:
            raise ConfigError(
                "a method, --compare, --rehearse, --trials and --secure go with a schema: give "
                "--schema FILE"
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
    subject = Subject.of(config, changes or [], schema, columns, method, trained, wanted)
    _plan_job(subject, wanted, compare=compare, rehearse=rehearse, plot=plot, as_json=as_json)


def _read_numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(
            f"{option} takes numbers and commas, as 500,300,120, not {text!r}"
        ) from None


def _plan_job(
    subject: Subject,
    wanted: Wanted,
    *,
    compare: bool,
    rehearse: bool,
    plot: Path | None,
    as_json: bool,
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
        rows_a_person=wanted.rows_a_person,
        survivors=subject.survivors,
        secure=subject.secure,
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
            subject.synth,
            budget,
            clients,
            records=records,
            rows_a_person=wanted.rows_a_person,
            survivors=subject.survivors,
            secure=subject.secure,
        )
    rehearsed = None
    if rehearse:
        from fedsynth.planning.rehearsal import rehearse as rehearse_job

        rehearsed = rehearse_job(
            subject.synth,
            budget,
            clients,
            records,
            survivors=subject.survivors,
            secure=subject.secure,
            progress=True,
        )
    carried = subject.carried(found.plan)
    if plot is not None:
        _plot_job(subject, found, plot)
    if as_json:
        from fedsynth.plain import print_json, spell_infinite

        several = None if table is None else [one.to_dict() for one in table]
        more: dict[str, Any] = {"solved_for": solved, "compared": several}
        if carried is not None:
            more["carrier"] = carried[0]
        if rehearsed is not None:
            more["rehearsal"] = asdict(rehearsed)
        print_json(spell_infinite({**found.to_dict(), **more}))
        return
    _show(found, solved, table, rehearsed)
    if carried is not None:
        from fedsynth.cli.terminal import on_stdout

        told = f"\nOn Flower it goes by {carried[0]} ({carried[1]}); `fedsynth serve` has streams."
        on_stdout().print(told, markup=False)


def show_dry_run(config: str, changes: list[str], *, as_json: bool) -> None:
    """A job as far as it goes without anybody being asked."""
    from fedsynth.jobs.config import load_config
    from fedsynth.jobs.dry_run import dry_run
    from fedsynth.progress import Display

    found = dry_run(*load_config(config, changes), Display(quiet=True).caution)
    if as_json:
        from fedsynth.plain import print_json

        print_json(found.to_dict())
        return
    _show(found, {}, None, None)
    print_note("Nobody was asked, nothing was charged and nothing written.")


def _plot_job(subject: Subject, found: Forecast, file: Path) -> None:
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
                records=found.records,
                survivors=subject.survivors,
                secure=subject.secure,
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
        warn(f"the plot has room for {_LINES} lines: it leaves out {', '.join(left_out)}")
    lines = dict(list(lines.items())[:_LINES])
    label = f"{up} against epsilon: {', '.join(lines)}"
    budget = found.plan.budget
    at = budget.epsilon if budget.private else None
    save_plot(draw_lines(lines, across="epsilon", up=up, label=label, at=at), file)


def _show(
    found: Forecast,
    solved: Mapping[str, Any],
    compared: Sequence[Compared] | None,
    rehearsed: Rehearsal | None,
) -> None:
    from fedsynth.cli.terminal import on_stdout

    console = on_stdout()
    console.print(found)
    if rehearsed is not None:
        console.print(f"\n{rehearsed.sentence}", markup=False)
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
