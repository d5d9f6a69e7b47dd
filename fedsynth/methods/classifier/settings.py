"""The settings of the federated classifier, with defaults by what is protected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field

from fedsynth.errors import ConfigError
from fedsynth.methods.training.aggregation.choosing import AggregationSettings
from fedsynth.models.kinds import describe
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema

BY_HISTOGRAM, BY_SCHEMA = "histogram", "schema"

_Whole = Annotated[int | None, Field(ge=1, description="a whole number of at least 1")]
_Positive = Annotated[float | None, Field(gt=0, description="a positive number")]
_Cuts = dict[str, tuple[Annotated[float, Field(allow_inf_nan=False)], ...]]


class FederatedClassifierSettings(AggregationSettings):
    """How the classifier sees rows and learns. None means the default for the unit.

    Attributes:
        hidden: widths of the hidden layers; none for logistic regression.
        activation: of the hidden layers.
        layers: another network, in their place: layers of `torch.nn` one behind another, from
            numbers [inputs] or an image [channels, height, width] to a logit a class. In Python
            also a `torch.nn.Sequential`.
        scaled_by: what numbers and dates are scaled by: "histogram", asked within the budget before
            the training; "schema", the declared bounds; the folder of a release, quantiles of whose
            rows are taken, which costs nothing more; or cut points that anybody may know, by
            column.
        rounds: of the training.
        rate: share of the units that takes part in a round.
        sampling: independent coin flips, or (client level) rounds of a fixed size.
        clip: L2 bound on one unit's contribution to a round.
        learning_rate: of the clients' SGD (client level), or of the server's descent along clipped
            gradients divided by the clip (record level; by default from signal and noise).
        weight_decay: L2 penalty: half of it times the squared weights is added to the mean loss.
        batch_size, local_epochs: of the clients' SGD (client level).
        average: decay of the moving average of the weights that is released (record level).
        noise_multiplier: fixes the training's noise instead of calibrating it to epsilon.
        histogram_share: what the first question, a histogram or counts of the target's classes, may
            use of the budget, as a share of the squared signal-to-noise ratio that a single
            Gaussian release could have.
    """

    method: ClassVar[str] = "federated-classifier"

    hidden: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...],
        Field(description="a list of layer widths, such as [32]; [] for logistic regression"),
    ] = ()
    activation: Annotated[Literal["relu", "tanh"], Field(description="relu or tanh")] = "tanh"
    layers: Annotated[
        tuple[tuple[str, dict[str, Any]], ...] | None,
        BeforeValidator(lambda given: None if given is None else describe(given)),
        Field(
            description="a list of layers, such as [Flatten, {LazyLinear: 32}, ReLU, {LazyLinear: "
            "10}]"
        ),
    ] = None
    scaled_by: Annotated[
        str | _Cuts,
        BeforeValidator(lambda given: str(given) if isinstance(given, Path) else given),
        Field(
            description="histogram, schema, the folder of a release, or rising cut points by column"
        ),
    ] = BY_HISTOGRAM
    rounds: _Whole = None
    rate: Annotated[float | None, Field(gt=0, le=1, description="a share in (0, 1]")] = None
    sampling: Annotated[Literal["poisson", "fixed"], Field(description="poisson or fixed")] = (
        "poisson"
    )
    clip: _Positive = None
    learning_rate: _Positive = None
    weight_decay: Annotated[float, Field(ge=0, description="a number of at least 0")] = 0.0
    batch_size: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 16
    local_epochs: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 1
    average: Annotated[float, Field(ge=0, lt=1, description="a number from 0 to below 1")] = 0.95
    noise_multiplier: Annotated[float | None, Field(ge=0, description="a number of at least 0")] = (
        None
    )
    histogram_share: Annotated[float, Field(gt=0, lt=1, description="a share in (0, 1)")] = 0.03

    @property
    def label_table_share(self) -> float:
        """No tables are asked."""
        return 0.0

    def map_paths(self, change: Callable[[str], str]) -> Self:
        scaled_by = self.scaled_by
        if not isinstance(scaled_by, str) or scaled_by in (BY_HISTOGRAM, BY_SCHEMA):
            return self
        return self.model_copy(update={"scaled_by": change(scaled_by)})

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> FederatedClassifierSettings:
        """All defaults filled in.

        Raises:
            ConfigError: settings that contradict the unit.
        """
        record = budget.protects.per_record
        if self.layers is not None and (self.hidden or self.activation != "tanh"):
            raise ConfigError(f"{self.method}: layers stand in the place of hidden and activation")
        if record and self.sampling == "fixed":
            raise ConfigError(
                f"{self.method}: sampling fixed is for clients; records are Poisson-sampled"
            )
        given = {k: v for k, v in self.model_dump().items() if v is not None}
        known = self.aggregated(record=record, local=True)
        return FederatedClassifierSettings(**{**_DEFAULTS[record], **given, **known})


# By whether rows are records'.
_DEFAULTS: dict[bool, dict[str, Any]] = {
    True: {"rounds": 100, "rate": 0.1, "clip": 1.0},
    False: {"rounds": 50, "rate": 0.5, "clip": 0.5, "learning_rate": 0.1},
}
