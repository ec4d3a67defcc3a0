"""Measures the errors of the math library, and prints the rows of the table in docs/explanation/math.md.

Usage: ``python tools/mathlib/full_range.py [--step N] [--samples N] [NAME ...]``  Functions of one f32 run over every N-th float,
against NumPy's float64 ones; all floats take a minute or two per function.  Functions of one f64 are compared with mpmath
on N samples in all binades and where the formulas change, those of two numbers on a thousand times as many pairs.
The functions run as kernels on the CPU, whose bits are those of every target.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "tests" / "mathlib")]
from compiled import applied  # noqa: E402 - here and below, from the folders above
from references import UNARY  # noqa: E402
from samples import around, exact_f64, ulp_error  # noqa: E402
from test_accuracy import pairs, powers  # noqa: E402

import quadpy as qp  # noqa: E402
from quadpy.mathlib.registry import overloads  # noqa: E402

CHUNK = 1 << 20  # bit patterns at a time: what the caches hold
PAIRS = {"atan2": np.arctan2, "hypot": np.hypot, "pow": np.power}


def run(name: str, *arguments: np.ndarray) -> np.ndarray:
    """The library's function of arrays."""
    function = overloads(name)[arguments[0].dtype == np.float64]
    result: np.ndarray = applied(function, *arguments)
    return result


def worst_f32(name: str, step: int) -> tuple[float, np.float32]:
    """The largest error of ``name`` over all finite arguments, and an argument that has it."""
    worst, where = 0.0, np.float32(0)
    for start in range(0, 1 << 32, CHUNK * step):
        bits = np.arange(start, min(start + CHUNK * step, 1 << 32), step, dtype=np.uint64)
        x = bits.astype(np.uint32).view(np.float32)
        errors = ulp_error(run(name, x), UNARY[name].wide(x.astype(np.float64)), UNARY[name].least(x))
        at = int(np.argmax(errors))
        if errors[at] > worst:
            worst, where = float(errors[at]), x[at]
    return worst, where


def worst_f64(name: str, samples: int) -> tuple[float, np.float64]:
    """The largest error of ``name`` over samples, and the sample that has it."""
    reference = UNARY[name]
    x = around(np.float64, reference.low, reference.high, samples)
    x = x[(x != 0) | ~np.signbit(x)]  # mpmath has one zero
    errors = ulp_error(run(name, x), exact_f64(reference.exact, x), reference.least(x))
    at = int(np.argmax(errors))
    return float(errors[at]), x[at]


def worst_pair(name: str, dtype: type, samples: int) -> tuple[float, tuple[np.floating, ...]]:
    """The largest error of a function of two numbers; NumPy's longdouble has 11 bits more than f64."""
    both = pairs(dtype, samples) if name != "pow" else powers(dtype, samples, 88 if dtype is np.float32 else 700)
    errors = ulp_error(run(name, *both), PAIRS[name](*(values.astype(np.longdouble) for values in both)))
    at = int(np.argmax(errors))
    return float(errors[at]), tuple(values[at] for values in both)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("names", nargs="*", default=[*UNARY, *PAIRS], metavar="NAME")
    arguments = parser.parse_args()
    qp.init(arch=qp.cpu)
    with np.errstate(all="ignore"):
        for name in arguments.names:
            if name in PAIRS:
                many = 1000 * arguments.samples
                narrow, wide = worst_pair(name, np.float32, many), worst_pair(name, np.float64, many // 10)
            else:
                narrow, wide = worst_f32(name, arguments.step), worst_f64(name, arguments.samples)
            bound, wide_bound = (function.error_ulp for function in overloads(name))
            print(f"| `{name}` | {narrow[0]:.2f} | {bound} | {wide[0]:.2f} | {wide_bound} |", flush=True)
            print(f"{name}: f32 at {narrow[1]!r}, f64 at {wide[1]!r}", file=sys.stderr)


if __name__ == "__main__":
    main()
