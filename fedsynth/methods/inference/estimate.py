"""What a noisy sum says: moments, regressions, class probabilities, rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.demands import demand_number
from fedsynth.errors import ConfigError
from fedsynth.methods.inference.coordinates import Floats
from fedsynth.methods.inference.discriminant import Classes, classes_of, discriminate
from fedsynth.methods.inference.generator import Generator
from fedsynth.methods.inference.moments import Moments, Reading, moments, reading_of
from fedsynth.methods.inference.regression import Regression, design, least_squares, predictors
from fedsynth.methods.inference.statistic import Statistic
from fedsynth.methods.sampling.drawing import draw_table
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.schema import Schema
from fedsynth.schema.columns import Boolean, Categorical


@dataclass(frozen=True)
class Estimate:
    """A noisy sum of the statistic over some clients, and everything that follows from it.

    All of it is post-processing: it costs nothing, as often as wanted.

    Attributes:
        schema: of the table.
        statistic: that was summed.
        values: float64 [dim].
        sigma: standard deviation of the noise in each value.
        clients: that the sum is over, by name.
    """

    schema: Schema
    statistic: Statistic
    values: Floats
    sigma: float
    clients: tuple[str, ...]

    @property
    def records(self) -> float:
        """Estimated number of records (at the client level, of clients that have any)."""
        return float(self.statistic.first(self.values)[0].sum())

    @property
    def reading(self) -> Reading:
        target = self.schema.target_column
        categories = target.categories if isinstance(target, Categorical | Boolean) else ()
        return reading_of(self.statistic, str(self.schema.target), categories)

    @cached_property
    def classes(self) -> Classes:
        """Moments within the classes."""
        return classes_of(self.statistic, self.values, self.sigma)

    def moments(self) -> Moments:
        """Means and covariances of all columns in natural units."""
        return moments(self.statistic, self.reading, self.values, self.sigma)

    def regression(
        self,
        target: str,
        on: Sequence[str] | str | None = None,
        ridge: float = 0.0,
        value: object = None,
    ) -> Regression:
        """Linear least squares of one column on others.

        Args:
            target: a number, or categories: then the probability of `value` is fitted, by default
                of the last category.
            on: predictors; all others by default.
            ridge: added to each predictor's sum of squares, in coordinates (numbers scaled to
                [-1, 1]), as `alpha` of scikit-learn's Ridge. The constant is not shrunk.

        Raises:
            ConfigError: no such column or value, a target that may be missing, a negative ridge.
        """
        names = predictors(self.schema, target, on)
        demand_number("ridge", ridge, "a number of at least 0", lambda r: 0 <= r < np.inf)
        chosen = design(self.schema, self.statistic, names)
        weights, value = self._weights(target, value)
        b, errors, noise_errors, r2, records = least_squares(
            self.statistic, self.values, self.sigma, chosen, weights, ridge
        )
        held = None
        if chosen.columns:
            held = Schema(columns=chosen.columns, missing_values=self.schema.missing_values)
        return Regression(
            target, value, chosen.names, b, errors, noise_errors, r2, records, ridge, held
        )

    def _weights(self, target: str, value: object) -> tuple[Floats, object]:
        """The target's weights in the joint vector, and which of its values is meant."""
        column = self.schema.column(target)
        if column.missing:  # type: ignore[union-attr]
            raise ConfigError(
                f"{target!r} may be missing: a regression of the records that have it needs "
                "moments that were not asked for"
            )
        if not isinstance(column, Categorical | Boolean):
            if value is not None:
                raise ConfigError(f"{target!r} holds numbers: `value` is for categories")
            return self._term(target), None
        spelled = [str(category) for category in column.categories]
        chosen = spelled[-1] if value is None else str(value)
        if chosen not in spelled:
            raise ConfigError(f"{target!r} has no value {value!r}: it has {', '.join(spelled)}")
        return self._term(f"{target}={chosen}"), column.categories[spelled.index(chosen)]

    def _term(self, name: str) -> Floats:
        return np.array(self.reading.weights[self.reading.names.index(name)])

    def probabilities(self, data: pd.DataFrame | Images) -> Floats:
        """Of every class of the target, float64 [n, classes], by linear discriminant analysis.

        Args:
            data: rows; their target is not looked at and may be absent.

        Raises:
            ConfigError: the schema's target has no classes (for numbers there is
                ``regression(..).predict``), or is its only column.
            DataError: a column is absent, or there are no rows.
        """
        conformed = conform_unlabelled(data, self.schema)
        v = self.statistic.coordinates.matrix(conformed.columns, conformed.rows)
        return discriminate(self.classes, self.statistic.clip_norms(v))

    def sample(
        self,
        rows: int,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame:
        """Synthetic rows; see :meth:`fedsynth.methods.synthesizer.Synthesizer.sample`."""
        generator = Generator.of(self.statistic.coordinates, self.classes)

        def draw(
            labels: NDArray[np.int64] | None, count: int, rng: np.random.Generator
        ) -> dict[str, NDArray[Any]]:
            one = np.zeros(count, np.int64)
            return generator.draw(one if labels is None else labels, rng)

        frequencies = self.classes.frequencies if self.statistic.classes else np.zeros(0)
        return draw_table(self.schema, frequencies, rows, where, proportions, seed, draw)
