"""Lets the mutations use the checks that the rooms' own tests are made of."""

import sys
from pathlib import Path

for room in ("training", "synthesizers"):
    sys.path.append(str(Path(__file__).parents[1] / room))
