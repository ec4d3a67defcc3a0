"""The CPU's rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quadpy.codegen.targets.rules import Saturation, TargetRules
from quadpy.core.dtypes import Scalar
from quadpy.core.target import machine_of
from quadpy.ir.nodes import AtomicOp


def _has_atomic(op: AtomicOp, t: Scalar) -> bool:
    """For float addition LLVM writes the loop itself; its float minimum is not IEEE's minimumNumber."""
    if op is AtomicOp.MUL:
        return False
    return t.is_integral or (op in (AtomicOp.ADD, AtomicOp.SUB) and t.bits > 16)


_X86: Final = TargetRules(
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
    has_mxcsr=True,
    has_atomic=_has_atomic,
    saturating=Saturation(clamps=True),
)
_OTHER: Final = replace(_X86, has_mxcsr=False)


def cpu_rules(arch: str) -> TargetRules:
    """The rules of the CPU ``arch``."""
    return _X86 if machine_of(arch) == "x86_64" else _OTHER
