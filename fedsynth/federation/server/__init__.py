"""The server's half: the channel, selection, traffic."""
