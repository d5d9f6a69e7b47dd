"""The settings of Private Fusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from fedsynth.errors import ConfigError
from fedsynth.methods.settings import MethodSettings
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema

if TYPE_CHECKING:
    from fedsynth.federation.request import Plain

Mechanism = Literal["gaussian", "laplace", "stable"]
Marginals = Literal["auto", "families", "histogram"]


class PrivateFusionSettings(MethodSettings):
    """What is asked, and what is made of it.

    Attributes:
        mechanism: gaussian noise for a bounded L2 norm; or for a bounded L1 norm laplace (under
            central or local trust, since shares of it do not add up to it), or stable, symmetric
            alpha-stable noise.
        alpha: index of stable noise, in [1, 2); by default the one of the least mean magnitude at
            equal epsilon, about 1.7. None for other mechanisms.
        correlations: copula (from noisy second moments), or none: columns independent within a
            class, the whole budget for the histograms.
        moment_share: share of a record's squared norm (laplace, stable: of its norm) that goes to
            second moments rather than histograms; unused without correlations.
        marginals: of numbers within a class. histogram: the smoothed noisy histogram; families: of
            paper 004's 25 distributions the one nearest to the noisy histogram, wherever it fits
            within the noise; auto: such a family where the noise is large beside the class. On
            small tables families bring columns nearer (wdbc, voice, audit), teach a classifier
            more on one and less on another, and take a third of a second a column and class.
        learned_orders: columns of at most so many categories have a score each, so that the order
            in which the copula takes them is learned; others are taken in the schema's order. On
            the tables measured it brings pairs of columns nearer and teaches a classifier no more;
            messages grow with the square of the scores.
    """

    method: ClassVar[str] = "private-fusion"

    mechanism: Annotated[Mechanism, Field(description="gaussian, laplace or stable")] = "gaussian"
    alpha: Annotated[float | None, Field(ge=1, lt=2, description="a number in [1, 2)")] = None
    correlations: Annotated[Literal["copula", "none"], Field(description="copula or none")] = (
        "copula"
    )
    moment_share: Annotated[float, Field(gt=0, lt=1, description="a share in (0, 1)")] = 0.3
    marginals: Annotated[Marginals, Field(description="auto, families or histogram")] = "histogram"
    learned_orders: Annotated[int, Field(ge=0, description="a whole number of at least 0")] = 0

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> PrivateFusionSettings:
        """All defaults filled in.

        Raises:
            ConfigError: an alpha for another mechanism than stable.
        """
        from fedsynth.privacy.mechanisms.stable_law import best_alpha

        alpha = self.alpha
        if self.mechanism == "stable":
            alpha = best_alpha() if alpha is None else alpha
        elif alpha is not None:
            raise ConfigError(f"alpha is for stable noise, and mechanism is {self.mechanism}")
        return self.model_copy(update={"alpha": alpha})

    def question(self, schema: Schema) -> dict[str, Plain]:
        """The public settings of the request, without groups.

        Args:
            schema: of the table.
        """
        from fedsynth.methods.copula.cells import TableCells

        joined = self.correlations == "copula" and len(TableCells.of(schema).columns) > 1
        return {
            "share": self.moment_share if joined else 0.0,
            "apart": self.learned_orders,
        }
