"""What Taichi and Quadrants have in common and quadpy does otherwise: ``init``, ``func`` and ``kernel``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import quadpy
from quadpy import f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64
from quadpy.capabilities import get_cuda_compute_capability
from quadpy.compat._patterns import taichi_logo
from quadpy.lang.decorators import Func
from quadpy.runtime.device.current import current_config, set_config

_DEFAULTS: Final[dict[object, object]] = {float: f32, int: i32}
"""The meaning of Python's types as ``default_fp`` and ``default_ip``."""

INTERNAL: Final[dict[str, dict[str, Any]]] = {
    "examples.patterns": {"taichi_logo": taichi_logo},
    "lang.impl": {
        "current_cfg": lambda: quadpy.cfg,
        "get_cuda_compute_capability": get_cuda_compute_capability,
    },
    "types.primitive_types": {
        "real_types": {f16, f32, f64, float}, "integer_types": {i8, i16, i32, i64, u1, u8, u16, u32, u64, int, bool},
    },
}  # fmt: skip
"""The parts of their own modules that programs use, by the path of the module."""


def init(arch: str | Sequence[str] | None = None, **options: Any) -> None:
    """Like ``quadpy.init``, with the defaults ``fast_math=True``, and ``synchronous=True`` under ``debug=True``.

    Options that mean nothing here are ignored.
    """
    for name in {"default_fp", "default_ip"} & set(options):
        options[name] = _DEFAULTS.get(options[name], options[name])
    quadpy.init(arch=arch, **{"fast_math": True, "synchronous": bool(options.get("debug")), **options})
    set_config(current_config()._replace(as_taichi=True))


def func(fn: Callable[..., Any]) -> Func:
    """Like ``quadpy.func``; as in Taichi, the annotation of the result has no effect.

    Raises:
        KernelSourceError: as ``quadpy.func``.
    """
    getattr(fn, "__annotations__", {}).pop("return", None)
    return quadpy.func(fn)


def kernel(fn: Callable[..., object] | None = None, /, **options: Any) -> Any:
    """Like ``quadpy.kernel``; as in Taichi, the annotation of the result cuts floats to integers.

    Raises:
        KernelSourceError: as ``quadpy.kernel``.
        ArgumentError: as ``quadpy.kernel``.
    """
    if fn is None:
        quadpy.kernel(**options)  # says what is wrong with them
        return functools.partial(kernel, **options)
    made = quadpy.kernel(fn, **options)
    return type(made)(fn, made.options._replace(as_taichi=True))
