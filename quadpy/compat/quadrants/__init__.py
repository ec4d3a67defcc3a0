"""Quadrants' names for quadpy: ``import quadpy.compat.quadrants as qd`` in place of ``import quadrants as qd``.

Intended differences from ``quadpy`` are those of ``quadpy.compat.taichi``: ``qd.init`` takes Quadrants' options and turns
``fast_math`` on, the annotation of a function's result has no effect, and that of a kernel's cuts floats.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import quadpy
from quadpy import Layout

if TYPE_CHECKING:
    from quadpy import *  # noqa: F403  (all of it, under the other name; what follows stands in place of some)

from quadpy.compat import _kinds, _linalg as linalg, _modules  # type: ignore[no-redef]
from quadpy.compat._decompositions import polar_decompose, svd  # in place of quadpy's
from quadpy.compat._kinds import *  # type: ignore[assignment]  # noqa: F403  (its Field in place of quadpy's)
from quadpy.compat._language import INTERNAL, func, init, kernel  # type: ignore[no-redef, assignment]  # in place of quadpy's
from quadpy.compat._textures import Format
from quadpy.compat._types import sparse_matrix_builder
from quadpy.compat.quadrants._runtime import PyQuadrants, get_runtime

__all__ = [
    "Format", "func", "graph_do_while", "graph_parallel", "graph_parallel_context", "init", "install", "kernel", "linalg",
    "polar_decompose", "pure", "sparse_matrix_builder", "svd",
]  # fmt: skip
__all__ += _kinds.__all__
__all__ += quadpy.__all__

__version__ = (1, 3, 3)  # type: ignore[assignment]  # quadpy's is a text
"""The version of Quadrants that these names come from."""
__version_str__ = ".".join(map(str, __version__))
vulkan = metal = "gpu"
AOS, SOA = Layout.AOS, Layout.SOA
graph_do_while, graph_parallel, graph_parallel_context = (
    quadpy.graph.do_while, quadpy.graph.parallel, quadpy.graph.parallel_context,
)  # fmt: skip


def pure(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the kernel ``fn`` unchanged: every kernel is compiled once and kept on disk."""
    return fn


def _get_logging(name: str) -> Callable[..., None]:
    """A function that logs at the level ``name``."""
    write: Callable[..., None] = getattr(logging.getLogger("quadpy"), {"trace": "debug"}.get(name, name))
    return write


_LEVELS: Final = ("trace", "debug", "info", "warn", "error", "critical")
_modules.take_over(__name__)
_modules.offer(
    __name__,
    INTERNAL
    | {
        "_logging": {"_get_logging": _get_logging} | {name: _get_logging(name) for name in _LEVELS},
        "lang.impl": INTERNAL["lang.impl"] | {"PyQuadrants": PyQuadrants, "get_runtime": get_runtime},
    },
)
trace, debug, info, warn, error, critical = map(_get_logging, _LEVELS)


def install() -> None:
    """Let ``import quadrants``, and imports of the modules below it, give this package, in this process and from now on.

    Raises:
        QuadpyError: Quadrants itself is imported already.
    """
    _modules.install(__name__, "quadrants")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    return _modules.found_in(__name__, name, __all__)
