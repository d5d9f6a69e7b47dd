"""MeanEmbedding: everybody's random features in one noisy sum, then a generator that matches it.

Harder, Adamczewski, Park 2021 (DP-MERF). Beside their random Fourier features the sum holds second
moments of few public coordinates and, for images, features of small patches; the generator begins
at the Gaussians that the moments describe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.methods.embedding.coding import TableCoding
from fedsynth.methods.embedding.features import Embedding
from fedsynth.methods.embedding.generator import Generator, Start
from fedsynth.methods.embedding.messages import Sums, ask, embedding_terms, split
from fedsynth.methods.embedding.settings import MeanEmbeddingSettings
from fedsynth.methods.embedding.targets import targets_of
from fedsynth.methods.embedding.tasks import EMBEDDING
from fedsynth.methods.embedding.training import train
from fedsynth.methods.sampling.drawing import demanded, draw_table
from fedsynth.methods.sampling.labels import wanted_labels
from fedsynth.methods.synthesizer import Trained, settled
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.fit import Fitting, Options, begin
from fedsynth.queries.shares import Stage, share_out
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions

ASK, TRAIN = "mean embedding", "generator"


@dataclass(frozen=True)
class Learned:
    """A fit's generator, and the classes' shares [classes]; empty without classes."""

    generator: Generator
    frequencies: NDArray[np.float64]


class MeanEmbedding(Trained[Learned]):
    """Synthetic images and wide tables from one noisy sum of random features.

    Args:
        schema: what the parties agreed on.
        settings: see :class:`MeanEmbeddingSettings`; or its fields as keywords.

    Example:
        >>> synth = MeanEmbedding(schema, steps=600)                      # doctest: +SKIP
        >>> synth.fit(sites, Budget(epsilon=1.0)).sample(1000)            # doctest: +SKIP
    """

    name: ClassVar[str] = "mean-embedding"
    settings_type = MeanEmbeddingSettings

    def __init__(
        self,
        schema: Schema | ImageSchema,
        settings: MeanEmbeddingSettings | None = None,
        **overrides: Any,
    ) -> None:
        self.schema = schema
        self.settings = settled(MeanEmbeddingSettings, settings, overrides)

    def fit(self, owners: Owners, budget: Budget, **options: Any) -> MeanEmbedding:
        """Ask every owner once, then train the generator.

        Args:
            owners: one table or image set an owner: a mapping by name, a list, or a single one.
            budget: what the message may cost.
            options: see :class:`fedsynth.queries.fit.Options`.

        Raises:
            DataError, ConfigError: the data, schema and settings do not go together.
            PrivacyError: the budget cannot carry the message.
            FederationError: too few clients answered.
        """
        run = Options(**options)
        embedding = Embedding(self.schema, self.settings.resolved(budget, self.schema))

        def plan(resolved: Budget, clients: int) -> tuple[Sequence[Planned], int | None]:
            survivors = run.surviving(clients)
            stage = Stage(
                EMBEDDING.name, 1.0, lambda m: embedding_terms(embedding, resolved, m, survivors)
            )
            return share_out([stage], resolved), None

        # Products this small are slower on several threads, which OpenBLAS keeps spinning.
        with (
            begin(owners, self.schema, budget, plan, run, embedding.settings) as fitting,
            threadpool_limits(limits=1, user_api="blas"),
        ):
            self._begin(fitting)
            targets = targets_of(embedding, _released(embedding, fitting))
            coins = torch.Generator().manual_seed(run.seed)
            generator = Generator(embedding, Start.of(targets), coins)
            train(generator, targets, coins, lambda n, of: fitting.progress(TRAIN, n, of))
            self._learned = Learned(generator, targets.frequencies)
        return self

    def sample(
        self,
        rows: int,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame | Images:
        """Draw synthetic rows; costs nothing, as often as wanted.

        Args:
            rows: how many, at least 1. A public choice: the true number of records is private.
            where: conditions: the target's is met exactly, those on a table's other columns by
                drawing again.
            proportions: shares of the target's values, instead of their estimated frequencies.
            seed: makes the draw repeatable.

        Raises:
            ConfigError: rows below 1, senseless conditions, or such as hardly a drawn row meets.
        """
        learned = self.learned
        if isinstance(self.schema, Schema):
            return draw_table(
                self.schema, learned.frequencies, rows, where, proportions, seed, self._columns
            )
        rng = demanded(rows, seed)
        labels = wanted_labels(self.schema, learned.frequencies, rows, where, proportions, rng)
        drawn = learned.generator.draw(_classes(labels, rows), int(rng.integers(2**62)))
        return Images(image.decode(drawn.clip(0, 1), self.schema), labels)

    def _columns(
        self, labels: NDArray[np.int64] | None, rows: int, rng: np.random.Generator
    ) -> Mapping[str, NDArray[Any]]:
        generator = self.learned.generator
        coding = generator.embedding.coding
        assert isinstance(coding, TableCoding)
        return coding.columns(generator.draw(_classes(labels, rows), int(rng.integers(2**62))))

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything :meth:`sample` needs: arrays, and JSON-able values. Nothing private."""
        learned = self.learned
        generator = learned.generator
        arrays: dict[str, NDArray[Any]] = {
            "weights": generator.vector(),
            "means": generator.means.numpy(),
            "roots": generator.roots.numpy(),
            "frequencies": learned.frequencies,
        }
        return arrays, {"settings": generator.embedding.settings.model_dump(mode="json")}

    @classmethod
    def from_state(
        cls,
        schema: Schema | ImageSchema,
        arrays: Mapping[str, NDArray[Any]],
        meta: Mapping[str, Any],
    ) -> MeanEmbedding:
        """The inverse of :meth:`model_state`. Raises ReleaseError where the parts do not fit."""
        try:
            settings = MeanEmbeddingSettings(**meta["settings"])
            embedding = Embedding(schema, settings)
            means = np.array(arrays["means"], np.float32)
            roots = np.array(arrays["roots"], np.float32)
            frequencies = np.asarray(arrays["frequencies"], np.float64)
            classes, few = conditions(schema), embedding.components
            if (means.shape, roots.shape, frequencies.shape) != (
                (max(1, classes), few),
                (max(1, classes), few, few),
                (classes,),
            ):
                raise ValueError("arrays of other shapes")
            generator = Generator(embedding, Start(means, roots), torch.Generator())
            generator.take(np.asarray(arrays["weights"], np.float32))
        except (ConfigError, KeyError, TypeError, ValueError, AssertionError):
            raise ReleaseError("the model's files do not fit together") from None
        found = cls(schema, settings)
        found._learned = Learned(generator, frequencies)
        return found


def _released(embedding: Embedding, fitting: Fitting) -> Sums:
    """The sums: asked of the clients, or as the interrupted job had them."""
    if fitting.restored is not None:
        arrays, meta = fitting.restored
        return split(embedding, arrays["released"].astype(np.float64), float(meta["sigma"]))
    fitting.progress(ASK, 0, 1)
    sums = ask(fitting.channel, embedding, fitting.ledger.job.plan[0].terms)
    fitting.progress(ASK, 1, 1)
    released = np.concatenate([sums.own.ravel(), sums.shared])
    fitting.checkpoint({"released": released}, {"sigma": sums.sigma})
    return sums


def _classes(labels: NDArray[np.int64] | None, rows: int) -> NDArray[np.int64]:
    return np.zeros(rows, np.int64) if labels is None else labels
