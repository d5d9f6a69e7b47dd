"""One-shot federated inference from noisy sufficient statistics."""

from fedsynth.synthesizers.fedinfer.estimate import Estimate
from fedsynth.synthesizers.fedinfer.moments import Moments
from fedsynth.synthesizers.fedinfer.regression import Regression
from fedsynth.synthesizers.fedinfer.settings import FedInferSettings
from fedsynth.synthesizers.fedinfer.synthesizer import FedInfer

__all__ = ["Estimate", "FedInfer", "FedInferSettings", "Moments", "Regression"]
