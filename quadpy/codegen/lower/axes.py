"""The axes of a parallel loop as operands."""

from __future__ import annotations

from quadpy.codegen.lower.casts import resize
from quadpy.codegen.lower.expressions import lower_expr
from quadpy.codegen.lower.loops import trip_count
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import llvm_type
from quadpy.core.dtypes import Scalar
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir


@dataclass(frozen=True, slots=True)
class AxisOperands:
    """``count`` is an unsigned number of ``bits`` bits; ``start`` and ``step`` have the variable's type."""

    var: ir.Var
    start: str
    step: str
    count: str


def lower_axes(s: Scope, axes: tuple[ir.Axis, ...], bits: int) -> list[AxisOperands]:
    """Evaluate ``axes``, with their counts in ``bits`` bits."""
    return [_axis(s, axis, bits) for axis in axes]


def _axis(s: Scope, axis: ir.Axis, bits: int) -> AxisOperands:
    t = axis.var.type
    start, stop, step = (lower_expr(s, e) for e in (axis.start, axis.stop, axis.step))
    count = trip_count(s.text, start, stop, step, t)
    return AxisOperands(axis.var, start, step, resize(s.text, count, Scalar("", "uint", t.bits), bits))


def total_count(s: Scope, axes: list[AxisOperands], ty: str) -> str:
    """The number of iterations over all ``axes``."""
    total = axes[0].count
    for axis in axes[1:]:
        total = s.text.op(f"mul {ty} {total}, {axis.count}")
    return total


def wide_total(s: Scope, axes: list[AxisOperands]) -> str:
    """``total_count`` in 64 bits, for 32-bit counts."""
    total = "1"
    for axis in axes:
        total = s.text.op(f"mul i64 {total}, {s.text.op(f'zext i32 {axis.count} to i64')}")
    return total


def coordinates(s: Scope, axes: list[AxisOperands], at: str, bits: int) -> list[str]:
    """The number of iteration ``at`` along each axis; the last axis is the fastest."""
    rest, found = at, []
    for axis in reversed(axes[1:]):
        above = s.text.op(f"udiv i{bits} {rest}, {axis.count}")
        found.append(s.text.op(f"sub i{bits} {rest}, {s.text.op(f'mul i{bits} {above}, {axis.count}')}"))
        rest = above
    return [rest, *reversed(found)]


def bind_axes(s: Scope, axes: list[AxisOperands], at: str, bits: int) -> None:
    """Bind the loop variables to their values in iteration number ``at``."""
    for axis, k in zip(axes, coordinates(s, axes, at, bits), strict=True):
        bind_axis(s, axis, k, bits)


def bind_axis(s: Scope, axis: AxisOperands, k: str, bits: int) -> None:
    """Bind the loop variable to its value in iteration ``k``, a number of ``bits`` bits.

    If ``k`` or addresses have 64 bits, the value is computed in 64 bits, and the variable is its low part.
    """
    t, name = axis.var.type, axis.var.name
    work = bits if s.narrow else 64
    start, step = (_extended(s, x, t, work) for x in (axis.start, axis.step))
    k = resize(s.text, k, Scalar("", "uint", bits), work)
    wraps = "nsw " if work > t.bits else ""
    moved = k if step == "1" else s.text.op(f"mul {wraps}i{work} {k}, {step}")
    value = moved if start == "0" else s.text.op(f"add {wraps}i{work} {start}, {moved}")
    if axis.start.isdigit() and axis.step.isdigit() and t.kind == "int":  # constants, and none below 0
        s.natural.add(name)
    if work == 64:
        s.wide[name] = value
    fits = "nuw nsw " if name in s.natural else "nsw " if t.kind == "int" else "nuw "
    s.values[name] = value if t.bits == work else s.text.op(f"trunc {fits}i{work} {value} to {llvm_type(t)}")


def _extended(s: Scope, x: str, t: Scalar, bits: int) -> str:
    return resize(s.text, x, t, bits) if x.startswith("%") else x
