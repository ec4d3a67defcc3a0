"""The types of literals, and constants of the IR."""

from __future__ import annotations

from quadpy.core.dtypes import Scalar, f32, i32, rounded_later, u1
from quadpy.core.source import Span
from quadpy.errors import KernelValueError
from quadpy.ir.nodes import Const


class Defaults:
    """The types of literals and of untyped results, for one specialisation."""

    __slots__ = ("fp", "ip")

    def __init__(self, ip: Scalar = i32, fp: Scalar = f32) -> None:
        self.ip, self.fp = ip, fp

    def of(self, value: float) -> Scalar:
        """The type of a Python number."""
        if isinstance(value, bool):
            return u1
        return self.ip if isinstance(value, int) else self.fp


def literal(value: float, type: Scalar, span: Span) -> Const:
    """``value`` as a constant of ``type``.

    Raises:
        KernelValueError: an integer that ``type`` cannot hold, or a float that would be cut to an integer.
    """
    if type.is_float:
        return Const(_as_float(value, type, span), type, span=span)
    if type == u1:
        return Const(bool(value), u1, span=span)
    if not isinstance(value, int) and not value.is_integer():
        raise KernelValueError(
            f"the literal {value!r} is not a whole number and would be cut to {type}", span,
            hint=f"write {type}({value!r}) to truncate it",
        )  # fmt: skip
    number = int(value)
    if not type.min_int <= number <= type.max_int:
        wider = next((t for t in ("u32", "i64", "u64") if _holds(t, number)), None)
        hint = f"give it a type that holds it: qp.{wider}({number})" if wider else "no integer type holds it"
        raise KernelValueError(f"{_shown(number)} does not fit {type}", span, hint=hint)
    return Const(number, type, span=span)


def _shown(number: float) -> str:
    """A literal for a message; Python cannot print very long ones."""
    if isinstance(number, int) and number.bit_length() > 256:
        return f"a literal of {number.bit_length():,} bits"
    return f"the literal {number}"


def _holds(name: str, number: int) -> bool:
    bits = int(name[1:])
    low = -(1 << (bits - 1)) if name[0] == "i" else 0
    return low <= number < low + (1 << bits)


def _as_float(value: float, type: Scalar, span: Span) -> float:
    try:
        return float(value) if type.bits == 64 else rounded_later(value)
    except OverflowError:
        raise KernelValueError(f"{_shown(value)} does not fit {type}", span, hint="use a float") from None
