"""One-shot federated inference from noisy sufficient statistics."""

from fedsynth.methods.inference.estimate import Estimate
from fedsynth.methods.inference.moments import Moments
from fedsynth.methods.inference.regression import Regression
from fedsynth.methods.inference.settings import FedInferSettings
from fedsynth.methods.inference.synthesizer import FedInfer

__all__ = ["Estimate", "FedInfer", "FedInferSettings", "Moments", "Regression"]
