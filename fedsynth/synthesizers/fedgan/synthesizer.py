"""FedGAN and FedCTGAN: generative adversarial networks across clients.

Only the discriminator sees real rows, so it alone is private; the generator learns at the server
from it, which is post-processing and free. Client level: DP-FedAvg-GAN (paper 001, Algorithm 3).
Record level: one global step of the discriminator a round, from clipped gradients of
Poisson-sampled records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.privacy.terms import Budget
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.conditions import condition_on
from fedsynth.synthesizers.counting import conditions, question, target_index
from fedsynth.synthesizers.drawing import Columns, demanded, draw_table
from fedsynth.synthesizers.fedgan.game import Game
from fedsynth.synthesizers.fedgan.server import (
    Learned,
    game_of,
    known_arrays,
    known_from,
    known_meta,
    tables_of,
    trained,
    training_task,
)
from fedsynth.synthesizers.fedgan.settings import FedCTGANSettings, FedGANSettings
from fedsynth.synthesizers.fitting import Options, begin
from fedsynth.synthesizers.labels import wanted_labels
from fedsynth.synthesizers.owners import Owners
from fedsynth.synthesizers.rounds import Plan, make_plan
from fedsynth.synthesizers.trained import Trained, settled

Labels = NDArray[np.int64]


class FedGAN(Trained[Learned]):
    """Federated GAN for tables and images.

    Args:
        schema: what the parties agreed on.
        settings: see :class:`FedGANSettings`; or its fields as keywords.

    Example:
        >>> synth = FedGAN(schema, rounds=100)                      # doctest: +SKIP
        >>> synth.fit(sites, Budget(epsilon=1.0)).sample(1000)      # doctest: +SKIP
    """

    name: ClassVar[str] = "fedgan"
    settings_type: ClassVar[type[FedGANSettings]] = FedGANSettings

    def __init__(
        self,
        schema: Schema | ImageSchema,
        settings: FedGANSettings | None = None,
        **overrides: Any,
    ) -> None:
        self.schema = schema
        self.settings = settled(self.settings_type, settings, overrides)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What went wrong in the training, in sentences; nothing, mostly."""
        return self.learned.remarks

    def fit(self, owners: Owners, budget: Budget, **options: Any) -> Self:
        """Train on every owner's rows, within the budget.

        A training that diverges ends early and keeps the last good generator; :attr:`remarks` says
        so.

        Args:
            owners: one table or image set an owner: a mapping by name, a list, or a single one.
            budget: what all releases of this job may cost together.
            options: see :class:`fedsynth.synthesizers.fitting.Options`.

        Raises:
            DataError, ConfigError: the data, schema and settings do not go together.
            PrivacyError: the budget cannot carry the job.
            FederationError: too few clients answered a round.
        """
        settings = self.settings.resolved(budget, self.schema)
        run = Options(**options)
        plans: list[Plan] = []

        def plan(resolved: Budget, clients: int) -> Any:
            made = make_plan(settings, self.schema, resolved, clients, run.survivors)
            plans.append(made)
            first, _, _ = question(self.schema)
            return made.planned(training_task(resolved), first), made.participations

        # Products this small are slower on several threads, which OpenBLAS keeps spinning.
        with (
            begin(owners, self.schema, budget, plan, run, settings) as fitting,
            threadpool_limits(limits=1, user_api="blas"),
        ):
            made = plans[0] if plans else Plan.of(fitting.ledger.job)
            self._begin(fitting)
            self._learned = trained(self.schema, settings, made, fitting)
        return self

    def sample(
        self,
        rows: int,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame | Images:
        """Draw synthetic rows; costs nothing, as often as wanted.

        Args:
            rows: how many, at least 1. A public choice: the true number of records is private.
            where: a condition by column, which every row is to meet; of images, on the target. That
                on the target is exact. Rows are asked for others where the generator knows them
                (``asks``), and drawn again until they meet them.
            proportions: shares of the target's values, instead of their estimated frequencies.
            seed: makes the draw repeatable.

        Raises:
            ConfigError: rows below 1, or conditions that make no sense or that hardly a row meets.
        """
        learned, schema = self.learned, self.schema
        if isinstance(schema, ImageSchema):
            return _images(learned, schema, rows, where, proportions, seed)
        wish = _wished(learned, schema, where)

        def draw(labels: Labels | None, count: int, rng: np.random.Generator) -> Columns:
            return _columns(learned, labels, count, rng, wish.cells)

        return draw_table(schema, wish.frequencies, rows, where, proportions, seed, draw)

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything :meth:`sample` needs: arrays, and JSON-able values. Nothing private."""
        learned = self.learned
        arrays: dict[str, NDArray[Any]] = {
            "generators": learned.generators,
            **known_arrays(learned.known),
        }
        meta = {
            "game": learned.game.to_dict(),
            "settings": self.settings.model_dump(exclude_unset=True, mode="json"),
            "remarks": list(learned.remarks),
            **known_meta(learned.known),
        }
        return arrays, meta

    @classmethod
    def from_state(
        cls,
        schema: Schema | ImageSchema,
        arrays: Mapping[str, NDArray[Any]],
        meta: Mapping[str, Any],
    ) -> Self:
        """The inverse of :meth:`model_state`. Raises ReleaseError where the parts do not fit."""
        try:
            game = Game.from_dict(meta["game"])
            learned = Learned(
                game,
                np.asarray(arrays["generators"], np.float32),
                known_from(arrays, meta),
                tuple(str(remark) for remark in meta["remarks"]),
            )
            found = cls(schema, **meta["settings"])
        except (KeyError, TypeError, ValueError):
            raise ReleaseError("the model's files do not fit together") from None
        _check(learned, schema)
        found._learned = learned
        return found


class FedCTGAN(FedGAN):
    """Federated DP-CTGAN: CTGAN's networks, losses and conditions (Xu et al. 2019) for tables.

    Cells are those of a fixed encoding, from the schema and a noisy histogram, so the networks of
    all clients have the same shape and their sums mean something. Records are sampled first and a
    condition is then read off each; the generator's conditions come from released frequencies.

    Raises:
        ConfigError: a schema of images.
    """

    name: ClassVar[str] = "fedctgan"
    settings_type: ClassVar[type[FedGANSettings]] = FedCTGANSettings

    def __init__(
        self,
        schema: Schema | ImageSchema,
        settings: FedGANSettings | None = None,
        **overrides: Any,
    ) -> None:
        if isinstance(schema, ImageSchema):
            raise ConfigError("fedctgan is for tables: use fedgan for images")
        super().__init__(schema, settings, **overrides)


def _check(learned: Learned, schema: Schema | ImageSchema) -> None:
    """Raises ReleaseError where the parts do not fit the schema or one another."""
    game, known = learned.game, learned.known
    classes = conditions(schema)
    encoded = known.encoding is not None
    wanted = {
        "the generators": (learned.generators.shape, (game.parts * game.generator.dim,)),
        "the frequencies": (known.frequencies.shape, (classes,)),
        "the networks' classes": (game.classes, classes),
        "the encoding": (encoded, isinstance(schema, Schema)),
    }
    if isinstance(schema, ImageSchema):
        wanted["the networks' cells"] = (game.cells.shape, tuple(schema.shape))
    elif known.encoding is not None:
        own = game_of(FedGANSettings(scheme="uni"), schema, known.encoding).cells
        wanted["the networks' cells"] = (game.cells, own)
    for what, (found, fitting) in wanted.items():
        if found != fitting:
            raise ReleaseError(f"{what} are not those of the schema and the other parts")


def _cells(
    learned: Learned,
    labels: Labels | None,
    rows: int,
    rng: np.random.Generator,
    wish: NDArray[np.float64] | None = None,
) -> NDArray[np.float32]:
    """Cells [rows, width] of rows with given classes, or of no class where there are none.

    Args:
        wish: shares [classes, width] or [1, width] of the cells that rows are asked for, instead of
            the released ones.
    """
    game, weights = learned.game, torch.from_numpy(learned.generators)
    source = torch.Generator().manual_seed(int(rng.integers(2**62)))
    own = None if labels is None else torch.from_numpy(labels)
    if game.parts == 1:
        asked = own
        if game.asks:
            given = learned.conditions
            if wish is not None:
                given = replace(given, cells=wish)
            asked = given.complete(own, rows, source)
        part = game.generator_weights(weights, 0)
        return np.asarray(game.generator.sample(part, asked, rows, source).numpy())
    assert labels is not None
    found = np.zeros((rows, game.cells.width), np.float32)
    for number in np.unique(labels):
        at = np.flatnonzero(labels == number)
        part = game.generator_weights(weights, int(number))
        found[at] = game.generator.sample(part, None, len(at), source).numpy()
    return found


def _columns(
    learned: Learned,
    labels: Labels | None,
    rows: int,
    rng: np.random.Generator,
    wish: NDArray[np.float64] | None,
) -> Columns:
    encoding = learned.known.encoding
    assert encoding is not None
    cells = _cells(learned, labels, rows, rng, wish)
    stops = np.cumsum(learned.game.cells.columns)[:-1]
    codes = np.stack([part.argmax(1) for part in np.split(cells, stops, axis=1)], axis=1)
    if labels is not None:
        codes = np.insert(codes, target_index(encoding.schema), labels, axis=1)
    return encoding.columns(codes, rng)


@dataclass(frozen=True)
class _Wish:
    """What rows of a table are drawn by: shares of the classes, and of the cells to ask for."""

    frequencies: NDArray[np.float64]
    cells: NDArray[np.float64] | None = None


def _wished(learned: Learned, schema: Schema, where: Mapping[str, Any] | None) -> _Wish:
    """Asks for the first condition that the generator can be asked.

    By the released tables, class and cell are then drawn as they are among the rows that meet it:
    were every class asked for the cell as often as it comes, the condition would move no class.
    """
    encoding, game, known = learned.known.encoding, learned.game, learned.known
    frequencies = known.frequencies if conditions(schema) else np.zeros(0)
    tables = tables_of(game, known)
    if not game.asks or encoding is None or tables is None:
        return _Wish(frequencies)
    if len(frequencies) and known.profiles is None:
        return _Wish(frequencies)
    modelled = [column.name for column in schema.modelled]
    names = [n for n in modelled if not (game.labelled and n == schema.target)]
    for name, value in (where or {}).items():
        if name not in names:
            continue
        start = sum(game.cells.columns[: names.index(name)])
        at = slice(start, start + game.cells.columns[names.index(name)])
        # A category that the noise has emptied can be asked for all the same.
        own = tables[:, at] + 1e-9
        own = own * encoding.likelihood(name, condition_on(schema.column(name), value))
        cells = np.zeros_like(tables)
        cells[:, at] = own / own.sum(axis=1, keepdims=True)
        if len(frequencies):
            frequencies = frequencies * own.sum(axis=1)
            frequencies = frequencies / frequencies.sum()
        return _Wish(frequencies, cells)
    return _Wish(frequencies)


def _images(
    learned: Learned,
    schema: ImageSchema,
    rows: int,
    where: Mapping[str, Any] | None,
    proportions: Mapping[Any, float] | None,
    seed: int | None,
) -> Images:
    rng = demanded(rows, seed)
    labels = wanted_labels(schema, learned.known.frequencies, rows, where, proportions, rng)
    return Images(image.decode(_cells(learned, labels, rows, rng), schema), labels)
