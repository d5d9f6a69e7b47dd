"""Fusion GAN: every client sends a generator and a classifier once; the server unites their rows.

Paper 004, Algorithm 6; and with privacy of records: :mod:`.private_training`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.federation.client.progress import watch
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.papers.fusion_gan.networks import Networks, records_of
from fedsynth.papers.fusion_gan.plan import plan_message
from fedsynth.papers.fusion_gan.server import Learned, fuse
from fedsynth.papers.fusion_gan.settings import FusionGANSettings
from fedsynth.papers.fusion_gan.tasks.private_training import PRIVATE_GAN
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.session import Session


class FusionGAN(Synthesizer[Learned]):
    """Fusion GAN for tables and images.

    Without privacy (epsilon infinite) as published. With a finite epsilon it protects records, and
    each client's message is private on its own, so the budget must say unit record, trust local.
    """

    name: ClassVar[str] = "fusion-gan"
    settings_type = FusionGANSettings
    learned_type = Learned
    settings: FusionGANSettings
    no_persons = "each owner trains as the paper does, for single records"

    def releases(
        self, settings: FusionGANSettings, budget: Budget, clients: int, survivors: float
    ) -> tuple[Planned, ...]:
        return (plan_message(settings, budget),)

    def learn(self, session: Session) -> Learned:
        networks = Networks.of(session.settings, self.schema)
        messages = _messages(session, networks)
        return fuse(networks, messages, session.settings, session.options.seed, self.schema)

    def probabilities(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """The global classifier's probability of every class, float64 [n, classes].

        Args:
            data: rows or images under the schema; their labels are not looked at.

        Raises:
            ConfigError: the schema has no target of categories beside other columns.
            DataError: data that do not fit the schema.
        """
        known = conform_unlabelled(data, self.schema)
        records = records_of(known, np.arange(len(data)), self.schema)
        return self.learned.probabilities(records.x)


def _messages(session: Session, networks: Networks) -> NDArray[np.float64]:
    """Every client's message, [clients, dim]; those of an interrupted run are not asked again."""
    if session.restored is not None:
        return np.asarray(session.restored[0]["messages"], np.float64)
    channel, (message,) = session.channel, session.plan.releases
    channel.announce("networks", networks.to_dict())
    channel.announce("settings", session.settings.model_dump(mode="json"))
    done = 0

    def report(clients: int) -> None:
        nonlocal done
        done += clients
        session.progress("clients", done, channel.clients)

    with watch(report):
        steps = message.count if message.label == PRIVATE_GAN.name else None
        collected = channel.collect(message.label, message.terms, networks.dim, steps=steps)
    session.checkpoint({"messages": collected.values}, {})
    return collected.values
