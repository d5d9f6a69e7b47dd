"""The settings of FedVAE, with defaults by what is protected and what is synthesised."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fedsynth.errors import ConfigError
from fedsynth.methods.training.aggregation.choosing import AggregationSettings
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions

Positive = Annotated[float | None, Field(gt=0, description="a positive number")]
Share = Annotated[float | None, Field(ge=0, lt=1, description="a number from 0 to below 1")]


class FedVAESettings(AggregationSettings):
    """How FedVAE models and trains. None means the default for the unit and the kind of data.

    Attributes:
        scheme: one conditional VAE (uni) or one VAE a class (sep); paper 001, section 4.4.2.
        encoder: shared, private or, record level, frozen: see
            :mod:`fedsynth.methods.vae.tasks.gradient`. At the client level private, as in the
            paper, where clients take part in many rounds: one is trained in its client's alone.
        architecture: dense layers, or for images the paper's convolutions.
        hidden: widths of the encoder's dense layers; the decoder has them reversed.
        latent: size of the latent vector.
        activation: of the dense hidden layers.
        kl_weight: weight of the KL term; 1 is the evidence lower bound.
        classifier_weight: record level, tables: weight of an auxiliary linear classifier that
            learns the label from the record beside the VAE; without a condition, synthetic rows
            take their labels from it. 0 for none.
        likelihood: what a table's numbers are to the decoder: bins, each a code with a softmax
            over all; or gaussian, a linear output each, taken off the mean and divided by the
            deviation that the histogram shows (paper 001, section 4.4.3). A gaussian has fewer
            weights; bins tell of shapes, and are far ahead where records are protected and few.
            Categories have their softmax either way.
        sigma: gaussian: the deviation of all numbers about the decoder's outputs, in deviations of
            their columns; rows are drawn with it. By default each column's and class's is learned.
        bins: bins wanted for a numeric column.
        rounds: releases of the training.
        rate: share of the units that takes part in a round.
        sampling: independent coin flips, or (client level) rounds of a fixed size.
        clip: L2 bound on one unit's contribution to a round.
        learning_rate: of the clients' SGD (client level), or of the server's descent along clipped
            gradients divided by the clip (record level; by default from signal and noise).
        batch_size: of the clients' SGD (client level).
        average: decay of the moving average of the weights that is released (record level).
        noise_multiplier: fixes the training's noise instead of calibrating it to epsilon. What is
            counted before has its own, by its share: of epsilon, or where none is given, of what
            the training costs.
        histogram_share, label_table_share: what the histogram and the tables of columns by label
            may use of the budget, as shares of the squared signal-to-noise ratio that a single
            Gaussian release could have. A label_table_share of 0 asks for no tables. By default the
            histogram has .03; of gaussians, which have no tables, .2.
        pair_share: record level, tables: the same of tables of any two columns, by which rows are
            led to go together (:mod:`fedsynth.methods.vae.coupling`). 0 asks for none; by default
            .1 where there are 2 to 25 columns beside the classes: more leave each too much noise.
            Of tables that have more than 2,097,152 counts together the largest are left out.
    """

    method: ClassVar[str] = "fedvae"

    scheme: Annotated[Literal["uni", "sep"] | None, Field(description="uni or sep")] = None
    encoder: Annotated[
        Literal["private", "shared", "frozen"] | None,
        Field(description="private, shared or frozen"),
    ] = None
    architecture: Annotated[Literal["mlp", "conv"] | None, Field(description="mlp or conv")] = None
    hidden: Annotated[
        tuple[int, ...] | None, Field(description="a list of layer widths, such as [128]")
    ] = None
    latent: Annotated[int | None, Field(ge=1, description="a whole number of at least 1")] = None
    activation: Annotated[Literal["relu", "tanh"] | None, Field(description="relu or tanh")] = None
    classifier_weight: Annotated[
        float | None, Field(ge=0, description="a number of at least 0")
    ] = None
    kl_weight: Annotated[float, Field(ge=0, description="a number of at least 0")] = 1.0
    likelihood: Annotated[Literal["bins", "gaussian"], Field(description="bins or gaussian")] = (
        "bins"
    )
    sigma: Annotated[float | None, Field(ge=0.01, le=100, description="from 0.01 to 100")] = None
    bins: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 32
    rounds: Annotated[int | None, Field(ge=0, description="a whole number of at least 0")] = None
    rate: Annotated[float | None, Field(gt=0, le=1, description="a share in (0, 1]")] = None
    sampling: Annotated[Literal["poisson", "fixed"], Field(description="poisson or fixed")] = (
        "poisson"
    )
    clip: Positive = None
    learning_rate: Positive = None
    batch_size: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 16
    average: Annotated[float, Field(ge=0, lt=1, description="a number from 0 to below 1")] = 0.95
    noise_multiplier: Annotated[float | None, Field(ge=0, description="a number of at least 0")] = (
        None
    )
    histogram_share: Annotated[float | None, Field(gt=0, lt=1, description="a share in (0, 1)")] = (
        None
    )
    label_table_share: Share = None
    pair_share: Share = None

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> FedVAESettings:
        """All defaults filled in.

        Raises:
            ConfigError: settings that contradict the unit or the schema.
        """
        images = isinstance(schema, ImageSchema)
        defaults = {"histogram_share": 0.03, **_DEFAULTS[budget.protects.per_record, images]}
        if isinstance(schema, ImageSchema) and min(schema.shape[:2]) < 16:
            defaults["architecture"] = "mlp"
        if not conditions(schema):
            defaults.update(scheme="uni", label_table_share=0.0, classifier_weight=0.0)
        elif "sep" in (defaults["scheme"], self.scheme):
            defaults.update(label_table_share=0.0, classifier_weight=0.0)
        sep = "sep" in (defaults["scheme"], self.scheme)
        if sep or not 2 <= _decoded(schema) <= _MOST_PAIRED:
            defaults.update(pair_share=0.0)
        if self.likelihood == "gaussian":
            defaults.update(label_table_share=0.0, classifier_weight=0.0, pair_share=0.0)
            # What tables by label would have: all that numbers are scaled by is the histogram.
            defaults["histogram_share"] = _SCALED
        given = {k: v for k, v in self.model_dump().items() if v is not None}
        known = self.aggregated(record=budget.protects.per_record)
        full = FedVAESettings(**{**defaults, **given, **known})
        full._check(budget, schema)
        return full

    def _check(self, budget: Budget, schema: Schema | ImageSchema) -> None:
        record = budget.protects.per_record
        problems = {
            "scheme sep needs a categorical target": self.scheme == "sep"
            and not conditions(schema),
            "scheme sep takes a person's rows apart by class, so what they add up to cannot be "
            "clipped; scheme uni does not (unit: person)": self.scheme == "sep"
            and budget.protects.joined,
            "architecture conv is for images": self.architecture == "conv"
            and isinstance(schema, Schema),
            "encoder frozen is for records; whole clients' is private or shared": not record
            and self.encoder == "frozen",
            "sampling fixed is for clients; records are Poisson-sampled": record
            and self.sampling == "fixed",
            "classifier_weight needs scheme uni, a table and a categorical target": bool(
                self.classifier_weight
            )
            and (self.scheme == "sep" or isinstance(schema, ImageSchema) or not conditions(schema)),
            "likelihood gaussian is for tables": self.likelihood == "gaussian"
            and isinstance(schema, ImageSchema),
            "classifier_weight and label_table_share need likelihood bins": self.likelihood
            == "gaussian"
            and bool(self.classifier_weight or self.label_table_share),
            "sigma needs likelihood gaussian": self.sigma is not None
            and self.likelihood != "gaussian",
            "label_table_share needs scheme uni, a table and a categorical target": bool(
                self.label_table_share
            )
            and (self.scheme == "sep" or isinstance(schema, ImageSchema) or not conditions(schema)),
            "pair_share needs records, scheme uni, likelihood bins, and a table of two columns "
            "beside the classes": bool(self.pair_share)
            and (
                not record
                or self.scheme == "sep"
                or self.likelihood == "gaussian"
                or _decoded(schema) < 2
            ),
        }
        for problem, present in problems.items():
            if present:
                raise ConfigError(f"fedvae: {problem}")


def _decoded(schema: Schema | ImageSchema) -> int:
    """How many columns a table's decoder has; 0 of images."""
    if isinstance(schema, ImageSchema):
        return 0
    return len(schema.modelled) - bool(conditions(schema))


_MOST_PAIRED = 25
_SCALED = 0.2
"""Share of the histogram by which numbers are scaled."""

# By whether rows are records', and whether the data are images.
_DEFAULTS: dict[tuple[bool, bool], dict[str, Any]] = {
    (True, False): {
        "scheme": "uni",
        "encoder": "shared",
        "architecture": "mlp",
        "hidden": (128,),
        "latent": 8,
        "rounds": 200,
        "rate": 0.1,
        "clip": 1.0,
        "label_table_share": 0.2,
        "pair_share": 0.1,
        "activation": "tanh",
        "classifier_weight": 10.0,
    },
    (True, True): {
        "scheme": "uni",
        "encoder": "frozen",
        "architecture": "mlp",
        "hidden": (128,),
        "latent": 4,
        "rounds": 300,
        "rate": 0.3,
        "clip": 1.0,
        "label_table_share": 0.0,
        "pair_share": 0.0,
        "activation": "relu",
        "classifier_weight": 0.0,
    },
    # Paper 001, tables of section 4.4.3, with S = 0.5.
    (False, False): {
        "scheme": "sep",
        "encoder": "private",
        "architecture": "mlp",
        "hidden": (128, 64, 32, 16),
        "latent": 8,
        "rounds": 1200,
        "rate": 0.5,
        "clip": 0.5,
        "learning_rate": 1e-3,
        "label_table_share": 0.0,
        "pair_share": 0.0,
        "activation": "relu",
        "classifier_weight": 0.0,
    },
    (False, True): {
        "scheme": "uni",
        "encoder": "private",
        "architecture": "conv",
        "hidden": (),
        "latent": 8,
        "rounds": 1500,
        "rate": 0.5,
        "clip": 0.5,
        "learning_rate": 2e-3,
        "label_table_share": 0.0,
        "pair_share": 0.0,
        "activation": "relu",
        "classifier_weight": 0.0,
    },
}
