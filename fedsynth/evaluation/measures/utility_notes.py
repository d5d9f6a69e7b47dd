"""What a reader of figures of utility must know: rows left out, samples, what was impossible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedsynth.evaluation.measures.agreement import Agreement
from fedsynth.evaluation.models.trials import Arena, Trial
from fedsynth.evaluation.reading.labelled import Examples
from fedsynth.evaluation.reading.notes import Note
from fedsynth.schema import Datetime

ROLES = {"synthetic": "synthetic", "train": "real training", "real": "real test"}
"""What the three tables are called."""


def utility_notes(
    known: Mapping[str, Examples],
    arena: Arena,
    trials: Sequence[Trial],
    groups: Mapping[str, Agreement],
) -> list[Note]:
    """What was left out, sampled or impossible.

    known: the tables by the names of `ROLES`. groups: rank agreements by what they compare.
    """
    texts = [*_of_tables(known), *_of_samples(known, arena, trials), *_of_failures(trials)]
    return [
        *(Note("utility", "Utility", text) for text in texts),
        *(
            Note("agreement", "Utility", f"no rank agreement of {compared}. {group.note}")
            for compared, group in groups.items()
            if group.note is not None
        ),
    ]


def _of_tables(known: Mapping[str, Examples]) -> list[str]:
    target = known["real"].rows.schema.target_column
    assert target is not None
    texts = []
    for side, table in known.items():
        role, rows = ROLES[side], len(table) + table.left_out
        if table.left_out:
            texts.append(
                f"{table.left_out:,} of {rows:,} {role} rows were left out: their {target.name} is "
                f"missing or outside the schema."
            )
        if (table.y == table.y[0]).all():
            texts.append(_one_answer(side, role, bool(table.classes)))
    return texts


def _of_samples(known: Mapping[str, Examples], arena: Arena, trials: Sequence[Trial]) -> list[str]:
    target, texts = known["real"].rows.schema.target_column, []
    if len(arena.test) < len(known["real"]):
        texts.append(f"tested on {len(arena.test):,} of {len(known['real']):,} real rows.")
    if any(
        trial.model.rows["synthetic"] < len(known["synthetic"])
        or trial.model.rows["real"] < len(known["train"])
        for trial in trials
    ):
        texts.append("slow models were trained on a random sample; their rows are given.")
    if isinstance(target, Datetime):
        texts.append(f"mean absolute errors are in {target.resolution}s.")
    return texts


def _of_failures(trials: Sequence[Trial]) -> list[str]:
    return [
        f"{trial.model.name} could not be fitted to the "
        f"{'real training' if side == 'real' else side} rows."
        for trial in trials
        for side in trial.failed
    ]


def _one_answer(side: str, role: str, classes: bool) -> str:
    if side == "real":
        lost = "AUROC and average precision" if classes else "R2"
        same = "of one class" if classes else "the same number"
        return f"the {role} rows are all {same}, so {lost} cannot be computed."
    same = "are all of one class" if classes else "all have the same number"
    return f"the {role} rows {same}, which is then the answer to everything."
