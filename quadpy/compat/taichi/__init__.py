"""Taichi's names for quadpy: ``import quadpy.compat.taichi as ti`` in place of ``import taichi as ti``.

Intended differences from ``quadpy``: ``ti.init`` takes Taichi's options and turns ``fast_math`` on, ``ti.gpu`` is any
GPU or else the CPU, the annotation of a function's result has no effect, and that of a kernel's cuts floats.
``ti.graph`` and ``ti.types`` have Taichi's names besides those of quadpy.  Everything else is quadpy's own.
"""

from __future__ import annotations

import logging
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import quadpy
from quadpy import Layout

if TYPE_CHECKING:
    from quadpy import *  # noqa: F403  (all of it, under the other name; what follows stands in place of some)
    from quadpy.compat import _graph as graph  # type: ignore[no-redef]

from quadpy.compat import (  # type: ignore[no-redef]  # in place of quadpy's
    _kinds,
    _linalg as linalg,
    _modules,
    _types as types,
    _ui,
)
from quadpy.compat._decompositions import polar_decompose, svd  # in place of quadpy's
from quadpy.compat._gui import GUI, hex_to_rgb, rgb_to_hex
from quadpy.compat._kinds import *  # type: ignore[assignment]  # noqa: F403  (its Field in place of quadpy's)
from quadpy.compat._language import INTERNAL, func, init, kernel  # type: ignore[no-redef, assignment]  # in place of quadpy's
from quadpy.compat._textures import Format, Texture
from quadpy.compat._types import sparse_matrix_builder
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
    "install",
    "kernel",
    "linalg",
    "polar_decompose",
    "rgb_to_hex",
    "sparse_matrix_builder",
    "svd",
    "types",
    "ui",
]
__all__ += _kinds.__all__
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

_modules.take_over(__name__, {"graph": "quadpy.compat._graph"})
_modules.offer(__name__, INTERNAL)


def install() -> None:
    """Let ``import taichi``, and imports of the modules below it, give this package, in this process and from now on.

    Raises:
        QuadpyError: Taichi itself is imported already.
    """
    _modules.install(__name__, "taichi")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    return _modules.found_in(__name__, name, __all__)
