"""Vectors and structs of kernels, as debuggers show them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np


class Vector(np.ndarray[Any, Any]):
    """A vector or matrix of a kernel, as it was when its name was last bound."""

    @property
    def x(self) -> Any:
        return self[0]

    @property
    def y(self) -> Any:
        return self[1]

    @property
    def z(self) -> Any:
        return self[2]

    @property
    def w(self) -> Any:
        return self[3]

    r, g, b, a = x, y, z, w


class Struct(SimpleNamespace):
    """A struct of a kernel, as it was when its name was last bound."""
