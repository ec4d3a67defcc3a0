"""What a call of a kernel would touch, for tests."""

from __future__ import annotations

from typing import Any

from quadpy.jit.footprints import LaunchFootprints
from quadpy.jit.kernel import Kernel

__all__ = ["touches_of"]


def touches_of(kernel: Kernel, *args: Any) -> LaunchFootprints:
    """What each launch of ``kernel(*args)`` touches."""
    return kernel.planned(args, {}, lambda plan, values, views: plan.footprints().at(values))
