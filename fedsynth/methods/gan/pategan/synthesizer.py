"""PATE-GAN across clients (Jordon et al. 2019, "PATE-GAN: generating synthetic data with
differential privacy guarantees"), for tables and images."""

from __future__ import annotations

from typing import ClassVar

from fedsynth.methods.gan.pategan.settings import PATEGANSettings
from fedsynth.methods.gan.pategan.tasks import TEACHER_VOTES
from fedsynth.methods.gan.pategan.training import train_student
from fedsynth.methods.gan.sampling import Learned
from fedsynth.methods.gan.settings import FedGANSettings
from fedsynth.methods.gan.synthesizer import FedGAN
from fedsynth.privacy.budget import Budget
from fedsynth.queries.session import Session


class PATEGAN(FedGAN):
    """PATE-GAN for tables and images.

    Every group of records has a discriminator of its own, which stays at the client; the generator
    faces a student of their noisy votes. Bounds and categories come from the schema and a noisy
    histogram, never from rows, and so do the tables that the generator starts from.

    Most of what it learns comes from those tables: on Adult in 10 silos, at epsilon 1 and 3, the
    votes brought pairs of columns nearer by less than 0.011 and a classifier no further
    (evaluation/studies/pate.py).

    A teacher is protected by the number of the others, as in PATE: with few clients it takes
    records as units and many teachers a client.

    A job can be resumed. Teachers live in their client's memory together with the assignment of
    records to them; a resumed job draws both anew and lets the teachers catch up (``warmup``).
    """

    name: ClassVar[str] = "pate-gan"
    settings_type: ClassVar[type[FedGANSettings]] = PATEGANSettings

    def task(self, budget: Budget) -> str:
        return TEACHER_VOTES.name

    def train(self, session: Session) -> Learned:
        return train_student(self.schema, session)
