"""What AIM, MST and PrivBayes share: a table's graphical model, asked for and sampled from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.codec import Named
from fedsynth.demands import demand_names, demand_number
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.marginals import Clique, Domain, Measurement, Model, estimate_marginal, exchange
from fedsynth.methods.marginal.clipped import count_clipped
from fedsynth.methods.marginal.errors import tabulate_errors
from fedsynth.methods.marginal.expecting import Asked, expect_tables
from fedsynth.methods.marginal.measurer import Measurer
from fedsynth.methods.marginal.persons import draw_further
from fedsynth.methods.marginal.sense import find_outside
from fedsynth.methods.marginal.settings import GraphicalSettings
from fedsynth.methods.sampling.following import route, sources_of
from fedsynth.methods.sampling.gaps import Known
from fedsynth.methods.sampling.labels import label_shares
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.privacy.budget import Budget
from fedsynth.queries.arguments import demand_draw, demand_rows, demand_seed, rename
from fedsynth.queries.counting import counting_terms, question
from fedsynth.queries.expected import Expected
from fedsynth.queries.plan import Plan
from fedsynth.queries.session import Session
from fedsynth.queries.shares import Stage
from fedsynth.queries.tasks.counting import HISTOGRAM
from fedsynth.schema import Schema
from fedsynth.schema.conditions import Condition, condition_on, demand_modelled
from fedsynth.schema.frames import demand_frame
from fedsynth.schema.target import target_index
from fedsynth.views import Outlined

Array = NDArray[np.float64]

# Rows among which values are exchanged, at the least.
_MATES = 1_000


@dataclass(frozen=True, repr=False)
class Learned(Outlined):
    """What a fit leaves behind, all of it released or computed from released values.

    Attributes:
        encoding: of the table.
        model: of its codes.
        measurements: every noisy table that was released, for intervals.
        remarks: what could not be learned, in sentences.
    """

    encoding: TableEncoding
    model: Model
    measurements: Annotated[tuple[Measurement, ...], Named("measured")]
    remarks: tuple[str, ...] = ()

    @property
    def domain(self) -> Domain:
        return self.model.domain

    @property
    def records(self) -> float:
        """How many there are, estimated from noisy counts."""
        return self.model.total

    @property
    def schema(self) -> Schema:
        return self.encoding.schema

    @cached_property
    def empty(self) -> list[tuple[Clique, NDArray[np.bool_]]]:
        """Pairs of columns, and cells of theirs that rows are led out of."""
        return find_outside(self.model, self.measurements, self.schema)

    def check(self) -> None:
        if self.encoding.sizes != self.domain.sizes:
            raise ReleaseError("the model's columns are not those of its encoding")
        for one in self.measurements:
            apart = [k for k in range(len(self.domain.sizes)) if k in one.clique]
            sizes = tuple(self.domain.sizes[k] for k in apart)
            if list(one.clique) != apart or one.values.shape != sizes:
                raise ReleaseError("the model's noisy tables are not of its columns")

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame:
        """Rows that meet all conditions, exactly through the model and not by rejection."""
        codes, given, rng = self.sample_codes(rows, where, proportions, seed)
        return self.encoding.decode(codes, rng, given)

    def draw_persons(
        self,
        sizes: NDArray[np.int64],
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame:
        """Rows of persons, so many of each [persons]: a row of each is drawn whole, and others
        given what of it is `of: person`, independently, exactly by the model."""
        rng = np.random.default_rng(seed)
        model, given = self.condition(where, proportions)
        whole = self.sample_inside(model, len(sizes), rng)
        own = np.isin([one.name for one in self.schema.modelled], self.schema.of_person)
        codes, persons = draw_further(model, whole, sizes, own, self.empty, rng)
        return self.encoding.decode(codes, rng, given, persons)

    def sample_codes(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> tuple[NDArray[np.int32], dict[str, Condition], np.random.Generator]:
        """Codes [rows, columns], the conditions that they meet, and the generator's state."""
        rng = np.random.default_rng(seed)
        model, given = self.condition(where, proportions)
        return self.sample_inside(model, rows, rng), given, rng

    def condition(
        self, where: Mapping[str, Any] | None, proportions: Mapping[Any, float] | None
    ) -> tuple[Model, dict[str, Condition]]:
        """The model under conditions, and these by column's name."""
        given, evidence = self.conditions(where or {})
        if proportions:
            shares, at = label_shares(self.schema, proportions), target_index(self.schema)
            if self.schema.target in given:
                raise ConfigError("give either proportions or a condition on the target, not both")
            known = self.model.condition(evidence).marginal((at,))
            if (shares[known <= 0] > 0).any():
                raise ConfigError("proportions ask for values that no row has under the conditions")
            ratio = np.divide(shares, known, out=np.zeros_like(shares), where=known > 0)
            evidence[at] = evidence.get(at, np.ones(len(ratio))) * ratio / ratio.max()
        return self.model.condition(evidence) if evidence else self.model, given

    def sample_inside(self, model: Model, rows: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Codes [rows, columns] of a model, led out of empty cells."""
        if not self.empty:
            return model.sample(rows, rng)
        # Few rows have others to exchange values with.
        codes = np.concatenate([model.sample(n, rng) for n in (rows, _MATES - rows) if n > 0])
        fixed = None if self.schema.target_column is None else target_index(self.schema)
        exchange(model.tree, codes, self.empty, fixed, rng)
        return codes[:rows]

    def conditions(self, where: Mapping[str, Any]) -> tuple[dict[str, Condition], dict[int, Array]]:
        """Conditions by column's name, and how likely each code of the column meets it."""
        names = [column.name for column in self.schema.modelled]
        given, evidence = {}, {}
        direct, totals = route(self.schema, where)
        for name, value in (*(direct or {}).items(), *totals.items()):
            demand_modelled(name, self.schema.columns, names)
            condition = condition_on(self.schema.column(name), value)
            given[name] = condition
            evidence[names.index(name)] = self.encoding.likelihood(name, condition)
        return given, evidence


class GraphicalSynthesizer(Synthesizer[Learned]):
    """A synthesizer of tables by a graphical model of noisy marginals."""

    settings_type: ClassVar[type[GraphicalSettings]]
    no_persons = ""
    learned_type = Learned
    images = False
    schema: Schema

    @property
    def classes(self) -> int:
        """Also of a target that is the only column."""
        return self.schema.classes

    @abstractmethod
    def questions(self, settings: Any, budget: Budget, surviving: int) -> list[Stage]:
        """The questions after the histogram."""

    @abstractmethod
    def model(self, settings: Any, measurer: Measurer) -> Model:
        """Ask the questions and fit."""

    def mechanism(self, settings: Any) -> str:
        """Of the noise of all counts."""
        return "gaussian"

    def stages(self, settings: Any, budget: Budget, clients: int, surviving: int) -> list[Stage]:
        _, starts, _ = question(self.schema)
        first = Stage(
            HISTOGRAM.name,
            settings.histogram_share,
            lambda multiplier: counting_terms(
                len(starts), multiplier, budget, surviving, self.mechanism(settings)
            ),
        )
        return [first, *self.questions(settings, budget, surviving)]

    def asked(self, settings: Any, domain: Domain) -> list[Asked]:
        """Which tables the questions after the histogram ask, as far as it is known before."""
        return []

    def expect(self, settings: Any, plan: Plan, records: int | None = None) -> Expected:
        return expect_tables(
            self.schema, settings.bins, plan, lambda domain: self.asked(settings, domain)
        )

    def bins(self, session: Session) -> Callable[[float], int] | None:
        """How many bins a number is cut into, by the number of records; None as settings say."""
        return None

    def learn(self, session: Session) -> Learned:
        measurer = Measurer(self.schema, session, self.bins(session))
        model = self.model(session.settings, measurer)
        measured, remarks = tuple(measurer.measurements), tuple(measurer.remarks)
        return count_clipped(Learned(measurer.refined(), model, measured, remarks), session)

    def sample_weighted(
        self,
        rows: int | None = None,
        where: Mapping[str, Any] | None = None,
        seed: int | None = None,
        **words: Any,
    ) -> tuple[pd.DataFrame, NDArray[np.int64]]:
        """As :meth:`sample`, but each combination of codes once, and how many rows it stands for.

        Returns:
            The distinct rows and their weights, whole numbers that sum to ``rows``.
        """
        arguments = {"rows": rows, "where": where, "seed": seed}
        rows, where, seed = rename("sample_weighted", arguments, words)
        count, seed = demand_rows("sample_weighted", rows), demand_draw(where, None, seed)
        codes, given, rng = self.learned.sample_codes(count, where, None, seed)
        distinct, counts = np.unique(codes, axis=0, return_counts=True)
        return self.learned.encoding.decode(distinct, rng, given), counts.astype(np.int64)

    def impute(self, frame: pd.DataFrame, seed: int | None = None) -> pd.DataFrame:
        """The same rows with every missing cell drawn given the row's other cells.

        Cells that are there stay as they are. In columns that may be missing by the schema, a gap
        is filled with a value, too.

        Raises:
            DataError: a table that the schema does not fit.
        """
        learned, rng = self.learned, np.random.default_rng(demand_seed(seed))
        frame, known = demand_frame(frame, "table to impute"), Known(self.schema)
        conformed = known.read(frame)
        gaps = [_absent(conformed.columns[c.name]) for c in self.schema.modelled]
        codes = np.where(np.stack(gaps, 1), -1, learned.encoding.encode(conformed))
        codes = codes.astype(np.int32)
        evidence = {
            k: np.append(np.ones(learned.domain.sizes[k] - 1), 0.0)
            for k, column in enumerate(self.schema.modelled)
            if column.missing
        }
        model = learned.model.condition(evidence) if evidence else learned.model
        return known.fill(frame, learned.encoding.decode(model.impute(codes, rng), rng), rng)

    def errors(
        self, tables: Sequence[Sequence[str] | str] | None = None, level: float = 0.95
    ) -> pd.DataFrame:
        """How far the model's counts may be off: by the known noise, and by how the model fits it.

        Args:
            tables: names of columns, or of several together; all columns, and all pairs that were
                measured, if None.
            level: each cell's count is off by no more than its error with this probability at
                least, over the noise; approximate where :meth:`marginal`'s intervals are.

        Returns:
            A row a table: its `columns`, `cells`, the `records` that a cell holds on average, the
            mean and the largest of its cells' errors (`error`, `worst`), in records, and its
            `use`: "well" where the mean error is at most a tenth of what a cell holds, "roughly" at
            most half of it, else "hardly"; "not measured" where no noisy table tells, so that only
            the model does.

        Raises:
            ConfigError: no such column.
        """
        demand_number("level", level, "between 0 and 1", lambda given: 0 < given < 1)
        learned, names = self.learned, [column.name for column in self.schema.modelled]
        cliques = None
        if tables is not None:
            known = [one.name for one in self.schema.observed]
            asked = [sources_of(self.schema, demand_names("tables", one, known)) for one in tables]
            cliques = [tuple(sorted(names.index(name) for name in one)) for one in asked]
        return tabulate_errors(learned.model, learned.measurements, names, cliques, level)

    def marginal(
        self,
        columns: Sequence[str] | str,
        where: Mapping[str, Any] | None = None,
        level: float = 0.95,
    ) -> pd.DataFrame:
        """How many records have each combination of values, with intervals from the known noise.

        Args:
            columns: names of columns, or a single one; numbers are answered by bin.
            where: conditions, as for :meth:`sample`; intervals are not known then.
            level: of the intervals, in (0, 1): each cell's holds the number of records with this
                probability over the noise. Where the same noisy sums also decided what was asked
                again (AIM, MST), or which rare values share a code, it is approximate.

        Returns:
            A row a combination: the values, `count` (the model's), `low` and `high` (from the
            unbiased noisy tables that hold these columns; not a number where none was asked). A
            column of the table that is called like one of these is `column count` here.

        Raises:
            ConfigError: no such column, or too many together.
        """
        demand_number("level", level, "between 0 and 1", lambda given: 0 < given < 1)
        demand_draw(where, None, None)
        learned = self.learned
        names = [column.name for column in self.schema.modelled]
        asked = demand_names("columns", columns, [one.name for one in self.schema.observed])
        if not asked:
            raise ConfigError("columns: name at least one")
        columns = sources_of(self.schema, asked)
        clique = tuple(sorted(names.index(name) for name in columns))
        _, evidence = learned.conditions(where or {})
        model = learned.model.condition(evidence) if evidence else learned.model
        table = (model.marginal(clique) * model.total).ravel()
        labels = [learned.encoding.labels(names[k]) for k in clique]
        index = pd.MultiIndex.from_product(labels, names=[names[k] for k in clique])
        rows = index.to_frame(index=False)
        told = pd.DataFrame({"count": table, "low": np.nan, "high": np.nan})
        known = None if evidence else estimate_marginal(learned.measurements, clique)
        if known is not None:
            noise = np.broadcast_to(known.deviations, known.values.shape).ravel()
            reach = NormalDist().inv_cdf(0.5 + level / 2) * noise
            told["low"] = np.maximum(known.values.ravel() - reach, 0.0)
            told["high"] = np.maximum(known.values.ravel() + reach, 0.0)
        shown = [f"column {name}" if name in told else name for name in asked]
        return pd.concat([rows[list(columns)].set_axis(shown, axis=1), told], axis=1)


def _absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    return values < 0 if values.dtype.kind == "i" else np.isnan(values)
