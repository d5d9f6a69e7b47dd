"""The settings of FedGAN and FedCTGAN, with defaults by what is protected and synthesised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from fedsynth.errors import ConfigError
from fedsynth.methods.gan.defaults import CTGAN, GAN, GENERATORS, QUADRATIC, SCORERS
from fedsynth.methods.training.aggregation.choosing import AggregationSettings
from fedsynth.models.cells import Cells
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Boolean, Categorical, ImageSchema, Schema
from fedsynth.schema.target import conditions

# Cells, each of which may be asked for: a last layer of 67 million weights.
_MOST_ASKED = 8192
# Categories of one column that noise leaves told apart, about.
_TOLD_APART = 1000

Count = Annotated[int | None, Field(ge=1, description="a whole number of at least 1")]
Positive = Annotated[float | None, Field(gt=0, description="a positive number")]
Rate = Annotated[
    float | None, Field(gt=0, le=1e6, description="a positive number, at most a million")
]
Weight = Annotated[float | None, Field(ge=0, description="a number of at least 0")]
Share = Annotated[float | None, Field(ge=0, lt=1, description="a number from 0 to below 1")]
Widths = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...] | None,
    Field(description="a list of layer widths, such as [128]"),
]


class FedGANSettings(AggregationSettings):
    """How the networks look and learn. None means the default for the kind of job.

    Attributes:
        scheme: one conditional GAN (uni), or, client level, one GAN a class (sep; paper 001).
        asks: tables: whether generated rows are asked for a category of one column beside their
            class, and real rows stand for one of their own (CTGAN's conditions).
        architecture: of the generator: dense layers (mlp), CTGAN's (residual), or for images whose
            sides are at least 16 and divisible by 4 convolutions (conv).
        discriminator: mlp, conv (images), or, for tables at the record level, quadratic: a few
            squared projections whose released gradients the generator matches, see
            :mod:`fedsynth.methods.gan.matching`.
        latent: length of the generator's normal vector.
        hidden: widths of the generator's dense hidden layers, or one number of channels.
        discriminator_hidden, classifier_hidden: likewise of the others; of convolutions three, of
            a quadratic discriminator the number of projections.
        loss: logistic (Goodfellow et al. 2014) or wasserstein.
        penalty: weight of the penalty on a discriminator's slope beyond 1, at generated rows alone.
        smoothing: standard deviation of the noise on the cells that a discriminator sees.
        bins: bins wanted for a numeric column.
        rounds: releases of the training.
        rate: share of the units that takes part in a round.
        sampling: independent coin flips, or (client level) rounds of a fixed size.
        clip: L2 bound on one unit's contribution to a round.
        noise_multiplier: fixes the training's noise instead of calibrating it to epsilon. What is
            counted before has its own, by its share: of epsilon, or where none is given, of what
            the training costs.
        histogram_share, label_table_share: of the budget, as in FedVAE's settings.
        local_steps, batch_size: client level: of a client's training in a round.
        discriminator_learning_rate: Adam's, at the client; at the record level the server's.
        learning_rate: the generator's Adam's.
        schedule: of both learning rates over the rounds: constant, or down to zero in a line.
        generator_steps, generator_batch: of the generator in a round, at the server.
        matching, conditional_loss, auxiliary_loss, mode_seeking_loss: weights in the generator's
            loss, see :class:`fedsynth.methods.training.generating.Objective`. With auxiliary_loss
            (record level, data with classes) a classifier is trained beside the discriminator.
        max_gradient_norm: norm to which the generator's gradient is cut.
        average: decay of the moving average of the generator's weights, which is what is released.
        look_every: rounds between looks at the generator's samples, for collapse.
        patience: looks without coming nearer to the released tables after which the training
            stops; None for never.
    """

    renamed: ClassVar[Mapping[str, str]] = {
        "obedience": "conditional_loss",
        "guidance": "auxiliary_loss",
        "diversity": "mode_seeking_loss",
        "steepest": "max_gradient_norm",
    }

    scheme: Annotated[Literal["uni", "sep"] | None, Field(description="uni or sep")] = None
    asks: Annotated[bool | None, Field(description="true or false")] = None
    architecture: Annotated[
        Literal["mlp", "conv", "residual"] | None, Field(description="mlp, conv or residual")
    ] = None
    discriminator: Annotated[
        Literal["mlp", "conv", "quadratic"] | None, Field(description="mlp, conv or quadratic")
    ] = None
    latent: Count = None
    hidden: Widths = None
    discriminator_hidden: Widths = None
    classifier_hidden: Widths = None
    loss: Annotated[
        Literal["logistic", "wasserstein"] | None, Field(description="logistic or wasserstein")
    ] = None
    penalty: Weight = None
    smoothing: Weight = None
    bins: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 32
    rounds: Annotated[int | None, Field(ge=0, description="a whole number of at least 0")] = None
    rate: Annotated[float | None, Field(gt=0, le=1, description="a share in (0, 1]")] = None
    sampling: Annotated[Literal["poisson", "fixed"], Field(description="poisson or fixed")] = (
        "poisson"
    )
    clip: Positive = None
    noise_multiplier: Weight = None
    histogram_share: Annotated[float, Field(gt=0, lt=1, description="a share in (0, 1)")] = 0.03
    label_table_share: Share = None
    local_steps: Count = None
    batch_size: Count = None
    discriminator_learning_rate: Rate = None
    learning_rate: Rate = None
    schedule: Annotated[
        Literal["constant", "linear"] | None, Field(description="constant or linear")
    ] = None
    generator_steps: Count = None
    generator_batch: Annotated[
        int | None, Field(ge=2, description="a whole number of at least 2")
    ] = None
    matching: Weight = None
    conditional_loss: Weight = None
    auxiliary_loss: Weight = None
    mode_seeking_loss: Weight = None
    max_gradient_norm: Annotated[float, Field(gt=0, description="a positive number")] = 10.0
    average: Annotated[float, Field(ge=0, lt=1, description="a number from 0 to below 1")] = 0.99
    look_every: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 25
    patience: Count = None

    method: ClassVar[str] = "fedgan"
    _defaults: ClassVar[Mapping[tuple[bool, bool], Mapping[str, Any]]] = GAN

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> Self:
        """All defaults filled in.

        Raises:
            ConfigError: settings that contradict the unit or the schema.
        """
        images = isinstance(schema, ImageSchema)
        defaults = dict(self._defaults[budget.protects.per_record, images])
        if isinstance(schema, ImageSchema) and not Cells(shape=schema.shape).convolves:
            defaults["architecture"] = "mlp"
        architecture = self.architecture or defaults["architecture"]
        if architecture == "conv":
            defaults["discriminator"] = "conv"
        kind = self.discriminator or defaults["discriminator"]
        if kind == "quadratic":
            defaults.update(QUADRATIC)
        if not conditions(schema):
            defaults.update(scheme="uni", label_table_share=0.0, auxiliary_loss=0.0)
        if (self.scheme or defaults["scheme"]) == "sep":
            defaults.update(label_table_share=0.0, asks=False, auxiliary_loss=0.0, matching=0.0)
        if not (defaults["asks"] if self.asks is None else self.asks):
            defaults["conditional_loss"] = 0.0
        guided = defaults["auxiliary_loss"] if self.auxiliary_loss is None else self.auxiliary_loss
        classifier = SCORERS["conv" if kind == "conv" else "mlp"] if images and guided else ()
        defaults.update(
            hidden=GENERATORS[architecture],
            discriminator_hidden=SCORERS[kind],
            classifier_hidden=classifier,
        )
        given = {k: v for k, v in self.model_dump().items() if v is not None}
        known = self.aggregated(record=budget.protects.per_record)
        full = type(self)(**{**defaults, **given, **known})
        full._check(budget, schema)  # noqa: SLF001
        return full

    def _check(self, budget: Budget, schema: Schema | ImageSchema) -> None:
        record = budget.protects.per_record
        problems = self._misfits(record, schema) | self._idle(record, schema)
        for problem, present in problems.items():
            if present:
                raise ConfigError(f"{self.method}: {problem}")

    def _misfits(self, record: bool, schema: Schema | ImageSchema) -> dict[str, bool]:
        """Networks that do not go with the data or one another: what is said of each, and whether
        it is so."""
        images = isinstance(schema, ImageSchema)
        shape = schema.shape if isinstance(schema, ImageSchema) else ()
        scored, classified = self.discriminator_hidden or (), self.classifier_hidden or ()
        return {
            "scheme sep is one GAN a class, for unit client and a target of categories": self.scheme
            == "sep"
            and (record or not conditions(schema)),
            "asks is for tables, under scheme uni": bool(self.asks)
            and (images or self.scheme == "sep"),
            f"asks joins every cell to every other, and this table has more than {_MOST_ASKED:,} "
            "cells: set fewer bins, or asks: false": bool(self.asks)
            and self._cells(schema) > _MOST_ASKED,
            "conv is for images whose sides are at least 16 pixels and divisible by 4": "conv"
            in (self.architecture, self.discriminator)
            and not (images and Cells(shape=shape).convolves),
            "architecture residual is for tables": self.architecture == "residual" and images,
            "under architecture conv hidden must be one number of channels": self.architecture
            == "conv"
            and len(self.hidden or ()) != 1,
            "under discriminator conv discriminator_hidden must be three numbers of channels, and "
            "so must classifier_hidden": self.discriminator == "conv"
            and not (len(scored) == 3 and (len(classified) == 3 or not self.auxiliary_loss)),
            "discriminator quadratic is for tables at the record level, with loss wasserstein, "
            "without asks, penalty and smoothing, and its discriminator_hidden is one number": (
                self.discriminator == "quadratic"
            )
            and (
                not record
                or images
                or self.asks
                or self.loss != "wasserstein"
                or bool(self.penalty or self.smoothing)
                or len(scored) != 1
            ),
        }

    def _cells(self, schema: Schema | ImageSchema) -> int:
        """About how many cells a table has. Columns of very many categories come to have fewer,
        because rare ones are counted together, so they count for some alone."""
        if isinstance(schema, ImageSchema):
            return 0
        return sum(
            min(len(column.categories), _TOLD_APART)
            if isinstance(column, Categorical | Boolean)
            else self.bins
            for column in schema.modelled
        )

    def _idle(self, record: bool, schema: Schema | ImageSchema) -> dict[str, bool]:
        """Settings that would do nothing, likewise."""
        images, known = isinstance(schema, ImageSchema), conditions(schema) > 0
        # One GAN a class: the released tables are of all classes together.
        untold = images or self.scheme == "sep"
        return {
            "sampling fixed is for clients; records are Poisson-sampled": record
            and self.sampling == "fixed",
            "local_steps and batch_size are of training at clients, and records take one step a "
            "round": record and (self.local_steps is not None or self.batch_size is not None),
            "auxiliary_loss is for unit record and data with classes": bool(self.auxiliary_loss)
            and not (record and known),
            "classifier_hidden needs auxiliary_loss": bool(self.classifier_hidden)
            and not self.auxiliary_loss,
            "label_table_share is for tables with classes, under scheme uni": bool(
                self.label_table_share
            )
            and (untold or not known),
            "patience needs released tables to measure by: it is for tables, under scheme uni": (
                self.patience is not None and untold
            ),
            "matching needs released tables: it is for tables, under scheme uni": bool(
                self.matching
            )
            and untold,
            "conditional_loss needs asks: true": bool(self.conditional_loss) and not self.asks,
        }


class FedCTGANSettings(FedGANSettings):
    """Settings of FedCTGAN: those of FedGAN, with CTGAN's generator, loss and conditions."""

    method: ClassVar[str] = "fedctgan"
    _defaults: ClassVar[Mapping[tuple[bool, bool], Mapping[str, Any]]] = CTGAN

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> Self:
        """All defaults filled in.

        Raises:
            ConfigError: images, or as of FedGAN.
        """
        if isinstance(schema, ImageSchema):
            raise ConfigError("fedctgan is for tables: use fedgan for images")
        return super().resolved(budget, schema)
