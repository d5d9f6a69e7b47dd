"""What a person at a terminal sees: progress on stderr, results on stdout."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

if TYPE_CHECKING:
    from fedsynth.evaluation.evaluating import Evaluation
    from fedsynth.evaluation.federated import FederatedScores, Figure
    from fedsynth.federation.server.traffic import Traffic
    from fedsynth.jobs.run import Outcome, Scores
    from fedsynth.privacy.verify.check import Check
    from fedsynth.schema.checking import ColumnCheck, Finding

_LINES = 10


class Display:
    """Shows each step, its rounds and the epsilon spent; plain lines where there is no terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bars: Progress | None = None
        self._steps: dict[str, TaskID] = {}
        self._printed: dict[str, int] = {}

    def __enter__(self) -> Display:
        console = Console(stderr=True)
        if console.is_terminal and not self._quiet:
            self._bars = Progress(
                TextColumn("{task.description:<14}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[spent]}"),
                TimeRemainingColumn(),
                console=console,
            )
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, step: str, done: int, total: int, epsilon: float) -> None:
        """One report of a fit, as `fedsynth.queries.options.Progress` describes it."""
        if self._quiet:
            return
        if self._bars is None:
            self._print_line(step, done, total, epsilon)
            return
        if step not in self._steps:
            self._steps[step] = self._bars.add_task(step, total=total, spent="")
        self._bars.update(self._steps[step], completed=done, spent=_format_spent(epsilon))

    def _print_line(self, step: str, done: int, total: int, epsilon: float) -> None:
        tenth = done * _LINES // max(1, total)
        if done and self._printed.get(step) != tenth:
            self._printed[step] = tenth
            spent = _format_spent(epsilon)
            print(f"{step} {done}/{total}{', ' if spent else ''}{spent}", file=sys.stderr)

    def caution(self, sentence: str) -> None:
        """What epsilon does not cover, said also to those who want no progress."""
        out = Console(stderr=True) if self._bars is None else self._bars.console
        out.print(f"Caution: {sentence}", markup=False, highlight=False, soft_wrap=True)

    def show_step(self, step: str, done: int, total: int) -> None:
        """A report of a step that spends nothing."""
        self(step, done, total, math.nan)


def _format_spent(epsilon: float) -> str:
    return "" if math.isnan(epsilon) else f"epsilon spent {epsilon:.3g}"


def show_outcome(outcome: Outcome) -> None:
    """The release's paths, the certificate's sentence and the scores."""
    console = Console(highlight=False, soft_wrap=True)
    content = outcome.certificate.content
    console.print(f"\nRelease in {outcome.folder}", style="bold", markup=False)
    rows = [name for name in content["files"] if name.startswith("rows.")]
    others = [name for name in content["files"] if name not in rows]
    for name in [*rows, "certificate.json", *others]:
        console.print(f"  {outcome.folder / name}", markup=False)
    if outcome.reason is not None:
        console.print(f"\nMethod: {outcome.method}, because {outcome.reason}.", markup=False)
    for remark in outcome.remarks:
        console.print(f"\nNote: {remark}.", style="yellow", markup=False)
    if outcome.traffic is not None:
        _show_traffic(outcome.traffic, console)
    console.print("\nCertificate", style="bold")
    void = outcome.certificate.void is not None
    console.print(
        f"  {outcome.certificate.sentence}", style="bold red" if void else None, markup=False
    )
    for line in (*content["not_covered"], *content["cautions"]):
        console.print(f"  {line}", markup=False)
    if not void and "adversaries" in content:
        _show_adversaries(content["adversaries"], console)
    head = content["ledger"]["head"]
    console.print(f"  Check it: fedsynth verify {outcome.folder} --head {head}", markup=False)
    console.print("  Publish the head: it fixes every file of the release.")
    if outcome.scores is not None:
        _show_run_scores(outcome.scores, outcome.folder, console)


def _show_adversaries(adversaries: Sequence[Mapping[str, Any]], console: Console) -> None:
    table = Table("for", "who knows", "epsilon", "promised")
    for one in adversaries:
        epsilon = "no bound" if one["epsilon"] == "inf" else f"{one['epsilon']:.4g}"
        table.add_row(one["who"], one["knows"], epsilon, "yes" if one["promised"] else "no")
    console.print(table)


def _show_traffic(traffic: Traffic, console: Console) -> None:
    size, unit = traffic.bytes_per_client, "bytes"
    for larger in ("kB", "MB", "GB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    console.print(
        f"\nMessages: {traffic.calls_per_client:.3g} a client, of {size:.3g} {unit} together.",
        markup=False,
    )


def _show_run_scores(scores: Scores, folder: Path, console: Console) -> None:
    console.print("\nScores on real rows held out", style="bold")
    if scores.why is not None:
        console.print(f"  None. {scores.why}", markup=False)
    if scores.comparison is not None:
        table = Table("trained on", "accuracy", "AUROC")
        for name, score in (
            ("synthetic rows", scores.comparison.synthetic),
            ("real rows", scores.comparison.real),
            ("nothing: commonest class", scores.comparison.majority),
        ):
            figures = (score.accuracy, score.auroc)
            table.add_row(name, *(f"{x:.3f}" if math.isfinite(x) else "-" for x in figures))
        console.print(table)
    for error in scores.marginals:
        worst = " x ".join(error.worst_columns)
        what = "each column" if error.order == 1 else "pairs of columns"
        console.print(
            f"  Total variation of {what}: {error.mean:.3f} on average, {error.worst:.3f} at worst "
            f"({worst})",
            markup=False,
        )
    console.print(
        "  These figures come from real rows and are not covered by epsilon: do not publish them "
        "beside the release. They are not stored in it."
    )
    console.print(f"  More, and attacks: fedsynth evaluate {folder}", markup=False)


def show_evaluation(evaluation: Evaluation, page: Path) -> None:
    """The verdict, four figures, the attacks, what to beware of, and where the report is."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"\n{evaluation.summary.verdict}\n", style="bold", markup=False)
    table = Table("", "synthetic rows", "real rows", "trivial", "better")
    for line in evaluation.summary.headlines:
        figures = (_format_figure(value) for value in (line.value, line.real, line.trivial))
        table.add_row(line.name, *figures, line.better)
    console.print(table)
    attacks = [*evaluation.privacy.membership, *evaluation.privacy.risks]
    if attacks:
        names = ", ".join(evaluation.caught) or "none"
        console.print(
            f"{len(attacks)} attacks, of which told training rows from others: {names}.",
            markup=False,
        )
    for reason in evaluation.privacy.skipped:
        console.print(f"  Not run. {reason}", markup=False)
    console.print("\nBeware", style="bold")
    for warning in evaluation.summary.beware:
        console.print(f"  {warning}", markup=False)
    console.print(f"\nReport: {page}", markup=False)


def show_scores(scores: FederatedScores, folder: Path) -> None:
    """Scores by owner with their errors, what they cost, and where they are."""
    console = Console(highlight=False, soft_wrap=True)
    table = Table("owner", "records", "distance of columns", "accuracy", "AUROC")
    lines = list(scores.owners)
    if scores.pooled is not None and len(lines) != 1:
        lines.append(replace(scores.pooled, name="all"))
    for one in lines:
        records = "-" if one.records is None else f"{one.records.value:,.0f}"
        figures = (one.mean_distance, one.accuracy, one.auroc)
        table.add_row(one.name, records, *map(_format_with_error, figures))
    for name, score in scores.across.items() if not lines else ():
        spread = "-" if score.spread is None else f"{score.spread:.3f}"
        console.print(
            f"{name}: {_format_with_error(score.weighted)} over clients, spread {spread}",
            markup=False,
        )
    if lines:
        console.print(table)
    for note in scores.notes:
        console.print(f"  {note}", markup=False)
    content = scores.certificate.content
    console.print()
    for line in (scores.certificate_sentence, *content["not_covered"], *content["cautions"]):
        console.print(line, markup=False)
    console.print(f"Scores: {folder}. Check them: fedsynth verify {folder}", markup=False)


def _format_with_error(figure: Figure | None) -> str:
    return "-" if figure is None else f"{figure.value:.3f} +- {figure.error:.3f}"


def _format_figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def show_checks(checks: Sequence[Check]) -> None:
    """What was verified, one row a check."""
    table = Table("check", "", "found")
    for check in checks:
        mark = "[green]ok[/]" if check.passed else "[red]FAILED[/]"
        table.add_row(check.name, mark, check.found)
    Console().print(table)


def show_columns(columns: Sequence[ColumnCheck], constraints: Sequence[Finding]) -> None:
    """A table beside its schema, one row a column, and the constraints that rows break."""
    table = Table("column", "allowed", "found", "outside", "share", "for example")
    for one in columns:
        outside = one.fault or ("" if one.outside is None else f"{one.outside:,}")
        share = f"{one.share:.1%}" if one.share else ""
        examples = ", ".join(f"{value} ({count:,})" for value, count in one.examples)
        cells = (one.column, one.allowed or "", one.found or "", outside, share, examples)
        table.add_row(*map(escape, cells))
    for broken in constraints:
        rule = f"{broken.rule} {broken.value}"
        table.add_row(escape(broken.column), escape(rule), "", f"{broken.count:,}", "", "")
    Console().print(table)
