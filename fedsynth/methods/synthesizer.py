"""What every synthesizer is: a method that rows are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import pandas as pd
from pydantic import BaseModel

from fedsynth.data.fingerprint import fingerprint
from fedsynth.data.images import Images
from fedsynth.demands import demand_flag, demand_kind, demand_path
from fedsynth.errors import ConfigError
from fedsynth.methods.fitted import Learned
from fedsynth.methods.fitting import Method
from fedsynth.methods.persons import demand_invented
from fedsynth.methods.sampling.drawing import Conditioning
from fedsynth.methods.sampling.following import draw_following, route
from fedsynth.methods.sampling.labels import draw_labels
from fedsynth.methods.sampling.lost import lost_remarks
from fedsynth.methods.sampling.persons import DrawsPersons, draw_sizes
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.queries.arguments import demand_draw, demand_rows, rename
from fedsynth.release import Report, write_release
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions

_ROWS = 10_000
"""Of a release, where nobody says how many."""


class Generative(Learned, Protocol):
    """Something learned that rows are drawn from."""

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame | Images:
        """Synthetic rows: see :meth:`Synthesizer.sample`."""
        ...


G = TypeVar("G", bound=Generative)


class Synthesizer(Method[G]):
    """A method that rows are drawn from: fit it, sample from it, release it."""

    noun: ClassVar[str] = "synthesizer"
    use: ClassVar[str] = "sample from"
    free: ClassVar[str] = "Rows of what was fitted cost nothing, by sample"

    def __init__(
        self,
        schema: Schema | ImageSchema | None = None,
        settings: BaseModel | Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> None:
        super().__init__(schema, settings, **overrides)
        self._drawn: set[str] = set()
        self._lost: tuple[str, ...] | None = None

    def _forget(self) -> None:
        super()._forget()
        self._drawn, self._lost = set(), None

    @property
    def remarks(self) -> tuple[str, ...]:
        if self._learned is None or isinstance(self.schema, ImageSchema):
            return super().remarks
        if self._lost is None:
            with self.using():
                drawn = self.learned.draw(_ROWS, None, None, 0)
            assert isinstance(drawn, pd.DataFrame)
            self._lost = lost_remarks(drawn, self.schema)
        return (*super().remarks, *self._lost)

    @property
    def classes(self) -> int:
        """Classes of the target that rows are drawn by; 0 where they are drawn without."""
        return conditions(self.schema)

    def check_draw(
        self, where: Mapping[str, Any] | None, proportions: Mapping[Any, float] | None
    ) -> None:
        """Raises ConfigError for what :meth:`sample` would refuse whatever a fit learns."""
        demand_draw(where, proportions, None)
        self.check_model_draw(route(self.schema, where, proportions)[0], proportions)

    def check_model_draw(
        self, where: Mapping[str, Any] | None, proportions: Mapping[Any, float] | None
    ) -> None:
        """The same of conditions on modelled columns."""
        shares = np.full(self.classes, 1 / max(1, self.classes))
        if isinstance(self.schema, ImageSchema):
            draw_labels(self.schema, shares, 1, where, proportions, np.random.default_rng(0))
        else:
            Conditioning.of(self.schema, shares, where, proportions)

    def sample(
        self,
        rows: int | None = None,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
        persons: bool = False,
        **words: Any,
    ) -> Any:
        """Draw synthetic rows; costs nothing, as often as wanted.

        Args:
            rows: how many, at least 1. A public choice: the true number of records is private.
            where: a condition by column, which every row is to meet: a value, a list of values, or
                for numbers and dates a range, {"from": a, "to": b} or (a, b); of images, on the
                target. What a method cannot draw by is met by drawing again.
            proportions: shares of the target's values, instead of their estimated frequencies.
            seed: makes the draw repeatable.
            persons: the rows are those of invented persons, who have as many rows as the released
                histogram says (`unit: person`) and a key each in the schema's `person`. What is
                `of: person` is the same in all rows of one; given that, they are independent: the
                order of a person's rows, and what else of them hangs together, is not kept. Nor
                does how many rows somebody has hang on anything.
            words: rows as `num_rows` or `n`, seed as `random_state`.

        Returns:
            A table of the schema's columns, or :class:`Images`.

        Raises:
            ConfigError: nothing was fitted; rows below 1, conditions that make no sense or that
                hardly a row meets; persons of whose rows nothing was released, or of a method that
                cannot draw them.
        """
        given = {"rows": rows, "where": where, "proportions": proportions, "seed": seed}
        rows, where, proportions, seed = rename("sample", given, words)
        count, seed = demand_rows("sample", rows), demand_draw(where, proportions, seed)
        if demand_flag("persons", persons):
            drawn = self._draw_persons(count, where, proportions, seed)
            self._drawn.add(fingerprint(drawn))
            return drawn
        with self.using():
            direct, totals = route(self.schema, where, proportions)
            draw = partial(self.learned.draw, where=direct, proportions=proportions)
            drawn = (
                draw_following(self.schema, totals, count, seed, draw)
                if totals
                else draw(count, seed=seed)
            )
        self._drawn.add(fingerprint(drawn))
        return drawn

    def _draw_persons(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> Any:
        """So many rows, of invented persons."""
        demand_invented(self.schema, self.name, self.learned_type, where)
        known, learned = self.rows_a_person, self.learned
        if known is None:
            raise ConfigError(
                "persons: this fit released nothing of how many rows a person has. One with unit: "
                "person does"
            )
        assert isinstance(learned, DrawsPersons)
        rng = np.random.default_rng(seed)
        with self.using():
            direct, _ = route(self.schema, where)
            sizes, own = draw_sizes(known.sizes, rows, rng), int(rng.integers(2**62))
            return learned.draw_persons(sizes, direct, proportions, own)

    def drew(self, rows: pd.DataFrame | Images) -> bool:
        """Whether :meth:`sample` gave these rows, in this order, since the last fit."""
        if not isinstance(rows, pd.DataFrame | Images):
            return False
        try:
            return fingerprint(rows) in self._drawn
        except TypeError:
            return False

    def release(
        self,
        folder: str | Path,
        rows: int | pd.DataFrame | Images | None = None,
        report: Report | None = None,
        *,
        seed: int | None = None,
        persons: bool = False,
        edited: bool = False,
        **words: Any,
    ) -> Certificate:
        """Write a release of synthetic rows, the model and their certificate.

        Args:
            folder: new, empty, or the one that was fitted in.
            rows: how many to draw, 10,000 by default; or rows that :meth:`sample` gave since the
                last fit.
            report: an evaluation of rows that are given, on public ones.
            seed: makes the draw repeatable.
            persons: whether the rows that are drawn are of invented persons, see :meth:`sample`.
            edited: the rows that are given were changed after they were drawn: the certificate
                then says that nothing checks what is in them.
            words: rows as `num_rows` or `n`, seed as `random_state`.

        Raises:
            ConfigError: nothing was fitted here; options that do not go together.
            ReleaseError, PrivacyError: see :func:`fedsynth.release.write_release`.
        """
        given = {"folder": folder, "rows": rows, "report": report, "seed": seed, "edited": edited}
        folder, rows, report, seed, edited = rename("release", given, words)
        folder, edited = demand_path("folder", folder), demand_flag("edited", edited)
        persons = demand_flag("persons", persons)
        if report is not None:
            demand_kind("report", report, Report, "an Evaluation, as fs.evaluate gives")
        _ = self.learned, self.ledger
        if isinstance(rows, pd.DataFrame | Images):
            if seed is not None or persons:
                name = "persons" if persons else "seed"
                raise ConfigError(
                    f"{name} is of rows that release draws: give their number as rows"
                )
            return write_release(folder, self, rows, report=report, edited=edited)
        if report is not None or edited:
            raise ConfigError(
                "a report, and edited, are of rows that exist: give those in place of their number"
            )
        drawn = self.sample(_ROWS if rows is None else rows, seed=seed, persons=persons)
        return write_release(folder, self, drawn)
