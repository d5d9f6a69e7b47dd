"""`fedsynth account`: what owners have spent and have left across jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsynth.cli.options import Json
from fedsynth.errors import ConfigError

if TYPE_CHECKING:
    from fedsynth.markup import Html
    from fedsynth.planning.accounts import OwnersAccount
    from fedsynth.views import View


def account(
    folder: Annotated[
        Path, typer.Argument(help="`accounts` beside the tables, or of `federation: ledgers`.")
    ],
    runs: Annotated[
        Path | None, typer.Option(help="A folder of jobs, to name and date those that spent.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="A new .html file: table and plot, as one page.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="A new .svg or .png file.")] = None,
    as_json: Json = False,
) -> None:
    """Say what each owner's account has spent, by which jobs, and has left. Changes nothing."""
    from fedsynth.durable import write_whole
    from fedsynth.planning.accounts import read_accounts
    from fedsynth.planning.drawing import demand_plot, save_plot

    if plot is not None:
        demand_plot(plot)
    if page is not None and page.exists():
        raise ConfigError(f"{page} exists already: name a new file")
    accounts = read_accounts(folder, runs)
    if plot is not None:
        save_plot(_draw(accounts), plot)
    if page is not None:
        spent = any(one.jobs for one in accounts)
        write_whole(page, _view(accounts).page(*([_draw(accounts)] * spent)).encode(), private=True)
    if as_json:
        from fedsynth.plain import print_json, spell_infinite

        print_json(spell_infinite([one.to_dict() for one in accounts]))
        return
    from fedsynth.cli.terminal import on_stdout

    on_stdout().print(_view(accounts))


def _view(accounts: Sequence[OwnersAccount]) -> View:
    from fedsynth.views import Grid, Said, View

    rows: list[tuple[str, ...]] = []
    strong: list[int] = []
    for one in accounts:
        strong.append(len(rows))
        limit = f"epsilon {one.epsilon:.4g}" if math.isfinite(one.epsilon) else "no limit"
        of = f"{limit} at delta {one.delta:.3g}, {one.unit}s"
        rows.append((one.owner, "", of, "", f"{one.spent:.4g}", _left(one.left), ""))
        for share in one.jobs:
            by = share.release or f"job {share.job[:12]}"
            amounts = f"{share.cost:.4g}", f"{share.spent:.4g}", _left(share.left)
            rows.append(("", share.date or "-", by, *amounts, f"{share.releases:,}"))
    head = ("owner", "date", "limit, and by what it was spent", "cost", "total", "left", "asked")
    told = (
        "total: epsilon of all so far. left: what one more release of everybody may cost at that "
        "delta, or several. An account holds also for jobs that were chosen by what earlier ones "
        "released, so it counts more than a job's own ledger: about a fifth. date: of the release, "
        "by --runs; accounts hold no times, and jobs stand in order."
    )
    free = any(math.isinf(one.epsilon) for one in accounts)
    unlimited = (
        "An account without a limit counts and refuses nothing: a job that says federation: "
        "{ledgers: {epsilon: 3}} sets one for good."
    )
    return View(
        "What owners have spent",
        [
            Grid(head, rows, figures=(3, 4, 5, 6), strong=strong, most=len(rows)),
            Said(told, "quiet"),
            *([Said(unlimited, "quiet")] if free else []),
        ],
    )


def _left(epsilon: float) -> str:
    return f"{epsilon:.4g}" if math.isfinite(epsilon) else "-"


def _draw(accounts: Sequence[OwnersAccount]) -> Html:
    """What is spent after every job, in order: accounts hold no times."""
    from fedsynth.planning.drawing import draw_lines

    most = sorted(accounts, key=lambda one: -one.spent)[:5]
    lines = {
        one.owner: [(0.0, 0.0), *((k + 1.0, share.spent) for k, share in enumerate(one.jobs))]
        for one in most
    }
    up, label = "epsilon of all so far", "what owners have spent after every job"
    return draw_lines(lines, across="jobs", up=up, label=label, log=False)
