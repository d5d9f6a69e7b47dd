"""Fusion as published (paper 004, Algorithm 2): one round, no privacy.

Every client fits each feature by one of 25 families, trains a classifier and sends both once. The
server draws points from every client's distributions, labels them by that client's classifier and
trains the global classifier on their union. Features are independent of each other within a client:
what joins them is the label alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.federation.client.progress import watched
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.methods.copula.families import FAMILIES, Effort
from fedsynth.methods.synthesizer import Trained, settled
from fedsynth.papers.fusion.message import Layout
from fedsynth.papers.fusion.regenerated import arrays_of, classify, draw_rows, learned_from
from fedsynth.papers.fusion.regeneration import Learned, fuse, source_of
from fedsynth.papers.fusion.settings import FusionSettings
from fedsynth.papers.fusion.tasks import FUSION
from fedsynth.papers.unprotected import unprotected
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.fit import Fitting, Options, begin
from fedsynth.schema import ImageSchema, Schema

_ALL = 2**31 - 1

Count = Annotated[int, Field(ge=1, description="a whole number of at least 1")]


def effort_of(settings: FusionSettings) -> Effort:
    """How thoroughly features are fitted under resolved settings."""
    return {
        "quick": Effort(screened=50, points=100, finalists=2, evaluations=15),
        "thorough": Effort(),
        "full": Effort(screened=_ALL, points=_ALL, finalists=len(FAMILIES), evaluations=_ALL),
    }[settings.effort or "thorough"]


def published_plan() -> tuple[Planned, ...]:
    """A message a client, without noise."""
    return (Planned(FUSION.name, unprotected(), 1),)


class Fusion(Trained[Learned]):
    """Fusion for tables and images, as published: without privacy.

    Args:
        schema: what the parties agreed on.
        settings: see :class:`FusionSettings`; or its fields as keywords.

    Example:
        >>> synth = Fusion(schema)                                         # doctest: +SKIP
        >>> synth.fit(clients, Budget(epsilon=math.inf)).probabilities(test) # doctest: +SKIP
    """

    name: ClassVar[str] = "fusion"
    settings_type = FusionSettings

    def __init__(
        self,
        schema: Schema | ImageSchema,
        settings: FusionSettings | None = None,
        **overrides: Any,
    ) -> None:
        self.schema = schema
        self.settings = settled(FusionSettings, settings, overrides)

    def fit(self, owners: Owners, budget: Budget, **options: Any) -> Self:
        """Ask every owner once, regenerate, and train the global classifier.

        Args:
            owners: one table or image set an owner: a mapping by name, a list, or a single one.
            budget: of epsilon infinity.
            options: see :class:`fedsynth.queries.fit.Options`.

        Raises:
            PrivacyError: a finite epsilon.
            DataError, ConfigError: the data, schema and settings do not go together.
            FederationError: too few clients answered, or not what was asked.
        """
        settings = self.settings.resolved(budget, self.schema)
        run = Options(**options)

        def plan(resolved: Budget, clients: int) -> tuple[Sequence[Planned], int | None]:
            return published_plan(), None

        with begin(owners, self.schema, budget, plan, run, settings) as fitting:
            self._begin(fitting)
            layout = Layout(self.schema, settings.categories)
            messages, names = messages_of(fitting, layout, settings)
            fitting.progress("global classifier", 0, 1)
            source = source_of(layout, messages, names, settings.labelling)
            learned = fuse(source, messages, settings.points, run.seed)
            failed = ", ".join(f"{name} {count}" for name, count in learned.failures.items())
            fitting.progress(f"fits that failed: {failed or 'none'}", 1, 1)
            self._learned = learned
        return self

    def sample(
        self,
        rows: int,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame | Images:
        """Draw synthetic rows; costs nothing, as often as wanted.

        A row's features come from the distributions of a client drawn at random, its label from
        that client's classifier; conditions on the label are met by drawing until there are enough.

        Args:
            rows: how many, at least 1.
            where: conditions by column; of images, on the target.
            proportions: shares of the target's values, instead of those that come about.
            seed: makes the draw repeatable.

        Raises:
            ConfigError: rows below 1, or conditions that make no sense or that hardly a row meets.
        """
        return draw_rows(self.schema, self.learned, rows, where, proportions, seed)

    def probabilities(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """The global classifier's probability of every class, float64 [n, classes].

        Args:
            data: rows or images under the schema; labels are not looked at and may be absent.

        Raises:
            ConfigError: the schema has no target of categories beside other columns.
            DataError: data that the schema does not fit.
        """
        return classify(self.schema, self.learned.classifier, data)

    @property
    def failures(self) -> dict[str, int]:
        """For how many features, of all clients together, each family failed to fit, by name."""
        return self.learned.failures

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything :meth:`sample` and :meth:`probabilities` need: what the clients sent."""
        settings = self.settings.model_dump(exclude_unset=True, mode="json")
        return arrays_of(self.learned), {"settings": settings}

    @classmethod
    def from_state(
        cls,
        schema: Schema | ImageSchema,
        arrays: Mapping[str, NDArray[Any]],
        meta: Mapping[str, Any],
    ) -> Self:
        """The inverse of :meth:`model_state`. Raises ReleaseError where the parts do not fit."""
        try:
            found = cls(schema, **meta["settings"])
        except (KeyError, TypeError, ValueError, ConfigError):
            raise ReleaseError("the model's files do not fit together") from None
        settings = found.settings
        found._learned = learned_from(schema, arrays, settings.categories, settings.labelling)
        return found


def messages_of(
    fitting: Fitting, layout: Layout, settings: FusionSettings
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Every client's message [clients, dim] and name; those of an interrupted run stand."""
    numbers = sum(not feature.size for feature in layout.features)
    done, total = 0, max(1, numbers * fitting.channel.clients)

    def report(fits: int) -> None:
        nonlocal done
        done = min(done + fits, total)
        fitting.progress("features", done, total)

    fitting.progress("features", 0, total)
    if fitting.restored is not None:
        arrays, meta = fitting.restored
        return np.asarray(arrays["messages"], np.float64), tuple(meta["clients"])
    asked = {
        "categories": settings.categories,
        **asdict(effort_of(settings)),
        "seed": fitting.options.seed,
    }
    terms = fitting.ledger.job.plan[0].terms
    with watched(report):
        collected = fitting.channel.collect(FUSION.name, terms, layout.dim, settings=asked)
    fitting.checkpoint({"messages": collected.values}, {"clients": list(collected.clients)})
    fitting.progress("features", total, total)
    return collected.values, collected.clients
