"""What a fit leaves behind, and the rows that it draws; all of it is post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from fedsynth.codec import GIVEN
from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.errors import ReleaseError
from fedsynth.methods.gan.game import Game
from fedsynth.methods.gan.networks import conditions_of, game_of, tables_of
from fedsynth.methods.gan.settings import FedGANSettings
from fedsynth.methods.sampling.drawing import Columns, draw_table
from fedsynth.methods.sampling.labels import demand_shares, draw_labels
from fedsynth.methods.training.generating import Conditions
from fedsynth.queries.preliminaries import Preliminaries
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.conditions import condition_on
from fedsynth.schema.target import conditions, target_index
from fedsynth.views import Outlined

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class ConditionRequest:
    """What rows of a table are drawn by.

    Attributes:
        frequencies: of the classes [classes]; empty without classes.
        cells: shares [classes, width] or [1, width] of the cells that rows are asked for; None for
            the released ones.
    """

    frequencies: NDArray[np.float64]
    cells: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Learned(Outlined):
    """What a fit leaves behind, all of it released or computed from released values.

    Attributes:
        game: the networks.
        generators: flat weights of all parts, [parts * generator.dim].
        known: what was asked before the training.
        remarks: what went wrong in the training, in sentences.
        schema: of the rows.
    """

    game: Game
    generators: NDArray[np.float32]
    known: Preliminaries
    remarks: tuple[str, ...]
    schema: Annotated[Schema | ImageSchema, GIVEN]

    @property
    def conditions(self) -> Conditions:
        return conditions_of(self.game, self.known)

    def check(self) -> None:
        """Raises ReleaseError where the parts do not fit the schema or one another."""
        schema = self.schema
        game, known, encoding = self.game, self.known, self.known.encoding
        classes, width = conditions(schema), game.cells.width
        labels = (classes if game.parts == 1 else 0) + (width if game.asks else 0)
        tables = None if known.profiles is None else known.profiles.shape
        demands: dict[str, tuple[object, object]] = {
            "the generators": (self.generators.shape, (game.parts * game.generator.dim,)),
            "the networks' classes": (game.classes, classes),
            "the networks' labels": (game.generator.classes, labels),
            "the networks' parts": (game.parts in (1, classes), True),
            "the tables": (tables in (None, (classes, width)), True),
            "the encoding": (encoding is not None, isinstance(schema, Schema)),
        }
        if isinstance(schema, ImageSchema):
            demands["the networks' cells"] = (game.cells.shape, tuple(schema.shape))
        elif encoding is not None:
            demands["the encoding's columns"] = (encoding.schema.digest, schema.digest)
            if encoding.schema.digest == schema.digest:
                cells = game_of(FedGANSettings(scheme="uni"), schema, encoding).cells
                demands["the networks' cells"] = (game.cells, cells)
        for what, (actual, expected) in demands.items():
            if actual != expected:
                raise ReleaseError(f"{what} are not those of the schema and the other parts")
        if not np.isfinite(self.generators).all():
            raise ReleaseError("the generators are not all numbers")
        demand_shares(known.frequencies, classes)
        shares = known.profiles
        if shares is not None and not (np.isfinite(shares).all() and (shares >= 0).all()):
            raise ReleaseError("the tables are no shares")

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame | Images:
        """Rows that are asked for what the generator knows, and drawn again for the rest."""
        schema = self.schema
        if isinstance(schema, ImageSchema):
            rng = np.random.default_rng(seed)
            labels = draw_labels(schema, self.known.frequencies, rows, where, proportions, rng)
            return Images(image.decode(self._cells(labels, rows, rng), schema), labels)
        request = self.request_condition(schema, where)

        def draw(labels: Labels | None, count: int, rng: np.random.Generator) -> Columns:
            return self._columns(labels, count, rng, request.cells)

        return draw_table(schema, request.frequencies, rows, where, proportions, seed, draw)

    def _cells(
        self,
        labels: Labels | None,
        rows: int,
        rng: np.random.Generator,
        shares: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float32]:
        """Cells [rows, width] of rows with given classes, or of no class where there are none.

        Args:
            shares: [classes, width] or [1, width] of the cells that rows are asked for,
                instead of the released ones.
        """
        game, weights = self.game, torch.from_numpy(self.generators)
        source = torch.Generator().manual_seed(int(rng.integers(2**62)))
        classes = None if labels is None else torch.from_numpy(labels)
        if game.parts == 1:
            conditions = classes
            if game.asks:
                distribution = self.conditions
                if shares is not None:
                    distribution = replace(distribution, cells=shares)
                conditions = distribution.complete(classes, rows, source)
            part = game.generator_weights(weights, 0)
            return np.asarray(game.generator.sample(part, conditions, rows, source).numpy())
        assert labels is not None
        cells = np.zeros((rows, game.cells.width), np.float32)
        for number in np.unique(labels):
            at = np.flatnonzero(labels == number)
            part = game.generator_weights(weights, int(number))
            cells[at] = game.generator.sample(part, None, len(at), source).numpy()
        return cells

    def _columns(
        self,
        labels: Labels | None,
        rows: int,
        rng: np.random.Generator,
        shares: NDArray[np.float64] | None,
    ) -> Columns:
        """Columns of rows with given classes, or of no class where there are none: see
        :data:`fedsynth.methods.sampling.drawing.Draw`.

        Args:
            shares: see :class:`ConditionRequest`.
        """
        encoding = self.known.encoding
        assert encoding is not None
        cells = self._cells(labels, rows, rng, shares)
        stops = np.cumsum(self.game.cells.columns)[:-1]
        codes = np.stack([part.argmax(1) for part in np.split(cells, stops, axis=1)], axis=1)
        if labels is not None:
            codes = np.insert(codes, target_index(encoding.schema), labels, axis=1)
        return encoding.columns(codes, rng)

    def request_condition(
        self, schema: Schema, where: Mapping[str, Any] | None
    ) -> ConditionRequest:
        """Asks for the first condition that the generator can be asked.

        By the released tables, class and cell are then drawn as they are among the rows that meet
        it: were every class asked for the cell as often as it comes, the condition would move no
        class.
        """
        encoding, game, known = self.known.encoding, self.game, self.known
        frequencies = known.frequencies if conditions(schema) else np.zeros(0)
        tables = tables_of(game, known)
        if not game.asks or encoding is None or tables is None:
            return ConditionRequest(frequencies)
        if len(frequencies) and known.profiles is None:
            return ConditionRequest(frequencies)
        modelled = [column.name for column in schema.modelled]
        names = [n for n in modelled if not (game.labelled and n == schema.target)]
        for name, value in (where or {}).items():
            if name not in names:
                continue
            start = sum(game.cells.columns[: names.index(name)])
            at = slice(start, start + game.cells.columns[names.index(name)])
            # A category that the noise has emptied can be asked for all the same.
            likelihoods = tables[:, at] + 1e-9
            likelihoods = likelihoods * encoding.likelihood(
                name, condition_on(schema.column(name), value)
            )
            cells = np.zeros_like(tables)
            cells[:, at] = likelihoods / likelihoods.sum(axis=1, keepdims=True)
            if len(frequencies):
                frequencies = frequencies * likelihoods.sum(axis=1)
                frequencies = frequencies / frequencies.sum()
            return ConditionRequest(frequencies, cells)
        return ConditionRequest(frequencies)
