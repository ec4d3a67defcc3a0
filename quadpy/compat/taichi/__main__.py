"""``python -m quadpy.compat.taichi program.py``."""

from quadpy.compat import taichi
from quadpy.compat._modules import run

run(taichi)
