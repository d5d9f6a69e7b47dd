"""Settings that AIM, MST and PrivBayes share."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from fedsynth.errors import ConfigError
from fedsynth.methods.settings import MethodSettings
from fedsynth.privacy.terms import Budget
from fedsynth.schema import ImageSchema, Schema

Count = Annotated[int | None, Field(ge=1, description="a whole number of at least 1")]
Share = Annotated[float, Field(gt=0, lt=1, description="a share in (0, 1)")]
Selection = Annotated[
    Literal["exponential", "sums"] | None, Field(description="exponential or sums")
]


class GraphicalSettings(MethodSettings):
    """How a table's graphical model is asked for and fitted.

    Attributes:
        bins: bins wanted for a numeric column.
        rare: values of a category whose noisy count is below so many standard deviations of its
            noise are counted as one value, and told apart again by their noisy counts when rows
            are drawn. 0 keeps all apart.
        histogram_share: what the first histogram (bins, frequencies) may use of the budget, as a
            share of the squared signal-to-noise ratio that a single Gaussian release could have.
        max_cells: entries that the model's tables may have together; bounds time and memory.
        iterations: steps of the last fit, at the most.
    """

    method: ClassVar[str]

    bins: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 24
    rare: Annotated[float, Field(ge=0, description="a number of at least 0")] = 3.0
    histogram_share: Share = 0.1
    max_cells: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 60_000
    iterations: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 300

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> Self:
        """All defaults filled in.

        Raises:
            ConfigError: settings that contradict the schema or the trust.
        """
        if not isinstance(schema, Schema):
            raise ConfigError(f"{self.method} is for tables: use fedvae for images")
        return self


def selection_for(given: Selection, budget: Budget) -> Literal["exponential", "sums"]:
    """The selection in force: exponential needs somebody who may see exact scores.

    Raises:
        ConfigError: it is asked for, and nobody is trusted.
    """
    central = budget.trust == "central"
    if given == "exponential" and not central:
        raise ConfigError(
            "selection exponential needs a trusted server (trust central), since it chooses among "
            "exact scores: use selection sums"
        )
    return given or ("exponential" if central else "sums")
