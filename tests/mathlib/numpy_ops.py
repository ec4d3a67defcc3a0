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
_each = np.frompyfunc(_libm.fma, 3, 1)


def _fma_f64(x, y, z):
    """C's, number by number."""
    return np.asarray(_each(x, y, z)).astype(np.float64)[()]


def _least(x, y):
    """The lesser; of a NaN and a number, the number."""
    return np.fmin(x, np.asarray(y, np.asarray(x).dtype))[()]


_OPS = {
    "fma": _fma, "least": _least, "reciprocal_seed": lambda x: 1 / x, "rsqrt_seed": lambda x: 1 / np.sqrt(x),
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
        if node.module == "quadpy.dtypes":
            exec(ast.unparse(node), namespace)
        elif node.module not in ("quadpy.mathlib.ops", "quadpy.mathlib.library"):
            home = vars(load(node.module.removeprefix("quadpy.mathlib."), width))
            namespace |= {alias.name: home[alias.name] for alias in node.names}
    exec(compile(_Branches().visit(tree), str(path), "exec"), namespace)
    return SimpleNamespace(**namespace)
