"""One file a method: its task (client half) and its class (server half), side by side."""
