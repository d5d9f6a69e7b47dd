"""`fedsynth budget`: what owners have left across jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsynth.cli.options import Json

if TYPE_CHECKING:
    from fedsynth.planning.accounts import OwnersAccount


def budget(
    folder: Annotated[Path, typer.Argument(help="The folder of `federation: ledgers`.")],
    runs: Annotated[
        Path | None, typer.Option(help="A folder of jobs, to name those that spent.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="A new .svg or .png file.")] = None,
    as_json: Json = False,
) -> None:
    """Say what each owner's account has spent, by which jobs, and has left. Changes nothing."""
    from fedsynth.planning.accounts import read_accounts

    if plot is not None:
        from fedsynth.planning.drawing import demand_plot

        demand_plot(plot)
    accounts = read_accounts(folder, runs)
    if plot is not None:
        _plot(accounts, plot)
    if as_json:
        from fedsynth.plain import print_json, spell_infinite

        print_json(spell_infinite([one.to_dict() for one in accounts]))
        return
    _show(accounts)


def _show(accounts: Sequence[OwnersAccount]) -> None:
    from fedsynth.cli.terminal import on_stdout
    from fedsynth.views import Grid, Said

    rows: list[tuple[str, ...]] = []
    strong: list[int] = []
    for one in accounts:
        strong.append(len(rows))
        of = f"{one.epsilon:.4g} at {one.delta:.3g}, {one.unit}s"
        rows.append((one.owner, "", of, "", f"{one.spent:.4g}", f"{one.left:.4g}", ""))
        for share in one.jobs:
            by = share.release or f"job {share.job[:12]}"
            amounts = f"{share.cost:.4g}", f"{share.spent:.4g}", f"{share.left:.4g}"
            rows.append(("", share.date or "-", by, *amounts, f"{share.releases:,}"))
    head = ("owner", "date", "budget, and by what it was spent", "cost", "total", "left", "asked")
    console = on_stdout()
    console.print(Grid(head, rows, figures=(3, 4, 5, 6), strong=strong, most=len(rows)))
    console.print(
        Said(
            "total: epsilon of all so far. left: what one more release of everybody may cost at "
            "that delta, or several. An account holds also for jobs that were chosen by what "
            "earlier ones released, so it counts more than a job's own ledger: about a fifth. "
            "date: of the release, by --runs; accounts hold no times, and jobs stand in order.",
            "quiet",
        )
    )


def _plot(accounts: Sequence[OwnersAccount], file: Path) -> None:
    """What is spent after every job, in order: ledgers hold no times."""
    from fedsynth.planning.drawing import draw_lines, save_plot

    most = sorted(accounts, key=lambda one: -one.spent / one.epsilon)[:5]
    lines = {
        one.owner: [
            (0.0, 0.0),
            *((k + 1.0, share.spent / one.epsilon) for k, share in enumerate(one.jobs)),
        ]
        for one in most
    }
    up, label = "spent, as a share of the budget", "what owners have spent after every job"
    save_plot(draw_lines(lines, across="jobs", up=up, label=label, log=False), file)
