"""Taichi's names for quadpy: ``import quadpy.compat.taichi as ti`` in place of ``import taichi as ti``.

Intended differences from ``quadpy``: ``ti.init`` takes Taichi's options and turns ``fast_math`` on, ``ti.gpu`` is any
GPU or else the CPU, the annotation of a function's result has no effect, and that of a kernel's cuts floats. ``ti.graph`` and ``ti.types`` have
Taichi's names besides those of quadpy.  Everything else is quadpy's own.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

import quadpy
from quadpy import *  # noqa: F403  (all of it, under the other name)
from quadpy import Layout, f32, i32
from quadpy.capabilities import get_cuda_compute_capability, get_max_shared_memory_bytes, is_arch_supported
from quadpy.compat import (  # type: ignore[no-redef]  # two of them in place of quadpy's
    _graph as graph,
    _linalg as linalg,
    _types as types,
    _ui,
)
from quadpy.compat._gui import GUI, hex_to_rgb, rgb_to_hex
from quadpy.compat._textures import Format, Texture
from quadpy.elsewhere import INSTEAD
from quadpy.lang.decorators import Func
from quadpy.messages import no_attribute
from quadpy.tools.meshes import TYPES
from quadpy.view.surfaces import has_display

__all__ = [
    "GUI",
    "Format",
    "Texture",
    "func",
    "graph",
    "hex_to_rgb",
    "init",
    "kernel",
    "linalg",
    "rgb_to_hex",
    "types",
    "ui",
]
__all__ += quadpy.__all__

__version__ = (1, 7, 4)  # type: ignore[assignment]  # quadpy's is a text
"""The version of Taichi that these names come from."""
cc = "cpu"
vulkan = opengl = gles = metal = dx11 = dx12 = "gpu"
AOS, SOA = Layout.AOS, Layout.SOA

TaichiCompilationError = quadpy.CompilationError
TaichiSyntaxError = quadpy.KernelSyntaxError
TaichiNameError = quadpy.KernelNameError
TaichiTypeError = quadpy.KernelTypeError
TaichiIndexError = quadpy.BoundsError
TaichiRuntimeError = quadpy.QuadpyError
TaichiRuntimeTypeError = quadpy.ArgumentError
TaichiAssertionError = quadpy.KernelAssertionError

experimental = SimpleNamespace(real_func=quadpy.real_func)
lang = SimpleNamespace(
    impl=SimpleNamespace(
        current_cfg=lambda: quadpy.cfg,
        get_cuda_compute_capability=get_cuda_compute_capability,
        get_max_shared_memory_bytes=get_max_shared_memory_bytes,
        on_reset=quadpy.on_reset,
    ),
    misc=SimpleNamespace(is_arch_supported=is_arch_supported),
    ops=SimpleNamespace(ifte=quadpy.ifte),
)
"""The parts of Taichi's own modules that programs use."""
_log: Final = logging.getLogger("quadpy")
trace, debug, info, warn, error = _log.debug, _log.debug, _log.info, _log.warning, _log.error


def timeline_save(fn: str) -> None:
    """Like ``quadpy.profiler.timeline_save``."""
    quadpy.profiler.timeline_save(fn)


def timeline_clear() -> None:
    """Like ``quadpy.profiler.timeline_clear``."""
    quadpy.profiler.timeline_clear()


def _imshow(img: object, title: str = "imshow") -> None:
    """Like ``quadpy.tools.imshow``; does nothing without a display."""
    if has_display():
        quadpy.tools.imshow(img, title)


class _PLYWriter(quadpy.tools.PLYWriter):
    """Like ``quadpy.tools.PLYWriter``; as in Taichi, a channel of a type that PLY does not have is left out."""

    def add_vertex_channel(self, key: str, data_type: str, data: object) -> None:
        if self._is_known(key, data_type):
            super().add_vertex_channel(key, data_type, data)

    def add_face_channel(self, key: str, data_type: str, data: object) -> None:
        if self._is_known(key, data_type):
            super().add_face_channel(key, data_type, data)

    def _is_known(self, key: str, data_type: str) -> bool:
        known = data_type in TYPES
        if not known:
            warnings.warn(f"{key} is left out: {data_type!r} is not a PLY type", RuntimeWarning, stacklevel=3)
        return known


_tools = {name: getattr(quadpy.tools, name) for name in quadpy.tools.__all__}
tools = SimpleNamespace(**{**_tools, "imshow": _imshow, "PLYWriter": _PLYWriter})  # type: ignore[assignment]  # in place of quadpy's
ui = SimpleNamespace(**{name: getattr(_ui, name) for name in _ui.__all__}, **_ui.constants(), make_camera=_ui.Camera)

_lib = SimpleNamespace(core=SimpleNamespace(with_vulkan=lambda: False, with_cuda=lambda: False, GGUI_AVAILABLE=False))
"""Taichi's own examples query this before they choose a backend: here, ``ti.vulkan`` and ``ti.cuda`` are any GPU."""

_DEFAULTS: Final[dict[object, object]] = {float: f32, int: i32}
"""The meaning of Python's types as ``default_fp`` and ``default_ip``."""


def init(arch: str | Sequence[str] | None = None, **options: Any) -> None:  # type: ignore[no-redef]  # in place of quadpy's
    """Like ``quadpy.init``, with Taichi's default of ``fast_math=True``; options that mean nothing here are ignored."""
    for name in {"default_fp", "default_ip"} & set(options):
        options[name] = _DEFAULTS.get(options[name], options[name])
    quadpy.init(arch=arch, **{"fast_math": True, **options})


def func(fn: Callable[..., Any]) -> Func:  # type: ignore[no-redef]  # in place of quadpy's
    """Like ``quadpy.func``; as in Taichi, the annotation of the result has no effect.

    Raises:
        KernelSourceError: as ``quadpy.func``.
    """
    getattr(fn, "__annotations__", {}).pop("return", None)
    return quadpy.func(fn)


def kernel(fn: Callable[..., object] | None = None, /, **options: Any) -> Any:  # type: ignore[no-redef]  # in place of quadpy's
    """Like ``quadpy.kernel``; as in Taichi, the annotation of the result cuts floats to integers.

    Raises:
        KernelSourceError: as ``quadpy.kernel``.
        ArgumentError: as ``quadpy.kernel``.
    """
    if fn is None:
        quadpy.kernel(**options)  # says what is wrong with them
        return functools.partial(kernel, **options)
    made = quadpy.kernel(fn, **options)
    return quadpy.Kernel(fn, made.options._replace(cuts_results=True))


def __getattr__(name: str) -> Any:
    raise no_attribute("quadpy's ti", name, __all__, INSTEAD)
