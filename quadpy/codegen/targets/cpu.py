"""The CPU's rules."""

from __future__ import annotations

import platform
from typing import Final

from quadpy.codegen.targets.rules import Saturation, TargetRules
from quadpy.core.dtypes import Scalar
from quadpy.ir.nodes import AtomicOp


def _has_atomic(op: AtomicOp, t: Scalar) -> bool:
    """For float addition LLVM writes the loop itself; its float minimum is not IEEE's minimumNumber."""
    if op is AtomicOp.MUL:
        return False
    return t.is_integral or (op in (AtomicOp.ADD, AtomicOp.SUB) and t.bits > 16)


CPU: Final = TargetRules(
    family="cpu",
    pointer="ptr",
    private="ptr",
    alloca="",
    narrow_offsets=False,
    constant_offsets=False,
    scope="monotonic",
    load_now="load atomic",
    atomic_tags=(),
    clock="llvm.readcyclecounter",
    most_selects=4,
    has_mxcsr=platform.machine().lower() in ("x86_64", "amd64"),
    has_atomic=_has_atomic,
    saturating=Saturation(clamps=True),
)
