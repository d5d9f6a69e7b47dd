"""What AIM, MST and PrivBayes share: a table's graphical model, asked for and sampled from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.agreed import suggestion
from fedsynth.data.tables import conform
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.marginals import Domain, Measurement, Model, direct
from fedsynth.methods.marginal.interview import Interview
from fedsynth.methods.marginal.settings import GraphicalSettings
from fedsynth.methods.sampling.drawing import demanded
from fedsynth.methods.sampling.labels import wanted_shares
from fedsynth.methods.synthesizer import Trained, settled
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.counting import counting_terms, question
from fedsynth.queries.fit import Options, begin
from fedsynth.queries.shares import Stage, share_out
from fedsynth.queries.tasks.counting import HISTOGRAM
from fedsynth.schema import Identifier, ImageSchema, Schema
from fedsynth.schema.conditions import Condition, condition_on
from fedsynth.schema.target import target_index

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Learned:
    """What a fit leaves behind, all of it released or computed from released values.

    Attributes:
        encoding: of the table.
        model: of its codes.
        measurements: every noisy table that was released, for intervals.
    """

    encoding: TableEncoding
    model: Model
    measurements: tuple[Measurement, ...]

    @property
    def domain(self) -> Domain:
        return self.model.domain


class GraphicalSynthesizer(Trained[Learned], ABC):
    """A synthesizer of tables by a graphical model of noisy marginals.

    Args:
        schema: what the parties agreed on.
        settings: of the method; or its fields as keywords.

    Raises:
        ConfigError: a schema of images, or settings that are none.
    """

    name: ClassVar[str]
    settings_type: ClassVar[type[GraphicalSettings]]
    settings: GraphicalSettings

    def __init__(
        self,
        schema: Schema | ImageSchema,
        settings: GraphicalSettings | None = None,
        **overrides: Any,
    ) -> None:
        if not isinstance(schema, Schema):
            raise ConfigError(f"{self.name} is for tables: use fedvae for images")
        self.schema: Schema = schema
        self.settings = settled(self.settings_type, settings, overrides)

    @abstractmethod
    def _stages(self, settings: Any, budget: Budget, survivors: int) -> list[Stage]:
        """The questions after the histogram."""

    @abstractmethod
    def _model(self, settings: Any, interview: Interview) -> Model:
        """Ask the questions and fit."""

    def fit(self, owners: Owners, budget: Budget, **options: Any) -> Self:
        """Learn from every owner's rows, within the budget.

        Args:
            owners: one table an owner: a mapping by name, a list, or a single one.
            budget: what all releases of this job may cost together.
            options: see :class:`fedsynth.queries.fit.Options`.

        Raises:
            DataError, ConfigError: the data, schema and settings do not go together.
            PrivacyError: the budget cannot carry the job.
            FederationError: too few clients answered.
        """
        settings = self.settings.resolved(budget, self.schema)
        run = Options(**options)

        def plan(resolved: Budget, clients: int) -> tuple[Sequence[Planned], int | None]:
            whole = run.surviving(clients)
            _, _, ones = question(self.schema)
            first = Stage(
                HISTOGRAM.name,
                settings.histogram_share,
                lambda multiplier: counting_terms(ones, multiplier, resolved, whole),
            )
            return share_out([first, *self._stages(settings, resolved, whole)], resolved), None

        with begin(owners, self.schema, budget, plan, run, settings) as fitting:
            self._begin(fitting)
            interview = Interview(self.schema, settings, fitting)
            model = self._model(settings, interview)
            self._learned = Learned(interview.encoding, model, tuple(interview.measurements))
        return self

    def sample(
        self,
        rows: int,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame:
        """Draw synthetic rows; costs nothing, as often as wanted.

        Args:
            rows: how many, at least 1. A public choice: the true number of records is private.
            where: a condition by column, which every row is to meet: a value, a list of values, or
                for numbers and dates {"from": a, "to": b}. Exact through the model, not by
                rejection.
            proportions: shares of the target's values, instead of their estimated frequencies.
            seed: makes the draw repeatable.

        Raises:
            ConfigError: rows below 1, or a condition that names no column or that no row meets.
        """
        codes, given, rng = self._drawn(rows, where, proportions, seed)
        return self.learned.encoding.decode(codes, rng, given)

    def sample_weighted(
        self, rows: int, where: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> tuple[pd.DataFrame, NDArray[np.int64]]:
        """As :meth:`sample`, but each combination of codes once, and how many rows it stands for.

        Returns:
            The distinct rows and their weights, whole numbers that sum to ``rows``.
        """
        codes, given, rng = self._drawn(rows, where, None, seed)
        distinct, counts = np.unique(codes, axis=0, return_counts=True)
        return self.learned.encoding.decode(distinct, rng, given), counts.astype(np.int64)

    def _drawn(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> tuple[NDArray[np.int32], dict[str, Condition], np.random.Generator]:
        rng = demanded(rows, seed)
        given, evidence = self._conditions(where or {})
        if proportions:
            wanted, at = wanted_shares(self.schema, proportions), target_index(self.schema)
            if self.schema.target in given:
                raise ConfigError("give either proportions or a condition on the target, not both")
            known = self.learned.model.given(evidence).marginal((at,))
            if (wanted[known <= 0] > 0).any():
                raise ConfigError("proportions ask for values that no row has under the conditions")
            ratio = np.divide(wanted, known, out=np.zeros_like(wanted), where=known > 0)
            evidence[at] = evidence.get(at, np.ones(len(ratio))) * ratio / ratio.max()
        model = self.learned.model.given(evidence) if evidence else self.learned.model
        return model.sample(rows, rng), given, rng

    def _conditions(
        self, where: Mapping[str, Any]
    ) -> tuple[dict[str, Condition], dict[int, Array]]:
        """Conditions by column's name, and how likely each code of the column meets it."""
        names = [column.name for column in self.schema.modelled]
        given, evidence = {}, {}
        for name, value in where.items():
            if name not in names:
                raise ConfigError(f"cannot condition on {name!r}{suggestion(name, names)}")
            condition = condition_on(self.schema.column(name), value)
            given[name] = condition
            evidence[names.index(name)] = self.learned.encoding.likelihood(name, condition)
        return given, evidence

    def impute(self, frame: pd.DataFrame, seed: int | None = None) -> pd.DataFrame:
        """The same rows with every missing cell drawn given the row's other cells.

        Cells that are there stay as they are. In columns that may be missing by the schema, a gap
        is filled with a value, too.

        Raises:
            DataError: a table that the schema does not fit.
        """
        learned, rng = self.learned, np.random.default_rng(seed)
        gaps = frame.copy()
        for column in self.schema.modelled:
            if column.name not in gaps:
                gaps[column.name] = None
        conformed = conform(gaps, _with_gaps(self.schema), "table to impute")
        absent = np.stack([_absent(conformed.columns[c.name]) for c in self.schema.modelled], 1)
        codes = np.where(absent, -1, learned.encoding.encode(conformed)).astype(np.int32)
        evidence = {
            k: np.append(np.ones(learned.domain.sizes[k] - 1), 0.0)
            for k, column in enumerate(self.schema.modelled)
            if column.missing
        }
        model = learned.model.given(evidence) if evidence else learned.model
        filled = learned.encoding.decode(model.impute(codes, rng), rng)
        found = frame.copy()
        for k, column in enumerate(self.schema.modelled):
            if column.name not in found:
                found[column.name] = filled[column.name].to_numpy()
            elif absent[:, k].any():
                at = found.index[absent[:, k]]
                values = filled[column.name].to_numpy()[absent[:, k]]
                found[column.name] = found[column.name].astype(object)
                found.loc[at, column.name] = values
                found[column.name] = found[column.name].infer_objects()
        return found

    def marginal(
        self, columns: Sequence[str], where: Mapping[str, Any] | None = None, level: float = 0.95
    ) -> pd.DataFrame:
        """How many records have each combination of values, with intervals from the known noise.

        Args:
            columns: names of one or more columns; numbers are answered by bin.
            where: conditions, as for :meth:`sample`; intervals are not known then.
            level: of the intervals, in (0, 1): each cell's holds the number of records with this
                probability over the noise. Where the same noisy sums also decided what was asked
                again (AIM, MST), it is approximate.

        Returns:
            A row a combination: the values, `count` (the model's), `low` and `high` (from the
            unbiased noisy tables that hold these columns; not a number where none was asked).

        Raises:
            ConfigError: no such column, or too many together.
        """
        if not 0 < level < 1:
            raise ConfigError(f"level must be between 0 and 1, not {level}")
        learned = self.learned
        names = [column.name for column in self.schema.modelled]
        for name in columns:
            if name not in names:
                raise ConfigError(f"there is no column {name!r}{suggestion(name, names)}")
        if not columns or len(set(columns)) < len(columns):
            raise ConfigError("name at least one column, and each once")
        clique = tuple(sorted(names.index(name) for name in columns))
        _, evidence = self._conditions(where or {})
        model = learned.model.given(evidence) if evidence else learned.model
        table = (model.marginal(clique) * model.total).ravel()
        labels = [learned.encoding.labels(names[k]) for k in clique]
        index = pd.MultiIndex.from_product(labels, names=[names[k] for k in clique])
        found = index.to_frame(index=False).assign(count=table, low=np.nan, high=np.nan)
        known = None if evidence else direct(learned.measurements, clique)
        if known is not None:
            reach = NormalDist().inv_cdf(0.5 + level / 2) * known.sigma
            found["low"] = np.maximum(known.values.ravel() - reach, 0.0)
            found["high"] = np.maximum(known.values.ravel() + reach, 0.0)
        return found[[*columns, "count", "low", "high"]]

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything :meth:`sample` and :meth:`marginal` need. Nothing private."""
        learned = self.learned
        arrays, model = learned.model.to_arrays()
        found: dict[str, NDArray[Any]] = dict(arrays)
        for number, m in enumerate(learned.measurements):
            found[f"measured {number}"] = m.values
        return found, {
            "model": model,
            "measured": [[list(m.clique), m.sigma] for m in learned.measurements],
            "settings": self.settings.model_dump(exclude_unset=True, mode="json"),
            "encoding": learned.encoding.to_dict(),
        }

    @classmethod
    def from_state(
        cls,
        schema: Schema | ImageSchema,
        arrays: Mapping[str, NDArray[Any]],
        meta: Mapping[str, Any],
    ) -> Self:
        """The inverse of :meth:`model_state`. Raises ReleaseError where the parts do not fit."""
        try:
            model = Model.from_arrays(arrays, meta["model"])
            encoding = TableEncoding.from_dict(meta["encoding"])
            measured = tuple(
                Measurement(tuple(clique), np.asarray(arrays[f"measured {i}"]), float(sigma))
                for i, (clique, sigma) in enumerate(meta["measured"])
            )
            found = cls(schema, **meta["settings"])
        except (KeyError, TypeError, ValueError, ConfigError):
            raise ReleaseError("the model's files do not fit together") from None
        if encoding.sizes != model.domain.sizes:
            raise ReleaseError("the model's columns are not those of its encoding")
        found._learned = Learned(encoding, model, measured)
        return found


def _with_gaps(schema: Schema) -> Schema:
    """The schema of a table in which any cell may be missing."""
    columns = [
        column if isinstance(column, Identifier) else column.model_copy(update={"missing": True})
        for column in schema.columns
    ]
    return schema.model_copy(update={"columns": tuple(columns), "target": None})


def _absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    return values < 0 if values.dtype.kind == "i" else np.isnan(values)
