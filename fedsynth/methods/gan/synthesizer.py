"""FedGAN and FedCTGAN: generative adversarial networks across clients.

Only the discriminator sees real rows, so it alone is private; the generator learns at the server
from it, which is post-processing and free. Client level: DP-FedAvg-GAN (paper 001, Algorithm 3).
Record level: one global step of the discriminator a round, from clipped gradients of
Poisson-sampled records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.methods.gan.game import Game
from fedsynth.methods.gan.networks import Learned, game_of
from fedsynth.methods.gan.sampling import Labels, drawn_images, table_columns, wished
from fedsynth.methods.gan.server import trained, training_task
from fedsynth.methods.gan.settings import FedCTGANSettings, FedGANSettings
from fedsynth.methods.sampling.drawing import Columns, draw_table
from fedsynth.methods.synthesizer import Trained, settled
from fedsynth.privacy.budget import Budget
from fedsynth.queries.fit import Fitting, Options
from fedsynth.queries.preliminaries import Preliminaries
from fedsynth.queries.rounds import Named, Plan, begin_rounds
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions


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
            options: see :class:`fedsynth.queries.fit.Options`.

        Raises:
            DataError, ConfigError: the data, schema and settings do not go together.
            PrivacyError: the budget cannot carry the job.
            FederationError: too few clients answered a round.
        """
        settings = self.settings.resolved(budget, self.schema)
        run = Options(**options)
        rounds = begin_rounds(owners, self.schema, budget, settings, run, self._task)
        with rounds as (fitting, plan):
            self._begin(fitting)
            self._learned = self._trained(settings, plan, fitting)
        return self

    @staticmethod
    def _task(budget: Budget) -> Named:
        """What clients are asked in the training's rounds."""
        return training_task(budget)

    def _trained(self, settings: FedGANSettings, plan: Plan, fitting: Fitting) -> Learned:
        """The whole training, or the rest of an interrupted one."""
        return trained(self.schema, settings, plan, fitting)

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
            return drawn_images(learned, schema, rows, where, proportions, seed)
        wish = wished(learned, schema, where)

        def draw(labels: Labels | None, count: int, rng: np.random.Generator) -> Columns:
            return table_columns(learned, labels, count, rng, wish.cells)

        return draw_table(schema, wish.frequencies, rows, where, proportions, seed, draw)

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything :meth:`sample` needs: arrays, and JSON-able values. Nothing private."""
        learned = self.learned
        arrays, known = learned.known.to_state()
        arrays["generators"] = learned.generators
        meta = {
            "game": learned.game.to_dict(),
            "settings": self.settings.model_dump(exclude_unset=True, mode="json"),
            "remarks": list(learned.remarks),
            **known,
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
                Preliminaries.from_state(arrays, meta),
                tuple(str(remark) for remark in meta["remarks"]),
            )
            found = cls(schema, **meta["settings"])
        except (KeyError, TypeError, ValueError, ConfigError):
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
    game, known, encoding = learned.game, learned.known, learned.known.encoding
    classes, width = conditions(schema), game.cells.width
    labels = (classes if game.parts == 1 else 0) + (width if game.asks else 0)
    tables = None if known.profiles is None else known.profiles.shape
    wanted: dict[str, tuple[object, object]] = {
        "the generators": (learned.generators.shape, (game.parts * game.generator.dim,)),
        "the frequencies": (known.frequencies.shape, (classes,)),
        "the networks' classes": (game.classes, classes),
        "the networks' labels": (game.generator.classes, labels),
        "the networks' parts": (game.parts in (1, classes), True),
        "the tables": (tables in (None, (classes, width)), True),
        "the encoding": (encoding is not None, isinstance(schema, Schema)),
    }
    if isinstance(schema, ImageSchema):
        wanted["the networks' cells"] = (game.cells.shape, tuple(schema.shape))
    elif encoding is not None:
        wanted["the encoding's columns"] = (encoding.schema.digest, schema.digest)
        if encoding.schema.digest == schema.digest:
            own = game_of(FedGANSettings(scheme="uni"), schema, encoding).cells
            wanted["the networks' cells"] = (game.cells, own)
    for what, (found, fitting) in wanted.items():
        if found != fitting:
            raise ReleaseError(f"{what} are not those of the schema and the other parts")
    if not np.isfinite(learned.generators).all():
        raise ReleaseError("the generators are not all numbers")
    for what, shares in (("frequencies", known.frequencies), ("tables", known.profiles)):
        if shares is not None and not (np.isfinite(shares).all() and (shares >= 0).all()):
            raise ReleaseError(f"the {what} are no shares")
    if classes and not known.frequencies.sum() > 0:
        raise ReleaseError("the frequencies are no shares")
