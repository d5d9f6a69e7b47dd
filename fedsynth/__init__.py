"""fedsynth: private synthetic data from owners who may not pool their rows.

Names are imported when they are first used, so that `import fedsynth` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedsynth.data.datasets import builtin_schema, load_builtin
    from fedsynth.data.images import Images, read_images, write_images
    from fedsynth.data.tables import read_sql, read_table, write_table
    from fedsynth.evaluation.attacks.shadow import shadow_attack
    from fedsynth.evaluation.evaluating import Evaluation, evaluate
    from fedsynth.evaluation.federated import federated_scores
    from fedsynth.federation.simulation.partitions import partition
    from fedsynth.jobs.drifting import Drift, drift
    from fedsynth.jobs.loading import load
    from fedsynth.methods.classifier.federated import FederatedClassifier
    from fedsynth.methods.copula.private import PrivateFusion
    from fedsynth.methods.embedding.synthesizer import MeanEmbedding
    from fedsynth.methods.gan.pategan.synthesizer import PATEGAN
    from fedsynth.methods.gan.synthesizer import FedCTGAN, FedGAN
    from fedsynth.methods.inference.synthesizer import FedInfer
    from fedsynth.methods.marginal.aim import AIM
    from fedsynth.methods.marginal.mst import MST
    from fedsynth.methods.marginal.privbayes import PrivBayes
    from fedsynth.methods.pate.synthesizer import PATE
    from fedsynth.methods.vae.synthesizer import FedVAE
    from fedsynth.papers.fusion.hybrid import HybridFusion
    from fedsynth.papers.fusion.published import Fusion
    from fedsynth.papers.fusion_gan.synthesizer import FusionGAN
    from fedsynth.planning.forecast import Forecast, plan
    from fedsynth.privacy.budget import Budget
    from fedsynth.privacy.trail.certificate import Certificate
    from fedsynth.privacy.verify.verification import verify
    from fedsynth.queries.plan import Plan
    from fedsynth.registry import choose, synthesizer
    from fedsynth.schema import Schema, load_schema
    from fedsynth.schema.columns import (
        Boolean,
        Categorical,
        Continuous,
        Datetime,
        Identifier,
        Integer,
    )
    from fedsynth.schema.drafting import Draft, draft
    from fedsynth.schema.image import ImageSchema
    from fedsynth.tuning.privately import PrivatelySelected, select_privately
    from fedsynth.tuning.selecting import Selected, select
    from fedsynth.tuning.tuned import Tuned
    from fedsynth.tuning.tuning import tune

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
    "Draft",
    "Drift",
    "Evaluation",
    "FedCTGAN",
    "FedGAN",
    "FedInfer",
    "FedVAE",
    "FederatedClassifier",
    "Forecast",
    "Fusion",
    "FusionGAN",
    "HybridFusion",
    "Identifier",
    "ImageSchema",
    "Images",
    "Integer",
    "MeanEmbedding",
    "Plan",
    "PrivBayes",
    "PrivateFusion",
    "PrivatelySelected",
    "Schema",
    "Selected",
    "Tuned",
    "builtin_schema",
    "choose",
    "draft",
    "drift",
    "evaluate",
    "federated_scores",
    "load",
    "load_builtin",
    "load_schema",
    "partition",
    "plan",
    "read_images",
    "read_sql",
    "read_table",
    "select",
    "select_privately",
    "shadow_attack",
    "synthesizer",
    "tune",
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
    "fedsynth.federation.simulation.partitions": ("partition",),
    "fedsynth.methods.classifier.federated": ("FederatedClassifier",),
    "fedsynth.data.images": ("Images", "read_images", "write_images"),
    "fedsynth.privacy.trail.certificate": ("Certificate",),
    "fedsynth.planning.forecast": ("Forecast", "plan"),
    "fedsynth.privacy.budget": ("Budget",),
    "fedsynth.privacy.verify.verification": ("verify",),
    "fedsynth.queries.plan": ("Plan",),
    "fedsynth.jobs.drifting": ("Drift", "drift"),
    "fedsynth.jobs.loading": ("load",),
    "fedsynth.schema.drafting": ("Draft", "draft"),
    "fedsynth.schema": ("ImageSchema", "Schema", "load_schema"),
    "fedsynth.registry": ("choose", "synthesizer"),
    "fedsynth.data.tables": ("read_sql", "read_table", "write_table"),
    "fedsynth.tuning.privately": ("PrivatelySelected", "select_privately"),
    "fedsynth.tuning.selecting": ("Selected", "select"),
    "fedsynth.tuning.tuned": ("Tuned",),
    "fedsynth.tuning.tuning": ("tune",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name) or _home_of_method(name)
    if home is None:
        import difflib

        known = {} if name.startswith("_") else {each.casefold(): each for each in __all__}
        near = difflib.get_close_matches(name.casefold(), known, n=1)
        hint = f"; did you mean {known[near[0]]!r}?" if near else ""
        raise AttributeError(f"module 'fedsynth' has no attribute {name!r}{hint}")
    return getattr(importlib.import_module(home), name)


def _home_of_method(name: str) -> str | None:
    from fedsynth.registry import ENTRIES

    return next((entry.module for entry in ENTRIES.values() if entry.kind == name), None)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
