"""``ti.types``: the names of ``quadpy.types``, and annotations of parameters that only Taichi has."""

from __future__ import annotations

from typing import Any

import quadpy.types
from quadpy import template
from quadpy.compat._textures import rw_texture, texture
from quadpy.types import *  # noqa: F403  (all of it, under the other name)

__all__ = ["rw_texture", "sparse_matrix_builder", "texture"]
__all__ += quadpy.types.__all__


def sparse_matrix_builder() -> Any:
    """Annotates a kernel's parameter that is a ``ti.linalg.SparseMatrixBuilder``."""
    return template()
