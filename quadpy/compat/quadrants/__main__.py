"""``python -m quadpy.compat.quadrants program.py``."""

from quadpy.compat import quadrants
from quadpy.compat._modules import run

run(quadrants)
