"""FedVAE: variational autoencoders across clients that share decoders, of records encoders too.

Client half: `gradient` (record level) and `local_training` (client level), on what `records` gives
them. Server half: `server` and the class, `synthesizer`.
"""
