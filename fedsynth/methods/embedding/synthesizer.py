"""MeanEmbedding: everybody's random features in one noisy sum, then a generator that matches it.

Harder, Adamczewski, Park 2021 (DP-MERF). Beside their random Fourier features the sum holds second
moments of few public coordinates and, for images, features of small patches; the generator begins
at the Gaussians that the moments describe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from fedsynth.codec import GIVEN
from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.errors import ReleaseError
from fedsynth.methods.embedding.coding import ImageCoding, TableCoding
from fedsynth.methods.embedding.features import Embedding
from fedsynth.methods.embedding.generator import Generator, Start
from fedsynth.methods.embedding.messages import Sums, ask, embedding_terms, length, split
from fedsynth.methods.embedding.moving import move, move_strength
from fedsynth.methods.embedding.settings import MeanEmbeddingSettings
from fedsynth.methods.embedding.targets import targets_of
from fedsynth.methods.embedding.tasks import EMBEDDING
from fedsynth.methods.embedding.teacher import Teacher, draw_told
from fedsynth.methods.embedding.training import train
from fedsynth.methods.sampling.drawing import draw_table
from fedsynth.methods.sampling.labels import demand_shares, draw_labels
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.methods.training.threads import small_products
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.queries.expected import Expected
from fedsynth.queries.plan import Plan
from fedsynth.queries.session import Session
from fedsynth.queries.shares import Stage
from fedsynth.schema import Categorical, Schema
from fedsynth.schema.target import conditions
from fedsynth.views import Outlined

ASK, TRAIN = "mean embedding", "generator"


@dataclass(frozen=True, eq=False, repr=False)
class Learned(Outlined):
    """A fit's generator and classes.

    Attributes:
        weights: of the generator, flat.
        means, roots: of each class's Gaussian, [c, k] and [c, k, k].
        frequencies: shares of the classes [classes]; empty without classes.
        embedding: what the schema and the settings say of coordinates and features.
    """

    weights: NDArray[np.float32]
    means: NDArray[np.float32]
    roots: NDArray[np.float32]
    frequencies: NDArray[np.float64]
    embedding: Annotated[Embedding, GIVEN]

    @cached_property
    def generator(self) -> Generator:
        generator = Generator(self.embedding, Start(self.means, self.roots), torch.Generator())
        generator.take(self.weights)
        return generator

    @cached_property
    def teacher(self) -> Teacher:
        priors = self.frequencies if len(self.frequencies) else np.ones(1)
        return Teacher.of(self.means, self.roots, priors)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Classes whose drawn images are hardly their own, in a sentence; mostly nothing."""
        target = self.embedding.schema.target
        coding = self.embedding.coding
        if not isinstance(coding, ImageCoding) or not isinstance(target, Categorical):
            return ()
        said = self.teacher.classes_of(self.means.astype(np.float64))
        lost = [str(target.categories[code]) for code in np.flatnonzero(said != range(len(said)))]
        if not lost:
            return ()
        return (
            f"the released moments do not tell images of {', '.join(lost)} from those of other "
            "classes: what is drawn of them may look like any",
        )

    def check(self) -> None:
        classes, components = conditions(self.embedding.schema), self.embedding.components
        demand_shares(self.frequencies, classes)
        shapes = self.means.shape, self.roots.shape
        if shapes != ((max(1, classes), components), (max(1, classes), components, components)):
            raise ReleaseError("the model's arrays do not fit its settings")
        planned = Generator(self.embedding, Start(self.means, self.roots), None)
        if self.weights.shape != (planned.length,):
            raise ReleaseError("the model's weights do not fit its settings")

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame | Images:
        """Rows that meet conditions on the target exactly, and others by drawing again."""
        schema = self.embedding.schema
        if isinstance(schema, Schema):
            return draw_table(
                schema, self.frequencies, rows, where, proportions, seed, self._columns
            )
        rng = np.random.default_rng(seed)
        labels = draw_labels(schema, self.frequencies, rows, where, proportions, rng)
        coding = self.embedding.coding
        assert isinstance(coding, ImageCoding)
        classes = _classes(labels, rows)
        if coding.upright:
            drawn = coding.intensities(draw_told(self.generator, self.teacher, classes, rng))
            strength = move_strength(self.roots)
            shown = move(drawn.reshape(-1, *coding.shape), strength, rng).reshape(drawn.shape)
        else:
            shown = coding.intensities(self.generator.draw(classes, int(rng.integers(2**62))))
        return Images(image.decode(shown, schema), labels)

    def _columns(
        self, labels: NDArray[np.int64] | None, rows: int, rng: np.random.Generator
    ) -> Mapping[str, NDArray[Any]]:
        coding = self.embedding.coding
        assert isinstance(coding, TableCoding)
        return coding.columns(self.generator.draw(_classes(labels, rows), int(rng.integers(2**62))))


class MeanEmbedding(Synthesizer[Learned]):
    """Synthetic images and wide tables from one noisy sum of random features.

    Example:
        >>> synth = MeanEmbedding(schema, steps=600)                      # doctest: +SKIP
        >>> synth.fit(tables, Budget(epsilon=1.0)).sample(1000)            # doctest: +SKIP
    """

    name: ClassVar[str] = "mean-embedding"
    settings_type = MeanEmbeddingSettings
    no_persons = ""
    learned_type = Learned
    settings: MeanEmbeddingSettings

    def stages(
        self, settings: MeanEmbeddingSettings, budget: Budget, clients: int, surviving: int
    ) -> list[Stage]:
        embedding = Embedding(self.schema, settings)

        def terms(multiplier: float) -> Terms:
            return embedding_terms(embedding, budget, multiplier, surviving)

        return [Stage(EMBEDDING.name, 1.0, terms)]

    def expect(
        self, settings: MeanEmbeddingSettings, plan: Plan, records: int | None = None
    ) -> Expected:
        dim = length(Embedding(self.schema, settings))
        return Expected({EMBEDDING.name: float(dim)}, {EMBEDDING.name: 0.0})

    def learn(self, session: Session) -> Learned:
        embedding = Embedding(self.schema, session.settings)
        with small_products():
            targets = targets_of(embedding, _release(embedding, session))
            coins = torch.Generator().manual_seed(session.options.seed)
            start = Start.of(targets)
            generator = Generator(embedding, start, coins)
            train(generator, targets, coins, lambda n, of: session.progress(TRAIN, n, of))
        weights = generator.vector()
        return Learned(weights, start.means, start.roots, targets.frequencies, embedding)

    def known(self) -> dict[str, Any]:
        return {"embedding": Embedding(self.schema, self.settings)}

    def saved_settings(self) -> dict[str, Any]:
        """All of them resolved, for coordinates and features follow from them."""
        settings: dict[str, Any] = self.learned.embedding.settings.model_dump(mode="json")
        return settings


def _release(embedding: Embedding, session: Session) -> Sums:
    """The sums: asked of the clients, or as the interrupted job had them."""
    if session.restored is not None:
        arrays, meta = session.restored
        return split(embedding, arrays["released"].astype(np.float64), float(meta["sigma"]))
    session.progress(ASK, 0, 1)
    sums = ask(session.channel, embedding, session.plan.terms(EMBEDDING.name))
    session.progress(ASK, 1, 1)
    released = np.concatenate([sums.own.ravel(), sums.shared])
    session.checkpoint({"released": released}, {"sigma": sums.sigma})
    return sums


def _classes(labels: NDArray[np.int64] | None, rows: int) -> NDArray[np.int64]:
    return np.zeros(rows, np.int64) if labels is None else labels
