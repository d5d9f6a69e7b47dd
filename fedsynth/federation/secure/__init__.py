"""Sums that nobody can open: secure aggregation after Bonawitz et al. 2017, against active servers.

Pure parts: bytes in and bytes out, no socket and no clock, so any carrier can move them. The
protocol step by step, and what in it is ours: docs/secure-sums.md.

- `rules`: what an owner insists on, and with whom it adds up.
- `shamir`, `masks`: shares of secrets; keys, signatures and masks.
- `frames`: what crosses, byte by byte.
- `party`, `leader`: an owner's half and the server's; `carrying`: the loop between.
"""
