"""FedGAN and FedCTGAN: generative adversarial networks across clients.

Only the discriminator sees real rows, so it alone is private; the generator learns at the server
from it, which is post-processing and free. Client level: DP-FedAvg-GAN (paper 001, Algorithm 3).
Record level: one global step of the discriminator a round, from clipped gradients of
Poisson-sampled records.
"""

from __future__ import annotations

from typing import ClassVar

from fedsynth.methods.gan.sampling import Learned
from fedsynth.methods.gan.server import train, training_task
from fedsynth.methods.gan.settings import FedCTGANSettings, FedGANSettings
from fedsynth.methods.training.rounds import RoundsSynthesizer
from fedsynth.privacy.budget import Budget
from fedsynth.queries.session import Session


class FedGAN(RoundsSynthesizer[Learned]):
    """Federated GAN for tables and images.

    A training that diverges ends early and keeps the last good generator; :attr:`remarks` says so.
    Rows are asked for others than the target's conditions where the generator knows them
    (``asks``), and drawn again until they meet them.

    Example:
        >>> synth = FedGAN(schema, rounds=100)                      # doctest: +SKIP
        >>> synth.fit(tables, Budget(epsilon=1.0)).sample(1000)      # doctest: +SKIP
    """

    name: ClassVar[str] = "fedgan"
    settings_type: ClassVar[type[FedGANSettings]] = FedGANSettings
    no_persons = ""
    learned_type = Learned
    settings: FedGANSettings

    def task(self, budget: Budget) -> str:
        return training_task(budget).name

    def train(self, session: Session) -> Learned:
        return train(self.schema, session)


class FedCTGAN(FedGAN):
    """Federated DP-CTGAN: generator, loss and conditions of CTGAN (Xu et al. 2019) for tables.

    Cells are those of a fixed encoding, from the schema and a noisy histogram, so the networks of
    all clients have the same shape and their sums mean something. Records are sampled first and a
    condition is then read off each; the generator's conditions come from released frequencies.
    Numbers are bins, not modes, and rows are judged one by one: docs/methods.md has what differs.
    """

    name: ClassVar[str] = "fedctgan"
    settings_type: ClassVar[type[FedGANSettings]] = FedCTGANSettings
    images = False
