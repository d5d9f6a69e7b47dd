"""The command line: one module a group of commands."""

import sys


def main() -> None:
    """The console script: whoever interrupts it while it starts sees no traceback either."""
    try:
        from fedsynth.cli.app import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
