"""FedVAE: variational autoencoders trained across clients that share decoders alone.

Paper 001, chapter 4 (Algorithms 4 to 7) at the client level; at the record level one global step a
round from clipped gradients of Poisson-sampled records. The server half: everything here sees
released values only, so all of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ReleaseError
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.methods.sampling.drawing import demanded
from fedsynth.methods.sampling.labels import wanted_labels
from fedsynth.methods.synthesizer import Trained, settled
from fedsynth.methods.vae.records import Model
from fedsynth.methods.vae.redrawing import redrawn
from fedsynth.methods.vae.server import Learned, Training, training_task
from fedsynth.methods.vae.settings import FedVAESettings
from fedsynth.models import vae
from fedsynth.privacy.budget import Budget
from fedsynth.queries.fit import Options
from fedsynth.queries.rounds import begin_rounds
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import target_index

Floats = NDArray[np.float32]


class FedVAE(Trained[Learned]):
    """Federated VAE for tables and images.

    Args:
        schema: what the parties agreed on.
        settings: see :class:`FedVAESettings`; or its fields as keywords.

    Example:
        >>> synth = FedVAE(schema, rounds=100)                      # doctest: +SKIP
        >>> synth.fit(sites, Budget(epsilon=1.0)).sample(1000)      # doctest: +SKIP
    """

    name: ClassVar[str] = "fedvae"
    settings_type = FedVAESettings

    def __init__(
        self,
        schema: Schema | ImageSchema,
        settings: FedVAESettings | None = None,
        **overrides: Any,
    ) -> None:
        self.schema = schema
        self.settings = settled(FedVAESettings, settings, overrides)

    def fit(self, owners: Owners, budget: Budget, **options: Any) -> FedVAE:
        """Train on every owner's rows, within the budget.

        Args:
            owners: one table or image set an owner: a mapping by name, a list, or a single one.
            budget: what all releases of this job may cost together.
            options: see :class:`fedsynth.queries.fit.Options`.

        Raises:
            DataError, ConfigError: the data, schema and settings do not go together.
            PrivacyError: the budget cannot carry the job.
            FederationError: too few clients answered a round.
        """
        settings = self.settings.resolved(budget, self.schema)
        run = Options(**options)
        rounds = begin_rounds(owners, self.schema, budget, settings, run, training_task)
        with rounds as (fitting, plan):
            self._begin(fitting)
            self._learned = Training(self.schema, settings, plan, fitting).run()
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
            where: a value of the target that every row is to have; exact, not by rejection.
            proportions: shares of the target's values, instead of their estimated frequencies.
            seed: makes the draw repeatable.

        Raises:
            ConfigError: rows below 1, a column other than the target, a value it does not have, or
                no drawn row that meets the schema's constraints.
        """
        learned = self.learned
        rng = demanded(rows, seed)
        labels = wanted_labels(self.schema, learned.frequencies, rows, where, proportions, rng)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        fixed = bool(where or proportions)
        if isinstance(self.schema, ImageSchema):
            drawn, labels = _draw(learned, labels, rows, fixed, generator, rng)
            return Images(image.decode(drawn, self.schema), labels)
        assert learned.encoding is not None
        place = 0 if labels is None else target_index(self.schema)

        def draw(at: NDArray[np.intp]) -> NDArray[np.int64]:
            own = labels if labels is None else labels[at]
            drawn, own = _draw(learned, own, len(at), fixed, generator, rng)
            codes = drawn.astype(np.int64)
            return codes if own is None else np.insert(codes, place, own, axis=1)

        codes = draw(np.arange(rows))
        if self.schema.constraints:
            kinds = labels if fixed else None
            codes = redrawn(learned.encoding, codes, draw, kinds, rng)
        return learned.encoding.decode(codes, rng)

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything :meth:`sample` needs: arrays, and JSON-able values. Nothing private."""
        learned = self.learned
        arrays: dict[str, NDArray[Any]] = {
            "theta": learned.theta,
            "frequencies": learned.frequencies,
        }
        meta = {
            "model": learned.model.to_dict(),
            "settings": self.settings.model_dump(exclude_unset=True, mode="json"),
            "encoding": None if learned.encoding is None else learned.encoding.to_dict(),
        }
        return arrays, meta

    @classmethod
    def from_state(
        cls,
        schema: Schema | ImageSchema,
        arrays: Mapping[str, NDArray[Any]],
        meta: Mapping[str, Any],
    ) -> FedVAE:
        """The inverse of :meth:`model_state`. Raises ReleaseError where the parts do not fit."""
        try:
            model = Model.from_dict(meta["model"])
            encoding = meta["encoding"]
            learned = Learned(
                model,
                np.asarray(arrays["theta"], np.float32),
                np.asarray(arrays["frequencies"], np.float64),
                None if encoding is None else TableEncoding.from_dict(encoding),
            )
            found = cls(schema, **meta["settings"])
        except (KeyError, TypeError, ValueError):
            raise ReleaseError("the model's files do not fit together") from None
        if learned.theta.shape != (model.parts * model.spec.decoder_dim,):
            raise ReleaseError("the model's weights are not of the length that its spec says")
        found._learned = learned
        return found


def _draw(
    learned: Learned,
    labels: NDArray[np.int64] | None,
    rows: int,
    fixed: bool,
    generator: torch.Generator,
    rng: np.random.Generator,
) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """Records without the target's column, and labels: `labels`, or if not `fixed` better ones."""
    drawn = _decode(learned, labels, rows, generator)
    if learned.model.spec.classifier_weight and not fixed:
        labels = _classified(learned, drawn, rng)
    return drawn, labels


def _classified(
    learned: Learned, drawn: NDArray[Any], rng: np.random.Generator
) -> NDArray[np.int64]:
    """A label for each drawn record, from the auxiliary classifier's probabilities.

    The decoder's classes tell columns and label apart one by one; the classifier weighs all columns
    together, so rows labelled by it teach other classifiers more.
    """
    theta = torch.from_numpy(learned.theta)
    chances = vae.classify(learned.model.spec, theta, torch.from_numpy(drawn)).double().numpy()
    drawn_at = rng.random(len(chances))[:, None] * chances.sum(axis=1, keepdims=True)
    labels: NDArray[np.int64] = (chances.cumsum(axis=1) < drawn_at).sum(axis=1)
    return labels.clip(max=chances.shape[1] - 1)


def _decode(
    learned: Learned, labels: NDArray[np.int64] | None, rows: int, generator: torch.Generator
) -> NDArray[Any]:
    """Codes without the target's column, or pixel intensities, [rows, ...]."""
    model, theta = learned.model, torch.from_numpy(learned.theta)
    if model.parts == 1:
        given = None
        if model.spec.classes and labels is not None:
            given = torch.from_numpy(labels)
        drawn: NDArray[Any] = vae.sample(model.spec, theta, given, generator, rows).numpy()
        return drawn
    assert labels is not None
    width = len(model.spec.sizes) or model.spec.width
    found = np.zeros((rows, width), np.int32 if model.spec.sizes else np.float32)
    for part in np.unique(labels):
        at = labels == part
        weights = model.decoder_part(theta, int(part))
        found[at] = vae.sample(model.spec, weights, None, generator, int(at.sum())).numpy()
    return found
