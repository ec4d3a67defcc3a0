"""From a kernel over a grid to kernels over the part of one rank."""

from __future__ import annotations

from quadpy.dist.localise.model import (
    CELLS,
    PARAMETERS,
    Geometry,
    LocalKernel,
    LocalTask,
    Reduced,
    identity,
    parameter,
)
from quadpy.dist.localise.tasks import localised

__all__ = [
    "CELLS",
    "PARAMETERS",
    "Geometry",
    "LocalKernel",
    "LocalTask",
    "Reduced",
    "identity",
    "localised",
    "parameter",
]
