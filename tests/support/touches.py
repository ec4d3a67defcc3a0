"""What a call of a kernel would touch, for tests."""

from __future__ import annotations

from typing import Any

from quadpy.jit.footprints import LaunchFootprints
from quadpy.jit.kernel import Kernel
from quadpy.jit.stencils import Stencils

__all__ = ["stencils_of", "touches_of"]


def touches_of(kernel: Kernel, *args: Any) -> LaunchFootprints:
    """What each launch of ``kernel(*args)`` touches."""
    return kernel.planned(args, {}, lambda plan, values, views: plan.footprints().at(values))


def stencils_of(kernel: Kernel, *args: Any) -> Stencils:
    """How far around its own index each iteration of each launch of ``kernel(*args)`` reaches."""
    return kernel.planned(args, {}, lambda plan, values, views: plan.footprints().stencils(values))
