"""Private Fusion: one noisy message of histograms and second moments, regenerated at the server.

The idea of Fusion Learning (paper 004, Algorithm 2: fit every feature, send once, regenerate) with
a privacy guarantee and with correlations. Everything after the one released sum is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import conform
from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.model import FusionModel, learn
from fedsynth.methods.copula.parametric import Fitted
from fedsynth.methods.copula.settings import PrivateFusionSettings
from fedsynth.methods.copula.statistics import ask_statistics, statistics_terms
from fedsynth.methods.copula.tasks import STATISTICS, asked
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.design import Design
from fedsynth.methods.sampling.drawing import draw_table
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.methods.synthesizer import Trained, settled
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.fit import Fitting, Options, begin
from fedsynth.queries.shares import Stage, share_out
from fedsynth.schema import ImageSchema, Schema

# Rows that the classifier learns from: as many as there are records, within these.
_LEAST_ROWS, _MOST_ROWS = 1_000, 20_000


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
