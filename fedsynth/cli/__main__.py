"""`python -m fedsynth.cli`: the command `fedsynth`."""

import sys

from fedsynth.files import module_path

# Python puts the working directory first, and a numpy.py there would be run.
sys.path[:] = module_path()

from fedsynth.cli import main  # noqa: E402

main()
