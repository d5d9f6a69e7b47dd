"""PATE-GAN: the clients' discriminators are the teachers of the one that a generator faces."""
