"""`python -m fedsynth.cli`: the command `fedsynth`."""

from fedsynth.cli.app import main

main()
