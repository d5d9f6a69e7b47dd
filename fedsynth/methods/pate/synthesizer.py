"""PATE across clients: their teachers vote on rows without labels, and a student learns from it.

Paper 000 with Papernot et al. 2017 and 2018: n teachers on disjoint data, noisy vote counts, a
student trained on the rows so labelled. Only the votes see real rows (and the statistics that rows
are drawn from, where none are public); everything else is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.federation.client.progress import watched
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.methods.copula.model import learn
from fedsynth.methods.copula.settings import PrivateFusionSettings
from fedsynth.methods.copula.statistics import ask_statistics, statistics_terms
from fedsynth.methods.copula.tasks import STATISTICS, asked
from fedsynth.methods.pate.inputs import Inputs
from fedsynth.methods.pate.learned import Learned, images_of
from fedsynth.methods.pate.settings import PATESettings, demand_classes
from fedsynth.methods.pate.sources import Drawn, Public, Source, public_rows, size_of
from fedsynth.methods.pate.student import taught
from fedsynth.methods.pate.tasks import VOTES
from fedsynth.methods.pate.votes import ask_votes
from fedsynth.methods.sampling.drawing import demanded, draw_table
from fedsynth.methods.sampling.labels import wanted_labels
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.methods.synthesizer import Trained, settled
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.fit import Fitting, Options, begin
from fedsynth.queries.shares import Stage, share_out
from fedsynth.queries.votes import Votes, vote_terms
from fedsynth.schema import ImageSchema, Schema

Floats = NDArray[np.float64]
# Rows beside the queries that the student learns the denoised shares of.
_OTHERS = 8_000


class PATE(Trained[Learned]):
    """PATE for tables and images with a target of categories.

    What hides a teacher is the number of the others: one vote stands against noise of about
    ``3.7 sqrt(2 queries)`` votes at epsilon 1, and teachers agree or the noise drowns them. Where
    clients are protected each has one vote, so ten clients teach nothing at epsilon 1; hundreds
    do. Where records are protected a client brings many teachers, each of few records.

    The student is what it is good at: on Adult its rows teach a classifier less than those that the
    same statistics give by themselves (private fusion with the whole budget).

    A sampled row is a public row, or one like those that were drawn from released statistics, with
    a label by the student. Public rows themselves are part of the release.

    Args:
        schema: what the parties agreed on.
        settings: see :class:`PATESettings`; or its fields as keywords.
        public: rows or images that anybody may see, to be labelled by the teachers; labels of
            theirs are not looked at. Tables can do without; images cannot.

    Raises:
        ConfigError: a schema without a target of categories, settings that are none, public rows
            that do not fit the schema.
    """

    name: ClassVar[str] = "pate"
    settings_type = PATESettings

    def __init__(
        self,
        schema: Schema | ImageSchema,
        settings: PATESettings | None = None,
        *,
        public: pd.DataFrame | Images | None = None,
        **overrides: Any,
    ) -> None:
        demand_classes(schema)
        self.schema = schema
        self.settings = settled(PATESettings, settings, overrides)
        self.public = None if public is None else public_rows(public, schema)

    def fit(self, owners: Owners, budget: Budget, **options: Any) -> Self:
        """Have the owners' teachers vote, within the budget, and teach the student.

        Args:
            owners: one table or image set an owner: a mapping by name, a list, or a single one.
            budget: what all releases of this job may cost together.
            options: see :class:`fedsynth.queries.fit.Options`.

        Raises:
            DataError, ConfigError: the data, schema and settings do not go together; images
                without public ones to label.
            PrivacyError: the budget cannot carry the job, or its trust the noise.
            FederationError: too few clients answered.
        """
        settings = self._settled(budget)
        run = Options(**options)

        def plan(resolved: Budget, clients: int) -> tuple[Sequence[Planned], int | None]:
            whole = run.surviving(clients)
            return share_out(
                _stages(resolved, whole, settings, self.public is None), resolved
            ), None

        with begin(owners, self.schema, budget, plan, run, settings) as fitting:
            self._begin(fitting)
            job = _Vote(fitting, self.schema, settings, self.public)
            source = self.public or job.drawn()
            self._learned = job.taught(source)
        return self

    def _settled(self, budget: Budget) -> PATESettings:
        """Settings with all defaults; no more queries than there are public rows."""
        settings = self.settings.resolved(budget, self.schema)
        if self.public is None:
            if isinstance(self.schema, ImageSchema):
                raise ConfigError(
                    "pate: teachers need images to label, and none can be drawn from statistics: "
                    "give images that anybody may see, public=..., or use fedvae or fedgan"
                )
            return settings
        most = size_of(self.public.rows)
        return settings.model_copy(update={"queries": min(settings.queries, most)})

    def sample(
        self,
        rows: int,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame | Images:
        """Draw labelled rows; costs nothing, as often as wanted.

        Args:
            rows: how many, at least 1. A public choice: the true number of records is private.
            where: a condition by column, which every row is to meet; of images, on the target.
            proportions: shares of the target's values, instead of their estimated frequencies.
            seed: makes the draw repeatable.

        Raises:
            ConfigError: rows below 1, or conditions that make no sense or that hardly a row meets.
        """
        learned, schema = self.learned, self.schema
        if isinstance(schema, ImageSchema):
            rng = demanded(rows, seed)
            labels = wanted_labels(schema, learned.frequencies, rows, where, proportions, rng)
            assert labels is not None
            return images_of(learned.draw(labels, rng), labels)

        def draw(
            labels: NDArray[np.int64] | None, count: int, rng: np.random.Generator
        ) -> dict[str, NDArray[Any]]:
            assert labels is not None
            drawn = learned.draw(labels, rng)
            assert not isinstance(drawn, Images)
            return dict(drawn.columns)

        return draw_table(schema, learned.frequencies, rows, where, proportions, seed, draw)

    def probabilities(self, data: pd.DataFrame | Images) -> Floats:
        """The student's probability of every class, float64 [n, classes].

        Args:
            data: rows or images under the schema; their labels are not looked at.

        Raises:
            ConfigError, DataError: data that do not fit the schema.
        """
        known: Any = data
        if isinstance(self.schema, Schema):
            known = conform_unlabelled(data, self.schema)
        elif not isinstance(data, Images):
            raise ConfigError("the schema describes images, and a table was given")
        return self.learned.probabilities(self.learned.inputs.matrix(known))

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything :meth:`sample` and :meth:`probabilities` need. Nothing private."""
        settings = self.settings.model_dump(exclude_unset=True, mode="json")
        return self.learned.to_arrays(), {"settings": settings}

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
        found._learned = Learned.from_arrays(schema, arrays)
        if isinstance(found._learned.source, Public):
            found.public = found._learned.source
        return found


@dataclass
class _Vote:
    """The releases of a fit, each saved before the next is asked for."""

    fitting: Fitting
    schema: Schema | ImageSchema
    settings: PATESettings
    public: Public | None

    def drawn(self) -> Drawn:
        """Rows from released statistics."""
        assert isinstance(self.schema, Schema)
        question, planned = _question(self.schema), self.fitting.ledger.job.plan[0]
        if "statistics" in self._arrays:
            whole = asked(self.schema, question, planned.terms.norm)
            sigma = float(self._meta["statistics_sigma"])
            statistics = whole.answer(np.asarray(self._arrays["statistics"]), sigma)
        else:
            self.fitting.progress("statistics", 0, 1)
            statistics = ask_statistics(self.fitting.channel, planned.terms, self.schema, question)
            values, sigma = statistics.released
            self._save({"statistics": values}, {"statistics_sigma": sigma})
            self.fitting.progress("statistics", 1, 1)
        return Drawn(learn(statistics))

    def taught(self, source: Source) -> Learned:
        """The student of the teachers' votes on rows of the source."""
        settings, seed = self.settings, self.fitting.options.seed
        inputs = Inputs(self.schema)
        rng = np.random.default_rng(seed)
        rows, more = source.queries(settings.queries, _OTHERS, rng)
        queries = inputs.matrix(rows)
        votes = self._votes(queries, inputs.classes)
        student = taught(inputs, queries, votes, inputs.matrix(more), settings.labels, seed)
        return Learned.of(inputs, source, student)

    def _votes(self, queries: Floats, classes: int) -> Votes:
        arrays, meta = self._arrays, self._meta
        if "votes" in arrays:
            counts = np.asarray(arrays["votes"], np.float64)
            return Votes(counts, float(meta["votes_sigma"]), int(meta["teachers"]))
        channel, settings = self.fitting.channel, self.settings
        assert settings.teachers is not None
        total, done = channel.clients * settings.teachers, 0

        def report(teachers: int) -> None:
            nonlocal done
            done += teachers
            self.fitting.progress("teachers", done, total)

        with watched(report):
            terms = self.fitting.ledger.job.plan[-1].terms
            votes = ask_votes(channel, terms, queries, classes, settings.teachers, settings.steps)
        self._save(
            {"votes": votes.counts}, {"votes_sigma": votes.sigma, "teachers": votes.teachers}
        )
        return votes

    @property
    def _arrays(self) -> Mapping[str, NDArray[Any]]:
        return {} if self.fitting.restored is None else self.fitting.restored[0]

    @property
    def _meta(self) -> Mapping[str, Any]:
        found = {} if self.fitting.restored is None else self.fitting.restored[1]
        if found and found.get("public") != self._digest:
            raise ConfigError(
                "pate: the job to resume was started with other public rows: give the same ones"
            )
        return found

    @property
    def _digest(self) -> str | None:
        return None if self.public is None else self.public.digest

    def _save(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        whole = {**self._arrays, **arrays}, {**self._meta, **meta, "public": self._digest}
        self.fitting.checkpoint(*whole)
        self.fitting.restored = whole


def _question(schema: Schema) -> dict[str, Any]:
    """What is asked of the rows that are drawn: as private fusion by default."""
    return PrivateFusionSettings().question(schema)


def _stages(budget: Budget, survivors: int, settings: PATESettings, drawn: bool) -> list[Stage]:
    """The votes, and before them the statistics that rows are drawn from."""
    noise = settings.noise

    def statistics(multiplier: float) -> Any:
        return statistics_terms(budget, multiplier, survivors, noise)

    def votes(multiplier: float) -> Any:
        return vote_terms(budget, multiplier, survivors, settings.queries, noise)

    found = [Stage(VOTES.name, 1 - settings.row_share if drawn else 1.0, votes)]
    if drawn:
        found.insert(0, Stage(STATISTICS.name, settings.row_share, statistics))
    return found
