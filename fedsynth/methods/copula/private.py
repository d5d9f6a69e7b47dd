"""Private Fusion: one noisy message of histograms and second moments, regenerated at the server.

The idea of Fusion Learning (paper 004, Algorithm 2: fit every feature, send once, regenerate) with
a privacy guarantee and with correlations. Everything after the one released sum is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from fedsynth.agreed import Agreed
from fedsynth.data.conforming import conform
from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, FedsynthError, ReleaseError
from fedsynth.federation.request import Plain
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.model import FusionModel, Marginals, learn
from fedsynth.methods.copula.parametric import Fitted
from fedsynth.methods.copula.statistics import STATISTICS, ask_statistics, asked, statistics_terms
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.design import Design
from fedsynth.methods.sampling.drawing import draw_table
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.methods.synthesizer import Trained, settled
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.mechanisms.stable_law import best_alpha
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.fit import Fitting, Options, begin
from fedsynth.queries.owners import Owners
from fedsynth.queries.shares import Stage, share_out
from fedsynth.schema import ImageSchema, Schema

Mechanism = Literal["gaussian", "laplace", "stable"]

# Rows that the classifier learns from: as many as there are records, within these.
_LEAST_ROWS, _MOST_ROWS = 1_000, 20_000


class PrivateFusionSettings(Agreed):
    """What is asked, and what is made of it.

    Attributes:
        mechanism: gaussian noise for a bounded L2 norm; or for a bounded L1 norm laplace, or
            stable, symmetric alpha-stable noise.
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

    fault: ClassVar[type[FedsynthError]] = ConfigError

    mechanism: Annotated[Mechanism, Field(description="gaussian, laplace or stable")] = "gaussian"
    alpha: Annotated[float | None, Field(ge=1, lt=2, description="a number in [1, 2)")] = None
    correlations: Annotated[Literal["copula", "none"], Field(description="copula or none")] = (
        "copula"
    )
    moment_share: Annotated[float, Field(gt=0, lt=1, description="a share in (0, 1)")] = 0.3
    marginals: Annotated[Marginals, Field(description="auto, families or histogram")] = "histogram"
    learned_orders: Annotated[int, Field(ge=0, description="a whole number of at least 0")] = 0

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return "settings of private-fusion"

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> PrivateFusionSettings:
        """All defaults filled in.

        Raises:
            ConfigError: a schema of images, or an alpha for another mechanism than stable.
        """
        if not isinstance(schema, Schema):
            raise ConfigError("private-fusion is for tables: use fedvae or fusion-gan for images")
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
        joined = self.correlations == "copula" and len(TableCells.of(schema).columns) > 1
        return {
            "share": self.moment_share if joined else 0.0,
            "apart": self.learned_orders,
        }


class PrivateFusion(Trained[FusionModel]):
    """One round, one message a client, one entry in the ledger.

    Args:
        schema: what the parties agreed on.
        settings: see :class:`PrivateFusionSettings`; or its fields as keywords.

    Raises:
        ConfigError: a schema of images, or settings that are none.
    """

    name: ClassVar[str] = "private-fusion"
    settings_type = PrivateFusionSettings

    def __init__(
        self,
        schema: Schema | ImageSchema,
        settings: PrivateFusionSettings | None = None,
        **overrides: Any,
    ) -> None:
        if not isinstance(schema, Schema):
            raise ConfigError(f"{self.name} is for tables: use fedvae or fusion-gan for images")
        self.schema: Schema = schema
        self.settings = settled(self.settings_type, settings, overrides)
        self._classifier: Classifier | None = None

    def fit(self, owners: Owners, budget: Budget, **options: Any) -> Self:
        """Ask every owner once, and learn from the noisy sum of the answers.

        Args:
            owners: one table an owner: a mapping by name, a list, or a single one.
            budget: what the release may cost.
            options: see :class:`fedsynth.queries.fit.Options`.

        Raises:
            DataError, ConfigError: the data, schema and settings do not go together.
            PrivacyError: the budget cannot carry the job, or its trust the mechanism.
            FederationError: too few clients answered.
        """
        settings = self.settings.resolved(budget, self.schema)
        run = Options(**options)

        def plan(resolved: Budget, clients: int) -> tuple[Sequence[Planned], int | None]:
            whole = run.surviving(clients)
            stage = Stage(
                STATISTICS.name,
                1.0,
                lambda m: statistics_terms(resolved, m, whole, settings.mechanism, settings.alpha),
            )
            return share_out([stage], resolved), None

        with begin(owners, self.schema, budget, plan, run, settings) as fitting:
            self._begin(fitting)
            self._learned = self._asked(fitting, settings)
            self._classifier = None
        return self

    def _asked(self, fitting: Fitting, settings: PrivateFusionSettings) -> FusionModel:
        """Ask, unless an interrupted run has the answer: it is saved before anything else."""
        (planned,) = fitting.ledger.job.plan
        question = settings.question(self.schema)
        fitting.progress("message", 0, 1)
        if fitting.restored is not None:
            arrays, meta = fitting.restored
            whole = asked(self.schema, question, planned.terms.norm)
            statistics = whole.answer(np.asarray(arrays["values"]), float(meta["sigma"]))
        else:
            statistics = ask_statistics(fitting.channel, planned.terms, self.schema, question)
            values, sigma = statistics.released
            fitting.checkpoint({"values": values}, {"sigma": sigma})
        model = learn(statistics, marginals=settings.marginals)
        fitting.progress("message", 1, 1)
        return model

    def sample(
        self,
        rows: int,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame:
        """Draw synthetic rows; costs nothing, as often as wanted.

        Args:
            rows: how many, at least 1. A public choice: the true number of records is private.
            where: conditions by column; on the target exact, on others by drawing again.
            proportions: shares of the target's values, instead of their estimated frequencies.
            seed: makes the draw repeatable.

        Raises:
            ConfigError: as :func:`fedsynth.methods.sampling.drawing.draw_table`.
        """
        model = self.learned
        return draw_table(
            self.schema, model.frequencies, rows, where, proportions, seed, model.draw
        )

    def probabilities(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """Of every class of the target, [n, classes], by a classifier of regenerated rows.

        It is trained at the first call, as post-processing.

        Args:
            data: rows of the schema's columns; the target's may be absent.

        Raises:
            ConfigError: the schema has no target of categories beside other columns.
            DataError: a table that the schema does not fit.
        """
        model, columns = self.learned, conform_unlabelled(data, self.schema).columns
        if self._classifier is None:
            self._classifier = self._trained(model)
        return self._classifier.probabilities(Design(self.schema).matrix(columns))

    def _trained(self, model: FusionModel) -> Classifier:
        rows = int(np.clip(model.profiles.records.sum(), _LEAST_ROWS, _MOST_ROWS))
        drawn = conform(self.sample(rows, seed=0), self.schema, where="synthetic rows").columns
        labels = drawn[str(self.schema.target)].astype(np.int64)
        x = Design(self.schema).matrix(drawn)
        return Classifier.train(x, labels, self.schema.classes, seed=0)

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything :meth:`sample` and :meth:`probabilities` need. Nothing private."""
        settings = self.settings.model_dump(exclude_unset=True, mode="json")
        families = [
            [label, name, asdict(fitted)] for (label, name), fitted in self.learned.families.items()
        ]
        return self.learned.to_arrays(), {"settings": settings, "families": families}

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
            families = {
                (int(label), str(name)): Fitted(
                    **{**fitted, "parameters": tuple(map(float, fitted["parameters"]))}
                )
                for label, name, fitted in meta["families"]
            }
        except (KeyError, TypeError, ValueError, ConfigError):
            raise ReleaseError("the model's files do not fit together") from None
        model = FusionModel.from_arrays(TableCells.of(found.schema), arrays)
        found._learned = replace(model, families=families)
        return found
