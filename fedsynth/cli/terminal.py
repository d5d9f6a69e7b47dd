"""What a person at a terminal sees of results, on stdout."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from fedsynth.views import Grid, Said, clean

if TYPE_CHECKING:
    from fedsynth.evaluation.evaluating import Evaluation
    from fedsynth.evaluation.federated import FederatedScores
    from fedsynth.jobs.run import Outcome
    from fedsynth.jobs.scoring import Scores
    from fedsynth.schema.checking import ColumnCheck, Violation
    from fedsynth.tuning.training import Trained

_ANY = 10_000
"""Characters of a line where nobody reads it: programs look for whole sentences."""


class _Plain(Console):
    """A console on which no text that is printed moves the cursor or changes colours by itself."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(_spell(one) if isinstance(one, str) else one for one in objects), **options)


def _spell(text: str) -> str:
    return "\n".join(map(clean, text.split("\n")))


def on_stdout() -> Console:
    """What prints on stdout: a terminal's lines are broken between words, other lines never."""
    return _Plain(highlight=False, width=None if sys.stdout.isatty() else _ANY)


def on_stderr() -> Console:
    """The same of stderr."""
    return _Plain(stderr=True, highlight=False, width=None if sys.stderr.isatty() else _ANY)


def show_outcome(outcome: Outcome) -> None:
    """The release's paths, the certificate and the scores."""
    console, content = on_stdout(), outcome.certificate.content
    console.print(f"\nRelease in {outcome.folder}", style="bold", markup=False, soft_wrap=True)
    rows = [name for name in content["files"] if name.startswith("rows.")]
    others = [name for name in content["files"] if name not in rows]
    for name in [*rows, "certificate.html", "certificate.json", *others]:
        console.print(f"  {outcome.folder / name}", markup=False, soft_wrap=True)
    if outcome.accounts:
        console.print("Charged to the owners' accounts across jobs; all so far, and what is left:")
    for place in dict.fromkeys(file.parent for file in outcome.accounts):
        console.print(f"  fedsynth account {place}", markup=False, soft_wrap=True)
    if outcome.reason is not None:
        console.print(f"\nMethod: {outcome.method}, because {outcome.reason}.", markup=False)
    for remark in outcome.remarks:
        console.print(Said(f"{remark}.", "caution"))
    if outcome.traffic is not None:
        console.print(f"\nMessages: {outcome.traffic.words}.", markup=False)
    console.print()
    console.print(outcome.certificate)
    check = f"Check it: fedsynth verify {outcome.folder} --head {content['ledger']['head']}"
    console.print(check, markup=False, soft_wrap=True)
    console.print("Publish the head: it fixes every file of the release.")
    if outcome.scores is not None:
        _show_run_scores(outcome.scores, outcome.folder, console, rows=bool(rows))
    if not rows:
        console.print(
            f"A classifier, and no rows. Classify a table: fedsynth predict {outcome.folder} "
            "table.csv -o classes.csv",
            markup=False,
            soft_wrap=True,
        )


def _show_run_scores(scores: Scores, folder: Path, console: Console, *, rows: bool) -> None:
    console.print("\nScores on real rows held out", style="bold")
    if scores.why is not None:
        console.print(f"None. {scores.why}", markup=False)
    if scores.comparison is not None:
        lines = []
        for name, score in (
            ("synthetic rows" if rows else "this classifier", scores.comparison.synthetic),
            ("real rows", scores.comparison.real),
            ("nothing: commonest class", scores.comparison.majority),
        ):
            figures = (score.accuracy, score.auroc)
            lines.append((name, *(f"{x:.3f}" if math.isfinite(x) else "-" for x in figures)))
        console.print(
            Grid(("trained on" if rows else "", "accuracy", "AUROC"), lines, figures=(1, 2))
        )
        console.print()
    for error in scores.marginals:
        worst = " x ".join(error.worst_columns)
        what = "each column" if error.order == 1 else "pairs of columns"
        console.print(
            f"Total variation of {what}: {error.mean:.3f} on average, {error.worst:.3f} at worst "
            f"({worst})",
            markup=False,
        )
    warning = (
        "These figures come from real rows and are not covered by epsilon: do not publish them "
        "beside the release. They are not stored in it."
    )
    console.print(Said(warning, "caution"))
    if rows:
        more = f"More, and attacks: fedsynth evaluate {folder}"
        console.print(more, markup=False, soft_wrap=True)


def show_trained(trained: Trained) -> None:
    """A classifier with the settings of a search, beside one with the job's own."""
    show_outcome(trained.outcome)
    if trained.default is not None:
        figures = (trained.default.accuracy, trained.default.auroc)
        said = " and ".join(f"{x:.3f}" if math.isfinite(x) else "-" for x in figures)
        on_stdout().print(
            Said(
                f"The same with the job's own settings: accuracy and AUROC {said}, a private "
                "figure, too. Nothing else of that training was seen or kept."
            )
        )


def trained_json(trained: Trained) -> dict[str, Any]:
    """What `--json` prints of it."""
    told = outcome_json(trained.outcome)
    if trained.default is not None:
        told["scores"]["default"] = asdict(trained.default)
        del told["scores"]["default"]["rows"]
    return told


def show_evaluation(evaluation: Evaluation, page: Path) -> None:
    """What a shell shows of it, the attacks that were run, and where the report is."""
    console = on_stdout()
    console.print()
    console.print(evaluation)
    attacks = [*evaluation.privacy.membership, *evaluation.privacy.risks]
    if attacks:
        names = ", ".join(evaluation.caught) or "none"
        console.print(
            f"\n{len(attacks)} attacks, of which told training rows from others: {names}.",
            markup=False,
        )
    for reason in evaluation.privacy.skipped:
        console.print(f"Not run. {reason}", markup=False)
    console.print(f"\nReport: {page}", markup=False, soft_wrap=True)


def show_scores(scores: FederatedScores, folder: Path) -> None:
    """Scores by owner with their errors, what they cost, and where they are."""
    console = on_stdout()
    console.print(scores)
    told = f"\nScores: {folder}. Check them: fedsynth verify {folder}"
    console.print(told, markup=False, soft_wrap=True)


def show_columns(columns: Sequence[ColumnCheck], constraints: Sequence[Violation]) -> None:
    """A table beside its schema, one row a column, and the constraints that rows break."""
    rows = []
    for one in columns:
        outside = one.fault or ("" if one.outside is None else f"{one.outside:,}")
        share = f"{one.share:.1%}" if one.share else ""
        examples = ", ".join(f"{value} ({count:,})" for value, count in one.examples)
        rows.append((one.column, one.allowed or "", one.found or "", outside, share, examples))
    for broken in constraints:
        rule = f"{broken.rule} {broken.value}"
        rows.append((broken.column, rule, "", f"{broken.count:,}", "", ""))
    strong = [place for place, row in enumerate(rows) if row[3] not in ("", "0")]
    head = ("column", "allowed", "found", "outside", "share", "for example")
    on_stdout().print(Grid(head, rows, figures=(3, 4), strong=strong))


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """What `--json` prints of a job."""
    certificate = outcome.certificate
    scores = None
    if outcome.scores is not None:
        scores = {
            "note": "computed on real rows, not covered by epsilon: do not publish them",
            **asdict(outcome.scores),
        }
        comparison = scores["comparison"]
        if comparison and not any(
            name.startswith("rows.") for name in certificate.content["files"]
        ):
            comparison["classifier"] = comparison.pop("synthetic")
        for one in (comparison or {}).values():
            # The exact number held out: whoever holds the rows knows it, and nobody else is to.
            del one["rows"]
    return {
        "release": str(outcome.folder),
        "method": outcome.method,
        "reason": outcome.reason,
        "remarks": outcome.remarks,
        "incidents": outcome.incidents,
        "epsilon": certificate.content["guarantee"]["epsilon"],
        "delta": certificate.content["guarantee"]["delta"],
        "sentence": certificate.sentence,
        "adversaries": certificate.content.get("adversaries"),
        "head": certificate.content["ledger"]["head"],
        "accounts": [str(file) for file in outcome.accounts],
        "messages": None if outcome.traffic is None else asdict(outcome.traffic),
        "scores": scores,
    }
