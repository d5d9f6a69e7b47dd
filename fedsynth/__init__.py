"""fedsynth: private synthetic data from owners who may not pool their rows.

Names are imported when they are first used, so that `import fedsynth` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedsynth.data.datasets import builtin_schema, load_builtin
    from fedsynth.data.images import Images, read_images, write_images
    from fedsynth.data.tables import read_table, write_table
    from fedsynth.evaluation.attacks.shadow import shadow_attack
    from fedsynth.evaluation.evaluating import Evaluation, evaluate
    from fedsynth.evaluation.federated import federated_scores
    from fedsynth.federation.partitions import partition
    from fedsynth.loading import load
    from fedsynth.privacy.certificate import Certificate
    from fedsynth.privacy.terms import Budget
    from fedsynth.privacy.verification import verify
    from fedsynth.schema import Schema, load_schema
    from fedsynth.schema.columns import (
        Boolean,
        Categorical,
        Continuous,
        Datetime,
        Identifier,
        Integer,
    )
    from fedsynth.schema.image import ImageSchema
    from fedsynth.synthesizers.aim import AIM
    from fedsynth.synthesizers.embedding import MeanEmbedding
    from fedsynth.synthesizers.fedgan import FedCTGAN, FedGAN
    from fedsynth.synthesizers.fedinfer import FedInfer
    from fedsynth.synthesizers.fedvae import FedVAE
    from fedsynth.synthesizers.fusion.hybrid import HybridFusion
    from fedsynth.synthesizers.fusion.private import PrivateFusion
    from fedsynth.synthesizers.fusion.published import Fusion
    from fedsynth.synthesizers.fusion_gan import FusionGAN
    from fedsynth.synthesizers.methods import choose, synthesizer
    from fedsynth.synthesizers.mst import MST
    from fedsynth.synthesizers.pate import PATE
    from fedsynth.synthesizers.pategan import PATEGAN
    from fedsynth.synthesizers.privbayes import PrivBayes

__version__ = "0.1.0"

__all__ = [
    "AIM",
    "MST",
    "PATE",
    "PATEGAN",
    "Boolean",
    "Budget",
    "Categorical",
    "Certificate",
    "Continuous",
    "Datetime",
    "Evaluation",
    "FedCTGAN",
    "FedGAN",
    "FedInfer",
    "FedVAE",
    "Fusion",
    "FusionGAN",
    "HybridFusion",
    "Identifier",
    "ImageSchema",
    "Images",
    "Integer",
    "MeanEmbedding",
    "PrivBayes",
    "PrivateFusion",
    "Schema",
    "builtin_schema",
    "choose",
    "evaluate",
    "federated_scores",
    "load",
    "load_builtin",
    "load_schema",
    "partition",
    "read_images",
    "read_table",
    "shadow_attack",
    "synthesizer",
    "verify",
    "write_images",
    "write_table",
]

_HOMES = {
    "fedsynth.schema.columns": (
        "Boolean",
        "Categorical",
        "Continuous",
        "Datetime",
        "Identifier",
        "Integer",
    ),
    "fedsynth.data.datasets": ("builtin_schema", "load_builtin"),
    "fedsynth.evaluation.attacks.shadow": ("shadow_attack",),
    "fedsynth.evaluation.evaluating": ("Evaluation", "evaluate"),
    "fedsynth.evaluation.federated": ("federated_scores",),
    "fedsynth.federation.partitions": ("partition",),
    "fedsynth.data.images": ("Images", "read_images", "write_images"),
    "fedsynth.privacy.certificate": ("Certificate",),
    "fedsynth.privacy.terms": ("Budget",),
    "fedsynth.privacy.verification": ("verify",),
    "fedsynth.loading": ("load",),
    "fedsynth.schema": ("ImageSchema", "Schema", "load_schema"),
    "fedsynth.synthesizers.aim": ("AIM",),
    "fedsynth.synthesizers.embedding": ("MeanEmbedding",),
    "fedsynth.synthesizers.fedgan": ("FedCTGAN", "FedGAN"),
    "fedsynth.synthesizers.fedinfer": ("FedInfer",),
    "fedsynth.synthesizers.fedvae": ("FedVAE",),
    "fedsynth.synthesizers.fusion.hybrid": ("HybridFusion",),
    "fedsynth.synthesizers.fusion.private": ("PrivateFusion",),
    "fedsynth.synthesizers.fusion.published": ("Fusion",),
    "fedsynth.synthesizers.fusion_gan": ("FusionGAN",),
    "fedsynth.synthesizers.methods": ("choose", "synthesizer"),
    "fedsynth.synthesizers.mst": ("MST",),
    "fedsynth.synthesizers.pate": ("PATE",),
    "fedsynth.synthesizers.pategan": ("PATEGAN",),
    "fedsynth.synthesizers.privbayes": ("PrivBayes",),
    "fedsynth.data.tables": ("read_table", "write_table"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'fedsynth' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
