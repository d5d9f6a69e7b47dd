"""Which units take part in a release, and what dp-accounting makes of it."""

from fedsynth.privacy.sampling.coins import Everyone, Poisson
from fedsynth.privacy.sampling.fixed_size import FixedSize

Sampling = Everyone | Poisson | FixedSize
SAMPLINGS: dict[str, type[Sampling]] = {s.kind: s for s in (Everyone, Poisson, FixedSize)}

__all__ = ["SAMPLINGS", "Everyone", "FixedSize", "Poisson", "Sampling"]
