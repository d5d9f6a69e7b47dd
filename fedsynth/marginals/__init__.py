"""Graphical models of a table from noisy marginals: trees, inference, fitting, sampling.

Knows nothing of privacy or federation: it is given numbers and gives numbers back. The method is
that of Private-PGM (McKenna, Sheldon, Miklau 2019, "Graphical-model based estimation and inference
for differential privacy"), on plain NumPy arrays.
"""

from fedsynth.marginals.domain import Clique, Domain, count
from fedsynth.marginals.emptiness import find_empty, tell_empty
from fedsynth.marginals.evidence import Evidence
from fedsynth.marginals.exchanging import exchange
from fedsynth.marginals.fitting import Measurement, estimate_marginal, estimate_total, fit
from fedsynth.marginals.gaining import gain
from fedsynth.marginals.growth import grown_cells
from fedsynth.marginals.junction_tree import JunctionTree, model_cells
from fedsynth.marginals.model import Model

__all__ = [
    "Clique",
    "Domain",
    "Evidence",
    "JunctionTree",
    "Measurement",
    "Model",
    "count",
    "estimate_marginal",
    "estimate_total",
    "exchange",
    "find_empty",
    "fit",
    "gain",
    "grown_cells",
    "model_cells",
    "tell_empty",
]
