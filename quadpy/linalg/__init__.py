"""``qp.linalg``: linear algebra on whole arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.linalg.products import matmul

__all__ = ["matmul"]

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
