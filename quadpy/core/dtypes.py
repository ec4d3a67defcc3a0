"""Scalar types, and how they are promoted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from quadpy.core.messages import shown
from quadpy.errors import ArgumentError

Kind = Literal["bool", "int", "uint", "float"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar type of the kernel language; inside a kernel, calling it casts (``qp.f32(x)``)."""

    name: str
    kind: Kind
    bits: int

    @property
    def nbytes(self) -> int:
        """Bytes of one element in memory; a ``u1`` takes a whole byte."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integral(self) -> bool:
        """True for signed and unsigned integers and for ``u1``."""
        return self.kind != "float"

    @property
    def is_signed(self) -> bool:
        return self.kind in ("int", "float")

    @property
    def min_int(self) -> int:
        """The least value of an integral type."""
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def max_int(self) -> int:
        """The greatest value of an integral type."""
        return (1 << (self.bits - 1)) - 1 if self.kind == "int" else (1 << self.bits) - 1

    def __repr__(self) -> str:
        return self.name

    def __call__(self, value: float) -> int | float:
        """Outside kernels: ``value`` as a Python number (inside a kernel the call is a cast)."""
        try:
            return float(value) if self.is_float else bool(value) if self.kind == "bool" else int(value)
        except OverflowError:  # a huge integer as a float; infinity as an integer
            raise ArgumentError(f"{shown(value)} does not fit {self.name}") from None


u1: Final = Scalar("u1", "bool", 1)
i8: Final = Scalar("i8", "int", 8)
i16: Final = Scalar("i16", "int", 16)
i32: Final = Scalar("i32", "int", 32)
i64: Final = Scalar("i64", "int", 64)
u8: Final = Scalar("u8", "uint", 8)
u16: Final = Scalar("u16", "uint", 16)
u32: Final = Scalar("u32", "uint", 32)
u64: Final = Scalar("u64", "uint", 64)
f16: Final = Scalar("f16", "float", 16)
bf16: Final = Scalar("bf16", "float", 16)
f32: Final = Scalar("f32", "float", 32)
f64: Final = Scalar("f64", "float", 64)

SCALARS: Final = (u1, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64)
BY_NAME: Final = {s.name: s for s in SCALARS}


def bounds_of(scalar: Scalar) -> tuple[int, int]:
    """The least and the greatest value of an integral type."""
    return scalar.min_int, scalar.max_int


def element_text(scalar: Scalar, shape: tuple[int, ...]) -> str:
    """The type of a number, vector or matrix, such as ``f32``, ``f32x3`` and ``f32x3x3``."""
    return scalar.name + "".join(f"x{n}" for n in shape)


def rounded_later(value: float) -> float:
    """``value`` as a float that rounds to f32, f16 and bf16 as ``value`` itself does.

    An integer of more than 53 bits would be rounded twice: to the float, then to the type.  Therefore, it is truncated, and the
    last bit of the result records whether any truncated bit was set.

    Raises:
        OverflowError: an integer that is too large for a float.
    """
    if isinstance(value, int) and (excess := value.bit_length() - 53) > 0:
        kept = abs(value) >> excess
        kept |= (kept << excess) != abs(value)
        value = (kept << excess) * (-1 if value < 0 else 1)
    return float(value)


_ANNOTATED: Final[Any] = type(Annotated[int, 0])


def meant(annotation: Any) -> Any:
    """Of ``typing.Annotated[X, T]``, which type checkers take for X, the type T; any other annotation as it is."""
    return annotation.__metadata__[0] if type(annotation) is _ANNOTATED else annotation


def promote(a: Scalar, b: Scalar) -> Scalar:
    """The common type of ``a`` and ``b``, in any order.

    Two integers give the wider one, or the unsigned one if they have the same width; two floats give the wider one (f16
    and bf16 give f32); an integer and a float give the float; u1 and another type give the other type.
    """
    if a == b:
        return a
    if u1 in (a, b):
        return b if a == u1 else a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    if a.is_float:
        return f32
    return a if a.kind == "uint" else b
