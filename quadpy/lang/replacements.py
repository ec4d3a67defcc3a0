"""Kernel equivalents of functions of Python, NumPy and other libraries."""

from __future__ import annotations

import builtins
from typing import Any, Final

from quadpy.core.dtypes import BY_NAME
from quadpy.intrinsics import BUILTINS

_LOOP: Final = "write a loop over the elements; outside kernels, qp.algorithms has reductions, scans and sorts"
_SMALL: Final = (
    "arrays are made outside of kernels and passed; small vectors are qp.Vector([…]) and qp.types.vector(n, qp.f32)"
)
_RANDOM: Final = "there are qp.random(), uniform in [0, 1), and qp.randn()"
_NAMES: Final = {
    "arccos": "qp.acos", "arcsin": "qp.asin", "arctan": "qp.atan", "arctan2": "qp.atan2", "arccosh": "qp.acosh",
    "arcsinh": "qp.asinh", "arctanh": "qp.atanh", "absolute": "qp.abs", "fabs": "qp.abs", "power": "qp.pow",
    "maximum": "qp.max", "minimum": "qp.min", "where": "qp.select", "clip": "qp.math.clamp", "gamma": "qp.tgamma",
    "dot": "a.dot(b) of vectors, and a @ b of matrices", "cross": "a.cross(b) of vectors", "norm": "v.norm() of vectors",
    "inv": "m.inverse() of matrices", "det": "m.determinant() of matrices", "transpose": "m.transpose() of matrices",
    "matmul": "a @ b of matrices", "gammaln": "qp.lgamma", "isnan": "qp.math.isnan", "isinf": "qp.math.isinf",
    "bool_": "qp.u1", "float16": "qp.f16", "float32": "qp.f32", "float64": "qp.f64", "int8": "qp.i8", "int16": "qp.i16",
    "int32": "qp.i32", "int64": "qp.i64", "uint8": "qp.u8", "uint16": "qp.u16", "uint32": "qp.u32", "uint64": "qp.u64",
    "randint": "qp.random(qp.i32), over the whole range, and %", "normal": "qp.randn()", "gauss": "qp.randn()",
    "normalvariate": "qp.randn()", "standard_normal": "qp.randn()",
}  # fmt: skip
_REDUCTIONS: Final = frozenset(
    ["sum", "prod", "mean", "std", "var", "cumsum", "sort", "argsort", "argmax", "argmin", "histogram"]
)
_MAKERS: Final = frozenset(
    ["array", "asarray", "zeros", "ones", "empty", "full", "arange", "linspace", "zeros_like", "ones_like"]
)
_CHANGES: Final = frozenset(name for kind in (list, dict, set) for name in vars(kind)) - frozenset(
    ["get", "keys", "values", "items", "copy", "index", "count", "union", "intersection", "difference", "isdisjoint",
     "symmetric_difference", "issubset", "issuperset", "fromkeys"]
)  # fmt: skip
"""Methods that change a list, dict or set."""


def instead_of(fn: Any) -> str:
    """A hint for a call of ``fn``, which kernels do not have; empty where nothing is known."""
    name, module = getattr(fn, "__name__", ""), _module_of(fn)
    library = module.partition(".")[0]
    if name in _NAMES and library in ("numpy", "math", "random", "scipy", "cmath", ""):
        return f"there is {_NAMES[name]}"
    if library == "random" or module.startswith("numpy.random"):
        return _RANDOM
    if name in _CHANGES and isinstance(getattr(fn, "__self__", None), (list, dict, set)):
        return "lists, dicts and sets in kernels are fixed when it compiles: write the items down, or use an array; lists have append"
    if name in BUILTINS and (library in ("numpy", "math", "scipy", "cmath") or name not in vars(builtins)):
        return f"there is qp.{name}"
    if library == "numpy" and name in BY_NAME:
        return f"there is qp.{name}"
    if library == "numpy" and name in _REDUCTIONS:
        return _LOOP
    if library == "numpy" and name in _MAKERS:
        return _SMALL
    if library == "time":
        return "read the clock outside, around the call and qp.sync()"
    return ""


def _module_of(fn: Any) -> str:
    owner = getattr(fn, "__self__", None)  # of random.uniform, and of a NumPy generator, whose class says more
    found = getattr(fn, "__module__", None) or getattr(type(owner), "__module__", None) or ""
    if type(fn).__name__ == "ufunc":
        return "numpy"
    return str(found).lstrip("_")
