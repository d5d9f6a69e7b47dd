"""What a Fusion GAN job releases: one message a client."""

from __future__ import annotations

from fedsynth.papers.fusion_gan.settings import FusionGANSettings
from fedsynth.papers.fusion_gan.tasks.local_training import LOCAL_GAN
from fedsynth.papers.fusion_gan.tasks.private_training import PRIVATE_GAN
from fedsynth.papers.unprotected import unprotected_terms
from fedsynth.privacy.accounting import charged
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import calibrate
from fedsynth.privacy.sampling import Everyone, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Planned


def plan_message(settings: FusionGANSettings, budget: Budget) -> Planned:
    """The one message: as published, or so many noisy sums that cost the budget together.

    Args:
        settings: resolved.

    Raises:
        PrivacyError: the budget cannot carry the plan.
    """
    if not budget.private:
        return Planned(LOCAL_GAN.name, unprotected_terms(), 1)
    rate, steps = settings.rate or 1.0, settings.steps or 1

    def training(multiplier: float) -> Terms:
        return Terms(
            unit="record",
            trust="local",
            clip=settings.clip,
            noise_multiplier=multiplier,
            sampling=Everyone() if rate == 1 else Poisson(rate),
        )

    multiplier = calibrate(
        lambda m: charged({training(m): steps}, unit="record"),
        budget.epsilon,
        budget.resolved_delta,
    )
    return Planned(PRIVATE_GAN.name, training(multiplier), steps)
