"""Runs library functions on NumPy arrays, bit for bit as a compiled kernel would.

A family's module is executed with the traced operations replaced by NumPy's, which are the same IEEE
operations, and once for each width.  This is the reference that compiled code is compared against, and it needs no compiler.
"""

from __future__ import annotations

import ast
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


_OPS = {
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
    """``if c: a, b = f()`` becomes ``a, b = _merge(c, f(), (a, b))``, which works element by element."""

    def visit_If(self, node):
        (assign,) = node.body
        kept = ast.Tuple([ast.Name(name.id, ast.Load()) for name in assign.targets[0].elts], ast.Load())
        merged = ast.Call(ast.Name("_merge", ast.Load()), [node.test, assign.value, kept], [])
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
