"""The settings of Fusion as published and of hybrid fusion."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.methods.settings import MethodSettings
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema

Count = Annotated[int, Field(ge=1, description="a whole number of at least 1")]
Latency = Annotated[float, Field(ge=0, allow_inf_nan=False, description="seconds, 0 or more")]


class FusionSettings(MethodSettings):
    """How clients fit and what the server makes of it. None means the default for the schema.

    Attributes:
        categories: what a category is: frequencies of its values, or a number like any other (the
            paper's way), the code rounded when it is drawn.
        points: that the server regenerates for the global classifier, in equal shares of the
            clients that have rows.
        labelling: the class of a regenerated point: the likeliest by its client's classifier (the
            paper's way), or one drawn by the classifier's probabilities.
        effort: of fitting a feature: quick, or thorough (`published.effort_of`); by default quick
            for images, whose pixels are many, and thorough for tables; or full: every family is
            fitted to every row by an unbounded search, as published and slowly.
    """

    method: ClassVar[str] = "fusion"

    categories: Annotated[
        Literal["frequencies", "numbers"], Field(description="frequencies or numbers")
    ] = "frequencies"
    points: Count = 20_000
    labelling: Annotated[Literal["likeliest", "drawn"], Field(description="likeliest or drawn")] = (
        "likeliest"
    )
    effort: Annotated[
        Literal["quick", "thorough", "full"] | None, Field(description="quick, thorough or full")
    ] = None

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> FusionSettings:
        """All defaults filled in. Raises PrivacyError for a budget that promises any privacy."""
        if budget.private:
            raise PrivacyError(
                "fusion as published sends fitted parameters and classifiers without any noise, so "
                f"it cannot keep to epsilon {budget.epsilon:g}: use private-fusion, or say that "
                "there is no privacy (privacy: none, epsilon infinite)"
            )
        default = "quick" if isinstance(schema, ImageSchema) else "thorough"
        return self.model_copy(update={"effort": self.effort or default})


class HybridFusionSettings(FusionSettings):
    """How many edges, and how they and the cloud learn; for the rest see :class:`FusionSettings`.

    With a finite epsilon `categories`, `labelling` and `effort` have no meaning: what is sent are
    the statistics of Private Fusion at its defaults.

    Attributes:
        edges: servers between clients and cloud; clients are dealt to them in order, in blocks as
            even as they can be.
        epochs: passes of every edge over its points, each followed by an average.
        edge_cloud_latency, client_edge_latency: seconds a round, for the time model alone; by
            default 0.05 (a distant data centre) and 0.005 (the short hop).
    """

    method: ClassVar[str] = "hybrid-fusion"

    edges: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 2
    epochs: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 20
    edge_cloud_latency: Latency = 0.05
    client_edge_latency: Latency = 0.005

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> HybridFusionSettings:
        """All defaults filled in. Raises ConfigError for images under privacy."""
        if budget.private and isinstance(schema, ImageSchema):
            raise ConfigError(
                "hybrid-fusion keeps privacy by private-fusion's statistics, which are of tables: "
                "use fedvae or fusion-gan for images"
            )
        effort = "quick" if isinstance(schema, ImageSchema) else "thorough"
        return self.model_copy(update={"effort": self.effort or effort})
