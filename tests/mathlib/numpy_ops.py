"""Runs library functions on NumPy arrays, bit for bit as a compiled kernel would.

A family's module is executed with the traced operations replaced by NumPy's, which are the same IEEE
operations, and once for each width.  This is the reference that compiled code is compared against, and it needs no compiler.
"""

from __future__ import annotations

import ast
import ctypes
import ctypes.util
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np


class _Type:
    """A scalar type in a library function: calling it casts, as the kernel language defines the cast."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)

    def __call__(self, value):
        value = np.asarray(value)
        if self.dtype.kind != "f" and value.dtype.kind == "f":
            raise NotImplementedError("the library does not cast floats to integers")
        return value.astype(self.dtype)[()]


def _select(condition, if_true, if_false):
    typed = if_false if isinstance(if_true, float | int) else if_true  # a literal takes the other one's type
    return np.where(condition, if_true, if_false).astype(np.asarray(typed).dtype)[()]


def _merge(condition, then, orelse):
    return tuple(_select(condition, a, b) for a, b in zip(then, orelse, strict=True))


def _fma(x, y, z):
    """``x * y + z`` rounded once."""
    dtype = next(v.dtype for v in (x, y, z) if isinstance(v, (np.ndarray, np.generic)))
    x, y, z = (np.asarray(v, dtype) for v in (x, y, z))
    with np.errstate(all="ignore"):
        return _fma_f32(x, y, z) if dtype == np.float32 else _fma_f64(x, y, z)


def _fma_f32(x, y, z):
    """In f64, where the product is exact: the sum is rounded to odd, so that the second rounding is right."""
    product, z = x.astype(np.float64) * y, z.astype(np.float64)
    total = product + z
    part = total - product
    error = np.nan_to_num((product - (total - part)) + (z - part), nan=0, posinf=0, neginf=0)
    even = (total.view(np.int64) & 1) == 0
    towards = np.where((error > 0) == (total > 0), np.int64(1), np.int64(-1))
    odd = np.where((error != 0) & even & np.isfinite(total), total.view(np.int64) + towards, total.view(np.int64))
    return odd.view(np.float64).astype(np.float32)[()]


_libm = ctypes.CDLL(ctypes.util.find_library("m"))
_libm.fma.restype, _libm.fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3


def _fma_f64(x, y, z):
    """By exact sums and products (Boldo and Melquiond, 2008) where nothing overflows or underflows, else C's."""
    if not (x.ndim or y.ndim or z.ndim):
        return np.float64(_libm.fma(x, y, z))
    x, y, z = np.broadcast_arrays(x, y, z)
    product, product_low = _exact_product(x, y)
    middle, middle_low = _exact_sum(z, product_low)
    high, high_low = _exact_sum(product, middle)
    low, lost = _exact_sum(middle_low, high_low)
    bits = low.view(np.int64)
    towards = np.where((lost > 0) == (low > 0), np.int64(1), np.int64(-1))
    odd = np.where((lost != 0) & (bits & 1 == 0), bits + towards, bits).view(np.float64)
    result = np.atleast_1d(high + odd)
    usual = [np.abs(v) for v in (x, y, x * y, z)]
    unusual = np.atleast_1d(~np.logical_and.reduce([(v > 1e-140) & (v < 1e140) for v in usual]))
    result[unusual] = [_libm.fma(*each) for each in zip(*(np.atleast_1d(v)[unusual] for v in (x, y, z)), strict=True)]
    return result.reshape(x.shape)[()]


def _exact_sum(x, y):
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _exact_product(x, y):
    product = x * y
    (a, b), (c, d) = (_halves(v) for v in (x, y))
    return product, ((a * c - product) + a * d + b * c) + b * d


def _halves(x):
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


def _least(x, y):
    """The lesser; of a NaN and a number, the number."""
    return np.fmin(x, np.asarray(y, np.asarray(x).dtype))[()]


_OPS = {
    "fma": _fma, "least": _least, "rsqrt_seed": lambda x: 1 / np.sqrt(x),
    "select": _select, "bitcast": lambda value, to: np.asarray(value).view(to.dtype)[()], "sqrt": np.sqrt,
    "floor": np.floor, "rint": np.rint, "trunc": np.trunc, "abs_": np.abs, "copysign": np.copysign,
    "library": lambda **_: lambda fn: fn, "expand": lambda fn: fn, "_merge": _merge,
    "i32": _Type(np.int32), "i64": _Type(np.int64), "u32": _Type(np.uint32), "u64": _Type(np.uint64),
}  # fmt: skip
_PER_WIDTH = {
    np.float32: {
        "Float": _Type(np.float32), "Int": _OPS["i32"], "Word": _OPS["u32"], "per_width": lambda *, f32, f64: f32,
    },
    np.float64: {
        "Float": _Type(np.float64), "Int": _OPS["i64"], "Word": _OPS["u64"], "per_width": lambda *, f32, f64: f64,
    },
}  # fmt: skip


class _Branches(ast.NodeTransformer):
    """``if c: a, b = f()`` becomes ``a, b = _merge(c, f(), (a, b))``, which works element by element; ``if c: a = f()`` too."""

    def visit_If(self, node):
        (assign,) = node.body
        (target,) = assign.targets
        if isinstance(target, ast.Name):
            kept, merge = ast.Name(target.id, ast.Load()), "select"
        else:
            kept, merge = ast.Tuple([ast.Name(name.id, ast.Load()) for name in target.elts], ast.Load()), "_merge"
        merged = ast.Call(ast.Name(merge, ast.Load()), [node.test, assign.value, kept], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Assign(assign.targets, merged), node))


@cache
def load(family, width):
    """The family's functions by name, callable with NumPy arrays of their parameters' types at ``width``."""
    path = Path(find_spec(f"quadpy.mathlib.{family}").origin)
    tree = ast.parse(path.read_text())
    namespace = {**_OPS, **_PER_WIDTH[width]}
    for node in [n for n in tree.body if isinstance(n, ast.ImportFrom)]:
        tree.body.remove(node)
        if node.module == "quadpy.core.dtypes":
            exec(ast.unparse(node), namespace)
        elif node.module not in ("quadpy.mathlib.ops", "quadpy.mathlib.library"):
            home = vars(load(node.module.removeprefix("quadpy.mathlib."), width))
            namespace |= {alias.name: home[alias.name] for alias in node.names}
    exec(compile(_Branches().visit(tree), str(path), "exec"), namespace)
    return SimpleNamespace(**namespace)
