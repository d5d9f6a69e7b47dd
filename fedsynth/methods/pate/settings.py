"""The settings of PATE."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedsynth.errors import ConfigError
from fedsynth.methods.settings import MethodSettings
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions

Labels = Literal["denoised", "argmax"]

# Records of a client are shared out among so many teachers.
_TEACHERS = 100


class PATESettings(MethodSettings):
    """What the teachers are asked, and what is made of their votes.

    Attributes:
        teachers: of every client, each taught by its own share of the client's records; by default
            100 where records are protected, 1 where clients are.
        queries: rows that the teachers label. All their votes are one release, whose noise grows
            with the square root of the rows: many rows noisily labelled teach about as much as few.
        noise: gaussian, or laplace as first published, whose noise grows with the rows themselves.
        row_share: share of the budget that draws the rows to be labelled; unused with public ones.
        steps: of a teacher's training, about, of up to 32 rows each.
        labels: what the student learns from: denoised vote shares (a Gaussian process, whose noise
            is known, over all rows), or the class with the most noisy votes, as published.
    """

    method: ClassVar[str] = "pate"

    teachers: Annotated[
        int | None, Field(ge=1, le=10_000, description="a whole number from 1 to 10,000")
    ] = None
    queries: Annotated[int, Field(ge=1, le=5_000, description="a whole number from 1 to 5,000")] = (
        1_000
    )
    noise: Annotated[Literal["gaussian", "laplace"], Field(description="gaussian or laplace")] = (
        "gaussian"
    )
    row_share: Annotated[float, Field(gt=0, lt=1, description="a share in (0, 1)")] = 0.5
    steps: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 60
    labels: Annotated[Labels, Field(description="denoised or argmax")] = "denoised"

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> PATESettings:
        """All defaults filled in.

        Raises:
            ConfigError: a schema without a target of categories beside other columns.
        """
        demand_classes(schema)
        if self.teachers is not None:
            return self
        return self.model_copy(update={"teachers": _TEACHERS if budget.protects.per_record else 1})


def demand_classes(schema: Schema | ImageSchema) -> None:
    """Raises ConfigError where there is nothing for teachers to vote on."""
    if not conditions(schema):
        raise ConfigError(
            "pate: teachers vote on the target's value, so the schema needs a target of categories "
            "beside other columns (or labels, of images)"
        )
