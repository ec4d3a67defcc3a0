"""Measures f32 functions over every argument, against NumPy's float64 ones.

Usage: ``python tools/mathlib/full_range.py [--step N] NAME ...``  With a step of N, every N-th float; all
of them take a minute or two per function.  The functions run as their definitions do in the tests, on NumPy.
Prints the largest error in ulp, where it is, and the documented bound.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "tests" / "mathlib")]
from numpy_ops import load  # noqa: E402
from references import UNARY  # noqa: E402
from samples import ulp_error  # noqa: E402

from quadpy.dtypes import f32  # noqa: E402
from quadpy.mathlib.registry import HOMES, lookup  # noqa: E402

CHUNK = 1 << 20  # bit patterns at a time: what the caches hold


def worst_error(name: str, step: int) -> tuple[float, np.float32]:
    """The largest error of ``name`` over all finite arguments, and an argument that has it."""
    function, exact = getattr(load(HOMES[name], np.float32), name), UNARY[name].wide
    worst, where = 0.0, np.float32(0)
    with np.errstate(all="ignore"):
        for start in range(0, 1 << 32, CHUNK * step):
            bits = np.arange(start, min(start + CHUNK * step, 1 << 32), step, dtype=np.uint64)
            x = bits.astype(np.uint32).view(np.float32)
            errors = ulp_error(function(x), exact(x.astype(np.float64)))
            at = int(np.argmax(errors))
            if errors[at] > worst:
                worst, where = float(errors[at]), x[at]
    return worst, where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("names", nargs="*", default=list(UNARY), metavar="NAME")
    arguments = parser.parse_args()
    for name in arguments.names:
        worst, where = worst_error(name, arguments.step)
        bound = lookup(name, (f32,)).error_ulp
        print(f"{name:8} {worst:.4f} ulp at {where!r} ({float(where).hex()}), documented {bound}", flush=True)


if __name__ == "__main__":
    main()
