"""Evaluate synthetic rows: what they are worth, and what they give away."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.attacks.anonymity import anonymity
from fedsynth.evaluation.fidelity import Fidelity, fidelity
from fedsynth.evaluation.labelled import task_of, why_no_task
from fedsynth.evaluation.pictures import ImageFidelity, image_fidelity
from fedsynth.evaluation.privacy import UNKNOWN, Privacy, attacked, attacked_images
from fedsynth.evaluation.rows import Rows, read_rows
from fedsynth.evaluation.summary import Found, Summary, caught, summarise
from fedsynth.evaluation.utility import Utility, utility
from fedsynth.plain import plain
from fedsynth.privacy.certificate import Certificate, version_of
from fedsynth.schema import ImageSchema, Schema

FORMAT = 1
PRIVATE = "computed on real data: not covered by epsilon, do not publish beside the release"
PUBLIC = "computed on real rows that were declared public"
_DRAFTED = (
    "No schema was given: kinds, bounds and categories were read off the real rows, so values "
    "outside them are those that the real rows lack."
)

Progress = Callable[[str, int, int], None]
"""Called with the part's name, its steps done and all of them."""
Data = pd.DataFrame | Images


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found; `save` writes it as a page and as JSON.

    Attributes:
        fidelity, utility: of tables; None for images, utility also where there is no target.
        images: of images.
        privacy: attacks.
        summary: the verdict, four figures, what to beware of.
        public: whether it was computed on public rows alone, so that it may be published.
        about: what was compared, as in the JSON's "data".
        certificate: the release's, in brief; None without one.
        clients: scores by owner, if some were computed.
        notes: what was sampled, left out or drafted, as sentences.
    """

    title: str
    fidelity: Fidelity | None
    utility: Utility | None
    images: ImageFidelity | None
    privacy: Privacy
    summary: Summary
    public: bool
    about: dict[str, Any]
    certificate: dict[str, Any] | None
    notes: tuple[str, ...]
    seed: int
    clients: tuple[dict[str, Any], ...] | None = None

    @property
    def caught(self) -> list[str]:
        """Names of the attacks that told training rows from others."""
        return caught(self.privacy)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as the report's JSON: plain values, None for what is no finite number."""
        words = PUBLIC if self.public else PRIVATE
        content = {
            "format": FORMAT,
            "fedsynth": version_of("fedsynth"),
            "seed": self.seed,
            "title": self.title,
            "data": self.about,
            "disclosure": {"public": self.public, "text": words},
            "certificate": self.certificate,
            "summary": asdict(self.summary),
            "fidelity": None if self.fidelity is None else asdict(self.fidelity),
            "utility": None if self.utility is None else asdict(self.utility),
            "privacy": asdict(self.privacy),
            "images": None if self.images is None else asdict(self.images),
            "clients": None if self.clients is None else list(self.clients),
            "notes": list(self.notes),
        }
        return dict(plain(content))

    def save(self, folder: str | Path) -> tuple[Path, Path]:
        """Write `report.html`, one page that needs nothing else, and `report.json`; their paths."""
        from fedsynth.evaluation.report import save

        return save(self.to_dict(), Path(folder))


def _silent(step: str, done: int, total: int) -> None:
    pass


def evaluate(
    real: Data,
    synthetic: Data,
    schema: Schema | ImageSchema | None = None,
    *,
    train: Data | None = None,
    public: bool = False,
    certificate: Certificate | None = None,
    models: Literal["standard", "all"] | Sequence[str] = "all",
    secrets: Sequence[str] | None = None,
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    title: str = "Synthetic rows",
    seed: int = 0,
    progress: Progress = _silent,
) -> Evaluation:
    """Score synthetic rows, of any tool, against real ones.

    Args:
        real: real rows that the generator never saw: everything is measured against them.
        synthetic: the rows to judge.
        schema: of all tables; None drafts one from `real` and says so.
        train: the rows that the generator learned from. Attacks need them; without them the
            yardstick "other real rows" is one half of `real`, and the other half is what all is
            measured against.
        public: whether all real rows given are public. If not, the result is itself private.
        certificate: of the release, to be quoted.
        models: the models to train: a handful, all, or names (see `utility`).
        secrets: columns that attackers try to infer; by default the target and five more.
        quasi_identifiers, sensitive: columns for the k-anonymity family, which is computed where
            they are named (needs the extra `anonymity`).
        title: how the report calls the rows.
        seed: of every sample and model.
        progress: see :data:`Progress`.

    Raises:
        ConfigError: arguments that do not go together.
        DataError: a table that does not fit the schema, or is too small: at least two real rows.
    """
    notes = []
    if schema is None:
        if not isinstance(real, pd.DataFrame):
            raise ConfigError("images cannot be evaluated without a schema: give one")
        schema = Schema.draft(real)
        notes.append(_DRAFTED)
    if len(real) < 2 and train is None:
        raise DataError("real: one row cannot be compared with other real rows; give at least two")
    sides = {"real": real, "synthetic": synthetic, "train": train}
    about = _about(schema, sides)
    if isinstance(schema, Schema):
        tables = {
            side: _table(data, schema, side) for side, data in sides.items() if data is not None
        }
        found, more = _tables(tables, models, secrets, seed, progress)
        if quasi_identifiers:
            assert isinstance(synthetic, pd.DataFrame) and isinstance(real, pd.DataFrame)
            family = anonymity(
                {"synthetic": synthetic, "real": real},
                schema,
                tuple(quasi_identifiers),
                tuple(sensitive),
            )
            found = replace(found, privacy=replace(found.privacy, anonymity=family))
    else:
        if quasi_identifiers:
            raise ConfigError("images have no quasi-identifiers: leave them out")
        pictures = {
            side: _pictures(data, schema, side) for side, data in sides.items() if data is not None
        }
        found, more = _images(pictures, schema, seed, progress)
    brief = None if certificate is None else _brief(certificate)
    epsilon = None if brief is None else brief["epsilon"]
    return Evaluation(
        title=title,
        fidelity=found.fidelity,
        utility=found.utility,
        images=found.images,
        privacy=found.privacy,
        summary=summarise(found, public=public, epsilon=epsilon, certified=brief is not None),
        public=public,
        about=about,
        certificate=brief,
        notes=(*notes, *more),
        seed=seed,
    )


def _table(data: Data, schema: Schema, where: str) -> Rows:
    if not isinstance(data, pd.DataFrame):
        raise DataError(f"{where}: the schema is a table's and the data are images")
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


def _tables(
    tables: Mapping[str, Rows],
    models: Literal["standard", "all"] | Sequence[str],
    secrets: Sequence[str] | None,
    seed: int,
    progress: Progress,
) -> tuple[Found, list[str]]:
    real, synthetic, notes = tables["real"], tables["synthetic"], []
    members = tables.get("train")
    if members is None:
        places, other = _halves(len(real), seed)
        train, real = real.take(other), real.take(places)
        notes.append(_HALVED)
    else:
        train = members
    fitting = fidelity(synthetic, train, real, seed=seed, progress=_step("fidelity", progress))
    notes += fitting.notes
    useful = None
    reason = why_no_task(real.schema)
    if reason is None:
        try:
            useful = utility(
                synthetic,
                train,
                real,
                seed=seed,
                models=models,
                progress=_step("utility", progress),
            )
            notes += useful.notes
        except DataError as error:
            reason = str(error)
    if reason is not None:
        notes.append(f"Utility: {reason}")
    privacy = Privacy(skipped=(UNKNOWN,))
    if members is not None:
        privacy = attacked(
            synthetic,
            members,
            real,
            secrets=secrets,
            seed=seed,
            progress=_step("attacks", progress),
        )
    return Found(fitting, useful, None, privacy), notes


def _images(
    tables: Mapping[str, Images], schema: ImageSchema, seed: int, progress: Progress
) -> tuple[Found, list[str]]:
    real, synthetic, notes = tables["real"], tables["synthetic"], []
    members = tables.get("train")
    if members is None:
        places, other = _halves(len(real), seed)
        train, real = real.take(other), real.take(places)
        notes.append(_HALVED)
    else:
        train = members
    pictures = image_fidelity(
        synthetic, train, real, schema, seed=seed, progress=_step("student", progress)
    )
    privacy = Privacy(skipped=(UNKNOWN,))
    if members is not None:
        privacy = attacked_images(
            synthetic, members, real, schema, seed=seed, progress=_step("attacks", progress)
        )
    return Found(None, None, pictures, privacy), [*notes, *pictures.notes]


_HALVED = (
    "The rows that the generator learned from were not given: one half of the real rows stands for "
    "other real rows, and all is measured against the other half."
)


def _halves(rows: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    order = np.random.default_rng(seed).permutation(rows)
    return order[: (rows + 1) // 2], order[(rows + 1) // 2 :]


def _step(name: str, progress: Progress) -> Callable[[int, int], None]:
    return lambda done, total: progress(name, done, total)


def _about(schema: Schema | ImageSchema, sides: Mapping[str, Data | None]) -> dict[str, Any]:
    rows = {side: None if data is None else len(data) for side, data in sides.items()}
    if isinstance(schema, Schema):
        columns, target, kind = len(schema.modelled), schema.target, "table"
    else:
        columns, kind = math.prod(schema.shape), "image"
        target = None if schema.target is None else schema.target.name
    return {
        "kind": kind,
        "columns": columns,
        "target": target,
        "task": task_of(schema),
        "rows": rows,
    }


def _brief(certificate: Certificate) -> dict[str, Any]:
    """What a report quotes of a certificate."""
    content = certificate.content
    guarantee, epsilon = content["guarantee"], certificate.epsilon
    holds = certificate.void is None and math.isfinite(epsilon)
    return {
        "sentence": certificate.sentence,
        "epsilon": epsilon if holds else None,
        "delta": guarantee["delta"],
        "unit": guarantee["unit"],
        "trust": guarantee["trust"],
        "not_covered": list(content["not_covered"]),
        "cautions": list(content["cautions"]),
    }
