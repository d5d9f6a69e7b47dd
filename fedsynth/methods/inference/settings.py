"""The settings of FedInfer."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedsynth.methods.settings import MethodSettings
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.mechanisms import norm_of
from fedsynth.privacy.rows.clipping import Norm
from fedsynth.schema import ImageSchema, Schema


class FedInferSettings(MethodSettings):
    """What the one message holds.

    Attributes:
        clip: bound on the norm of a record's coordinates, as a share of the largest norm that any
            record can have. At 1 no record is shortened and all answers are of the records as they
            are. Below, noise shrinks with its square, and what is said is of shortened records:
            errors and intervals do not cover the difference.
        class_conditional: whether each class of the target has a covariance of its own, or all
            share that within classes, which is known better where records are few or noise is
            strong. Means are of each class either way.
        mechanism: gaussian noise and L2 norms, or laplace noise and L1 norms.
    """

    method: ClassVar[str] = "fedinfer"

    clip: Annotated[float, Field(gt=0, le=1, description="a share in (0, 1]")] = 1.0
    class_conditional: Annotated[bool, Field(description="true or false")] = True
    mechanism: Annotated[
        Literal["gaussian", "laplace"], Field(description="gaussian or laplace")
    ] = "gaussian"

    @property
    def norm(self) -> Norm:
        return norm_of(self.mechanism)

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> FedInferSettings:
        """All defaults filled in.

        Raises:
            ConfigError: settings that contradict the schema.
        """
        return self
