"""Fusion GAN: every client sends a generator and a classifier once; the server unites their rows.

Paper 004, Algorithm 6; and with privacy of records: :mod:`.private_training`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.federation.client.progress import watched
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.methods.sampling.drawing import Columns, demanded, draw_table
from fedsynth.methods.sampling.intervals import Encoding
from fedsynth.methods.sampling.labels import wanted_labels
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.methods.synthesizer import Trained, settled
from fedsynth.papers.fusion_gan.networks import Networks, records_of
from fedsynth.papers.fusion_gan.plan import message_terms, planned, task_of
from fedsynth.papers.fusion_gan.server import Labels, Learned, fuse
from fedsynth.papers.fusion_gan.settings import FusionGANSettings
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.fit import Fitting, Options, begin
from fedsynth.schema import ImageSchema, Schema


class FusionGAN(Trained[Learned]):
    """Fusion GAN for tables and images.

    Without privacy (epsilon infinite) as published. With a finite epsilon it protects records, and
    each client's message is private on its own, so the budget must say unit record, trust local.

    Args:
        schema: what the parties agreed on.
        settings: see :class:`FusionGANSettings`; or its fields as keywords.
    """

    name: ClassVar[str] = "fusion-gan"
    settings_type = FusionGANSettings

    def __init__(
        self,
        schema: Schema | ImageSchema,
        settings: FusionGANSettings | None = None,
        **overrides: Any,
    ) -> None:
        self.schema = schema
        self.settings = settled(FusionGANSettings, settings, overrides)

    def fit(self, owners: Owners, budget: Budget, **options: Any) -> Self:
        """Have every owner train on its rows, within the budget, and unite what they send.

        Args:
            owners: one table or image set an owner: a mapping by name, a list, or a single one.
            budget: what all releases of this job may cost together.
            options: see :class:`fedsynth.queries.fit.Options`.

        Raises:
            DataError, ConfigError: the data, schema and settings do not go together.
            PrivacyError: the budget cannot carry the job, or is not of records and local trust.
            FederationError: too few clients answered.
        """
        settings = self.settings.resolved(budget, self.schema)
        run = Options(**options)

        def plan(resolved: Budget, clients: int) -> tuple[Sequence[Planned], int | None]:
            return (planned(settings, resolved),), None

        networks = Networks.of(settings, self.schema)
        with begin(owners, self.schema, budget, plan, run, settings) as fitting:
            self._begin(fitting)
            messages = _messages(fitting, networks, settings)
            self._learned = fuse(networks, messages, settings, run.seed)
        return self

    def sample(
        self,
        rows: int,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame | Images:
        """Draw synthetic rows; costs nothing, as often as wanted.

        Labels are those that a conditional generator was given, or what the classifier of the
        generator's client says of a row; then conditions on the target are met by drawing until
        there are enough rows.

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
            return _images(learned, schema, rows, where, proportions, seed)
        encoding = Encoding(schema)

        def draw(labels: Labels | None, count: int, rng: np.random.Generator) -> Columns:
            return encoding.decode(learned.draw(labels, count, rng)[0])

        return draw_table(schema, learned.frequencies, rows, where, proportions, seed, draw)

    def probabilities(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """The global classifier's probability of every class, float64 [n, classes].

        Args:
            data: rows or images under the schema; their labels are not looked at.

        Raises:
            ConfigError: the schema has no target of categories beside other columns.
            DataError: data that do not fit the schema.
        """
        learned = self.learned
        if not learned.networks.classes:
            raise ConfigError("there is no classifier: the schema has no target of categories")
        known: Any = data
        if isinstance(self.schema, Schema):
            known = conform_unlabelled(data, self.schema)
        elif not isinstance(data, Images):
            raise ConfigError("the schema describes images, and a table was given")
        records = records_of(known, np.arange(len(data)), self.schema)
        return learned.probabilities(records.x)

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything :meth:`sample` needs: arrays, and JSON-able values. Nothing private."""
        learned = self.learned
        arrays: dict[str, NDArray[Any]] = {
            "generators": learned.generators,
            "classifiers": learned.classifiers,
            "counts": learned.counts,
            "frequencies": learned.frequencies,
            "classifier": learned.classifier,
        }
        meta = {
            "networks": learned.networks.to_dict(),
            "settings": self.settings.model_dump(exclude_unset=True, mode="json"),
        }
        return arrays, meta

    @classmethod
    def from_state(
        cls,
        schema: Schema | ImageSchema,
        arrays: Mapping[str, NDArray[Any]],
        meta: Mapping[str, Any],
    ) -> FusionGAN:
        """The inverse of :meth:`model_state`. Raises ReleaseError where the parts do not fit."""
        try:
            learned = Learned(
                Networks.from_dict(meta["networks"]),
                np.asarray(arrays["generators"], np.float32),
                np.asarray(arrays["classifiers"], np.float32),
                np.asarray(arrays["counts"], np.float64),
                np.asarray(arrays["frequencies"], np.float64),
                np.asarray(arrays["classifier"], np.float32),
            )
            found = cls(schema, **meta["settings"])
        except (KeyError, TypeError, ValueError):
            raise ReleaseError("the model's files do not fit together") from None
        learned.check(schema)
        found._learned = learned
        return found


def _messages(
    fitting: Fitting, networks: Networks, settings: FusionGANSettings
) -> NDArray[np.float64]:
    """Every client's message, [clients, dim]; those of an interrupted run are not asked again."""
    if fitting.restored is not None:
        return np.asarray(fitting.restored[0]["messages"], np.float64)
    channel, terms = fitting.channel, message_terms(fitting.ledger.job)
    channel.announce("networks", networks.to_dict())
    channel.announce("settings", settings.model_dump(mode="json"))
    done = 0

    def report(clients: int) -> None:
        nonlocal done
        done += clients
        fitting.progress("clients", done, channel.clients)

    with watched(report):
        task, steps = task_of(fitting.ledger.job)
        collected = channel.collect(task, terms, networks.dim, steps=steps)
    fitting.checkpoint({"messages": collected.values}, {})
    return collected.values


def _images(
    learned: Learned,
    schema: ImageSchema,
    rows: int,
    where: Mapping[str, Any] | None,
    proportions: Mapping[Any, float] | None,
    seed: int | None,
) -> Images:
    rng = demanded(rows, seed)
    labels = wanted_labels(schema, learned.frequencies, rows, where, proportions, rng)
    cells, labels = learned.draw(labels, rows, rng)
    return Images(image.decode(cells, schema), labels)
