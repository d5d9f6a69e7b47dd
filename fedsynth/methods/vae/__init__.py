"""FedVAE: variational autoencoders trained across clients that share decoders alone.

Client half: `gradient` (record level) and `local_training` (client level), on what `records` gives
them. Server half: `server` and the class, `synthesizer`.
"""
