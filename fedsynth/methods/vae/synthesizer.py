"""FedVAE: variational autoencoders trained across clients.

Paper 001, chapter 4 (Algorithms 4 to 7) at the client level: clients share decoders alone. At the
record level one global step a round from clipped gradients of Poisson-sampled records; there the
encoder is shared too, unless ``encoder`` is private, which costs utility. The server half:
everything here sees released values only, so all of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fedsynth.encoding.nominal import document_bytes, nominal_encoding
from fedsynth.federation.server.traffic import plain_bytes
from fedsynth.marginals import Domain
from fedsynth.methods.sampling.labels import draw_labels
from fedsynth.methods.training.rounds import RoundsSynthesizer
from fedsynth.methods.vae.learned import Learned
from fedsynth.methods.vae.server import (
    Training,
    decoded_pairs,
    model_of,
    tell_left_out,
    training_task,
)
from fedsynth.methods.vae.settings import FedVAESettings
from fedsynth.privacy.budget import Budget
from fedsynth.queries.expected import Expected
from fedsynth.queries.plan import Plan
from fedsynth.queries.session import Session
from fedsynth.queries.tables import PAIRS, table_arrays
from fedsynth.queries.tasks.counting import LABEL_TABLES, pair_starts
from fedsynth.schema import Schema
from fedsynth.schema.target import target_index


class FedVAE(RoundsSynthesizer[Learned]):
    """Federated VAE for tables and images.

    Example:
        >>> synth = FedVAE(schema, rounds=100)                      # doctest: +SKIP
        >>> synth.fit(tables, Budget(epsilon=1.0)).sample(1000)      # doctest: +SKIP
    """

    name: ClassVar[str] = "fedvae"
    settings_type = FedVAESettings
    no_persons = ""
    learned_type = Learned
    settings: FedVAESettings

    def check_model_draw(
        self, where: Mapping[str, Any] | None, proportions: Mapping[Any, float] | None
    ) -> None:
        """Raises ConfigError for conditions on anything but the target, too."""
        shares = np.full(self.classes, 1 / max(1, self.classes))
        draw_labels(self.schema, shares, 1, where, proportions, np.random.default_rng(0))

    def task(self, budget: Budget) -> str:
        return training_task(budget).name

    def pair_share(self, settings: FedVAESettings) -> float:
        return settings.pair_share or 0.0

    def expect(self, settings: FedVAESettings, plan: Plan, records: int | None = None) -> Expected:
        """Networks of a table are as large as their columns have codes: as many as bins wanted."""
        first = super().expect(settings, plan, records)
        sizes, arrays, announced = dict(first.sizes), dict(first.arrays), 0.0
        encoding, notes = None, first.notes
        tables = LABEL_TABLES.name in plan.labels
        if isinstance(self.schema, Schema):
            encoding = nominal_encoding(self.schema, settings.bins)
            if tables:
                target = target_index(self.schema)
                sizes[LABEL_TABLES.name] = float(pair_starts(encoding.sizes, target)[1])
                arrays[LABEL_TABLES.name] = 0.0
            if PAIRS in plan.labels:
                domain = Domain(encoding.sizes)
                pairs, _ = decoded_pairs(self.schema, domain)
                told = tell_left_out(self.schema, domain)
                notes += tuple(
                    f"Unless values are so rare that they share a code, {t}" for t in told
                )
                sizes[PAIRS] = float(sum(map(domain.cells, pairs)))
                asked = table_arrays(pairs, np.ones(len(pairs)))
                arrays[PAIRS] = float(sum(one.nbytes for one in asked.values()))
            announced += document_bytes(encoding)
        model = model_of(self.schema, settings, encoding, label_bias=tables)
        encoder = model.spec.encoder_dim if settings.encoder == "shared" else 0
        sizes[plan.labels[-1]] = float(model.parts * (model.spec.decoder_dim + encoder))
        # Both networks' weights, of four bytes each.
        arrays[plan.labels[-1]] = (
            4.0 * model.parts * (model.spec.decoder_dim + model.spec.encoder_dim)
        )
        announced += plain_bytes(model.to_dict())
        return Expected(sizes, arrays, announced, notes=notes)

    def train(self, session: Session) -> Learned:
        return Training(self.schema, session).run()
