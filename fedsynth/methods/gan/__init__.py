"""FedGAN and FedCTGAN: discriminators learn across clients, generators at the server.

Client half: `gradient` (record level) and `local_training` (client level), on what `game`
announces. Server half: `server` and the classes, `synthesizer`.
"""
