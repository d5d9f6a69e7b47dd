"""FedGAN and FedCTGAN: discriminators learn across clients, generators at the server.

Client half: `gradient` (record level) and `local_training` (client level), on what `game`
announces. Server half: `server` and the classes, `synthesizer`.
"""

from fedsynth.methods.gan.settings import FedCTGANSettings, FedGANSettings
from fedsynth.methods.gan.synthesizer import FedCTGAN, FedGAN

__all__ = ["FedCTGAN", "FedCTGANSettings", "FedGAN", "FedGANSettings"]
