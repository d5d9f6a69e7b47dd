"""All methods by name, and which of them suits a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import pandas as pd

from fedsynth.agreed import suggestion
from fedsynth.data.images import Images
from fedsynth.errors import ConfigError
from fedsynth.federation.server.traffic import Traffic
from fedsynth.methods.copula.private import PrivateFusion, PrivateFusionSettings
from fedsynth.methods.embedding import MeanEmbedding, MeanEmbeddingSettings
from fedsynth.methods.gan import FedCTGAN, FedCTGANSettings, FedGAN, FedGANSettings
from fedsynth.methods.gan.pategan import PATEGAN, PATEGANSettings
from fedsynth.methods.inference import FedInfer, FedInferSettings
from fedsynth.methods.marginal.aim import AIM
from fedsynth.methods.marginal.aim_settings import AIMSettings
from fedsynth.methods.marginal.mst import MST, MSTSettings
from fedsynth.methods.marginal.privbayes import PrivBayes, PrivBayesSettings
from fedsynth.methods.pate import PATE, PATESettings
from fedsynth.methods.vae import FedVAE, FedVAESettings
from fedsynth.papers.fusion.hybrid import HybridFusion, HybridFusionSettings
from fedsynth.papers.fusion.published import Fusion, FusionSettings
from fedsynth.papers.fusion_gan import FusionGAN, FusionGANSettings
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.queries.owners import Owners
from fedsynth.release import Fitted, Report
from fedsynth.schema import ImageSchema, Schema

Settings = (
    AIMSettings
    | FedCTGANSettings
    | FedGANSettings
    | FedInferSettings
    | FedVAESettings
    | FusionGANSettings
    | FusionSettings
    | HybridFusionSettings
    | MeanEmbeddingSettings
    | MSTSettings
    | PATEGANSettings
    | PATESettings
    | PrivateFusionSettings
    | PrivBayesSettings
)

# Columns beyond which the sums of all pairs drown in their own noise: AIM was ahead of FedVAE on
# a table of 55 and behind on one of 179.
_WIDE = 100


class Synthesizer(Fitted, Protocol):
    """What every method offers."""

    @property
    def traffic(self) -> Traffic: ...

    @property
    def remarks(self) -> tuple[str, ...]: ...

    def fit(self, owners: Owners, budget: Budget, **options: Any) -> Self: ...

    def sample(
        self,
        rows: int,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame | Images: ...

    def release(
        self, folder: str | Path, rows: Any, report: Report | None = None
    ) -> Certificate: ...


METHODS: dict[str, Any] = {
    method.name: method
    for method in (
        AIM,
        MST,
        PrivBayes,
        FedVAE,
        FedGAN,
        FedCTGAN,
        MeanEmbedding,
        PrivateFusion,
        Fusion,
        HybridFusion,
        FusionGAN,
        FedInfer,
        PATE,
        PATEGAN,
    )
}
SETTINGS: dict[str, Any] = {name: method.settings_type for name, method in METHODS.items()}


@dataclass(frozen=True)
class Choice:
    """A method, and why it was chosen, in a sentence."""

    method: str
    reason: str


def choose(schema: Schema | ImageSchema, budget: Budget) -> Choice:
    """The method for a job, from public facts alone: the schema and the budget.

    The rules are what the studies of `evaluation/` measured.
    """
    if isinstance(schema, ImageSchema):
        return Choice(
            MeanEmbedding.name,
            "the data are images, whose pixels no few marginals describe, and one noisy "
            "sum of public features teaches as much of them as hundreds of training rounds",
        )
    columns = len(schema.modelled)
    if columns > _WIDE:
        pairs = columns * (columns - 1) // 2
        return Choice(
            FedVAE.name,
            f"{columns} columns make {pairs:,} pairs, too many to ask for within the noise",
        )
    return Choice(
        AIM.name,
        f"for a table of {columns} columns, marginals with a graphical model come nearest to the "
        "real counts in few messages and answer any condition exactly (fedvae may teach a "
        "classifier slightly more)",
    )


def synthesizer(
    method: str,
    schema: Schema | ImageSchema,
    settings: Settings | None = None,
    public: pd.DataFrame | Images | None = None,
) -> Synthesizer:
    """A synthesizer by its method's name.

    Args:
        public: rows that anybody may see, for methods that label them.

    Raises:
        ConfigError: there is no such method, or it is not for this kind of data.
    """
    if method not in METHODS:
        raise ConfigError(f"there is no method {method!r}{suggestion(method, METHODS)}")
    more = {} if public is None else {"public": public}
    if more and method != PATE.name:
        raise ConfigError(f"public rows are for the method {PATE.name}, not {method}")
    found: Synthesizer = METHODS[method](schema, settings, **more)
    return found
