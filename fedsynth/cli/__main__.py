"""`python -m fedsynth.cli`: the command `fedsynth`."""

from fedsynth.cli import main

main()
