"""Records what each task does with each array."""

from __future__ import annotations

from dataclasses import replace

from quadpy.ir.effects import effects_of
from quadpy.ir.nodes import Kernel

__all__ = ["record_effects"]


def record_effects(kernel: Kernel) -> Kernel:
    """``kernel`` with the effects of its tasks in them."""
    return replace(kernel, tasks=tuple(replace(task, effects=effects_of(task)) for task in kernel.tasks))
