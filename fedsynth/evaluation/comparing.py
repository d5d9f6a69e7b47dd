"""The parts of an evaluation, of tables and of images: likeness, usefulness, attacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.data.persons import keys_of_persons, split_people
from fedsynth.errors import DataError
from fedsynth.evaluation.attacks.images import image_keys
from fedsynth.evaluation.attacks.neighbours import row_keys
from fedsynth.evaluation.attacks.suite import UNKNOWN, Privacy, attack_images, attack_table
from fedsynth.evaluation.findings.results import Results
from fedsynth.evaluation.measures.fidelity import Fidelity, fidelity
from fedsynth.evaluation.measures.images import image_fidelity
from fedsynth.evaluation.measures.utility import Utility, utility
from fedsynth.evaluation.reading.confidence import ALARM, shares_differ
from fedsynth.evaluation.reading.labelled import why_no_task
from fedsynth.evaluation.reading.notes import Note
from fedsynth.evaluation.reading.rows import Rows, conform_rows, demand_fitting, read_rows
from fedsynth.evaluation.reading.steps import Steps
from fedsynth.evaluation.yardsticks import Yardstick, describe, measure_yardsticks
from fedsynth.schema import ImageSchema, Schema

Progress = Callable[[str, int, int], None]
"""Called with the part's name, its steps done and all of them."""
Data = pd.DataFrame | Images
Models = Literal["standard", "thorough"] | Sequence[str]
Side = TypeVar("Side", Rows, Images)

_MANY_ROWS = 50_000
"""Rows of a table from which more of them hardly take longer: most parts look at a sample."""

_MOSTLY = 0.5
_TOLD = 8
_SIDES = {"real": "Real rows", "train": "Training rows"}
_HALVED = Note(
    "data",
    "",
    "The rows that the generator learned from were not given: one half of the real rows stands for "
    "other real rows, and all is measured against the other half.",
)


def compare_tables(
    sides: Mapping[str, Data | None],
    schema: Schema,
    agreed: bool,
    *,
    models: Models,
    secrets: Sequence[str] | None,
    against: Sequence[str] = (),
    seed: int,
    progress: Progress,
) -> tuple[Results, list[Note]]:
    """The tables "real" and "synthetic", perhaps "train", and what there is to note.

    Args:
        against: yardsticks, which learn from "train".
        agreed: whether the synthetic rows were made by the schema, so that they can hold no more
            than it says, and real rows are taken for what it makes of them.

    Raises:
        DataError: a table that does not fit the schema, or real rows that are too few.
    """
    found = {side: _table(data, schema, side) for side, data in sides.items() if data is not None}
    synthetic = found.pop("synthetic")
    tables = found
    if agreed:
        tables = {side: demand_fitting(conform_rows(rows), side) for side, rows in found.items()}
    _demand_two(tables)
    members = tables.get("train")
    train, real, notes = _choose_reference(members, tables["real"], seed)
    for side, rows in found.items():
        notes += _note_outside(side, rows, tables[side]) if agreed else []
    shared = None if members is None else _warn_of_shared(row_keys(members), row_keys(real))
    if members is not None:
        shared = _warn_of_persons(sides, schema) or shared
    notes += _note_persons(schema, train, real)
    fitting = fidelity(synthetic, train, real, seed=seed, progress=_step("fidelity", progress))
    fitting = _with_real_shares(fitting, found["real"])
    # Where nobody told how many rows were learned from, as many of either teach the models.
    taught = synthetic if members is not None else synthetic.sample(len(train), seed)
    useful, reason = _measure_utility(taught, train, real, models, seed, progress)
    notes += fitting.notes
    notes += [Note("utility", "Utility", str(reason))] if useful is None else useful.notes
    privacy = Privacy(skipped=(UNKNOWN,))
    if members is not None:
        step = _step("attacks", progress)
        # Read alike, so that a copy of a real cell outside the schema is one.
        alike = conform_rows(synthetic) if agreed else synthetic
        made = alike if len(alike) else synthetic
        privacy = attack_table(made, members, real, secrets=secrets, seed=seed, progress=step)
    beside: tuple[Yardstick, ...] = ()
    if against:
        model = None if useful is None else useful.models[0].name
        size, step = len(synthetic), _step("yardsticks", progress)
        measured = measure_yardsticks(against, train, real, size, model, seed, step)
        beside = (describe("these rows", fitting, useful), *measured)
    return Results(fitting, useful, None, privacy, reason, shared, len(real), beside), notes


def _with_real_shares(fitting: Fidelity, real: Rows) -> Fidelity:
    """With the shares of real cells, as found, that the schema does not allow."""
    shares = real.outside.mean(axis=0).tolist()
    columns = zip(fitting.columns, shares, strict=True)
    return replace(fitting, columns=tuple(replace(one, real_outside=s) for one, s in columns))


def _note_outside(side: str, found: Rows, held: Rows) -> list[Note]:
    """What of real rows no synthetic row can hold."""
    shares = dict(zip(found.names, found.outside.mean(axis=0), strict=True))
    told = sorted((name for name in shares if shares[name]), key=lambda name: -shares[name])
    if not told:
        return []
    named = ", ".join(f"{100 * shares[name]:.2g} % of {name}" for name in told[:_TOLD])
    named += f" and {len(told) - _TOLD} columns more" if len(told) > _TOLD else ""
    text = (
        f"{named} lies outside the schema, and no synthetic table can hold it. It counts as what "
        "is learned from it: the bound, `other` or missing."
    )
    if left_out := len(found) - len(held):
        text += f" {left_out:,} of {len(found):,} rows fit nowhere and are left out."
    return [Note("data", _SIDES[side], text)]


def _warn_of_shared(train: NDArray[Any], real: NDArray[Any]) -> str | None:
    """What to beware of where more real rows equal a training row than chance explains: than
    training rows equal another one.

    Raises:
        DataError: half of the real rows or more, beyond chance.
    """
    _, places, counts = np.unique(train, return_inverse=True, return_counts=True)
    twins, seen = int((counts[places] > 1).sum()), int(np.isin(real, train).sum())
    if shares_differ(seen, len(real), twins, len(train)) > ALARM:
        return None
    share, chance = seen / len(real), twins / len(train)
    if share - chance >= _MOSTLY:
        # An error may end in a log that is handed on: it tells no share of private rows.
        raise DataError(
            "real: most of these rows equal a training row, so figures would be flattered and "
            "attacks blinded: give real rows that the generator did not learn from, or leave the "
            "training rows away"
        )
    return (
        f"{share:.1%} of the real rows equal a training row, where chance explains {chance:.1%}: "
        "figures are flattered and attacks blinded. Give real rows that the generator did not "
        "learn from."
    )


def _warn_of_persons(sides: Mapping[str, Data | None], schema: Schema) -> str | None:
    """What to beware of where real rows are of persons that training rows are of, too."""
    train, real = (
        keys_of_persons(data, schema, side) if isinstance(data, pd.DataFrame) else None
        for side, data in ((side, sides[side]) for side in ("train", "real"))
    )
    if train is None or real is None or not (both := real.isin(set(train))).any():
        return None
    return (
        f"{both.mean():.1%} of the real rows have a key in {schema.person!r} that training rows "
        "have, too: if these are the same persons, figures are flattered and attacks blinded. Hold "
        "out persons, with all their rows."
    )


def _note_persons(schema: Schema, *tables: Rows) -> list[Note]:
    """That rows were split by person, where any has several."""
    if all(rows.persons is None or len(rows) == rows.people.max() + 1 for rows in tables):
        return []
    return [
        Note(
            "data",
            "",
            f"Several rows are one person's, by {schema.person!r}: rows are split by person, and "
            "attacked is a person, mostly by one of its rows. Intervals of what models score take "
            "rows for independent, and are narrower than persons allow.",
        )
    ]


def _measure_utility(
    synthetic: Rows, train: Rows, real: Rows, models: Models, seed: int, progress: Progress
) -> tuple[Utility | None, str | None]:
    """What models learn, or why they learn nothing."""
    reason = why_no_task(real.schema)
    if reason is not None:
        return None, reason
    step = _step("utility", progress)
    try:
        return utility(synthetic, train, real, seed=seed, models=models, progress=step), None
    except DataError as error:
        return None, f"{error}."


def compare_images(
    sides: Mapping[str, Data | None], schema: ImageSchema, *, seed: int, progress: Progress
) -> tuple[Results, list[Note]]:
    """The images "real" and "synthetic", perhaps "train", and what there is to note.

    Raises:
        DataError: images that do not fit the schema, or real ones that are too few.
    """
    images = {
        side: _pictures(data, schema, side) for side, data in sides.items() if data is not None
    }
    _demand_two(images)
    synthetic, members = images["synthetic"], images.get("train")
    train, real, notes = _choose_reference(members, images["real"], seed)
    step = _step("student", progress)
    pictures = image_fidelity(synthetic, train, real, schema, seed=seed, progress=step)
    privacy, shared = Privacy(skipped=(UNKNOWN,)), None
    if members is not None:
        shared = _warn_of_shared(image_keys(members), image_keys(real))
        step = _step("attacks", progress)
        privacy = attack_images(synthetic, members, real, schema, seed=seed, progress=step)
    results = Results(None, None, pictures, privacy, shared=shared, tested=len(real))
    return results, [*notes, *pictures.notes]


def seconds(sides: Mapping[str, Data | None], columns: int, models: Models) -> tuple[float, float]:
    """About the least and the most that one processor takes.

    As measured: 13 s for 1,000 rows of 6 columns, learned from, synthetic and real ones; 24 for
    5,000 of 16; 78 for Adult's 39,073 of 15; all models take 24 to 33 more. Half or twice of what
    the like of these took: processors differ, and so do rows.
    """
    rows = sum(min(len(data), _MANY_ROWS) for data in sides.values() if data is not None)
    cells = rows * columns / 1e6
    about = 10 + 40 * cells + (18 + 10 * cells if models == "thorough" else 0)
    return about / 2, about * 2


def _table(data: Data, schema: Schema, where: str) -> Rows:
    if not isinstance(data, pd.DataFrame):
        raise DataError(f"{where}: the schema is a table's and the data are images")
    if where == "synthetic":
        # Made up, so nobody's, whatever stands in that column.
        schema = schema.model_copy(update={"person": None})
    return read_rows(data, schema, where)


def _pictures(data: Data, schema: ImageSchema, where: str) -> Images:
    if not isinstance(data, Images):
        raise DataError(f"{where}: the schema is an image schema and the data are a table")
    if len(data) == 0:
        raise DataError(f"{where}: there are no images")
    if data.pixels.shape[1:] != schema.shape:
        raise DataError(
            f"{where}: images of shape {data.pixels.shape[1:]} and a schema of shape {schema.shape}"
        )
    return data


def _demand_two(data: Mapping[str, Rows] | Mapping[str, Images]) -> None:
    if "train" in data:
        return
    real = data["real"]
    if len(real) < 2:
        raise DataError("real: one row cannot be compared with other real rows; give at least two")
    if isinstance(real, Rows) and not real.people.any():
        raise DataError(
            "real: the rows of one person cannot be compared with other persons'; give at least two"
        )


def _choose_reference(members: Side | None, real: Side, seed: int) -> tuple[Side, Side, list[Note]]:
    """Other real rows, the rows that all is measured against, and what there is to note."""
    if members is not None:
        return members, real, []
    people = real.people if isinstance(real, Rows) else np.arange(len(real))
    half = (int(people.max()) + 2) // 2
    tested, others = split_people(people, half, np.random.default_rng(seed))
    return real.take(others), real.take(tested), [_HALVED]


def _step(name: str, progress: Progress) -> Steps:
    return lambda done, total: progress(name, done, total)
