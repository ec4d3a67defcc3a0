"""Normal forms of expressions: equal forms are equal values.

A term is an integer, or a polynomial over *atoms*: variables, parameters, extents, and pure operations whose result is
not a polynomial.  Signed arithmetic is assumed not to overflow (``debug=True`` reports overflow); unsigned arithmetic
may wrap, so only constants of it are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from quadpy.core.dtypes import Scalar
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.index.polynomials import Poly, atom_of, atom_poly, parts_of, poly

Term: TypeAlias = int | Poly[int]
"""The atoms of a polynomial are numbers of ``Terms.atoms``."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A variable or parameter called ``name``, or the operation ``name`` on ``operands``.

    ``number`` distinguishes atoms of the same name, such as two values from memory.
    """

    name: str
    operands: tuple[Term, ...] = ()
    type: str = ""
    number: int = 0


_OF_INDICES: Final = 32
"""Bits of an integer that holds any index; a cast to fewer is how programs mean to wrap."""

_WRAPPING: Final[dict[ir.BinOp, Callable[[int, int], int]]] = {
    ir.BinOp.ADD: lambda a, b: a + b,
    ir.BinOp.SUB: lambda a, b: a - b,
    ir.BinOp.MUL: lambda a, b: a * b,
    ir.BinOp.FLOORDIV: lambda a, b: a // b if b else 0,
    ir.BinOp.MOD: lambda a, b: a % b if b else 0,
    ir.BinOp.AND: lambda a, b: a & b,
    ir.BinOp.OR: lambda a, b: a | b,
    ir.BinOp.XOR: lambda a, b: a ^ b,
    ir.BinOp.MIN: min,
    ir.BinOp.MAX: max,
}
_COMPARED: Final[dict[ir.CmpOp, Callable[[int], bool]]] = {
    ir.CmpOp.EQ: lambda d: d == 0,
    ir.CmpOp.NE: lambda d: d != 0,
    ir.CmpOp.LT: lambda d: d < 0,
    ir.CmpOp.LE: lambda d: d <= 0,
    ir.CmpOp.GT: lambda d: d > 0,
    ir.CmpOp.GE: lambda d: d >= 0,
}


class Terms:
    """The atoms of one task by number, and arithmetic with terms.

    ``varying`` are the atoms that may differ between iterations.
    """

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.varying: set[int] = set()
        self._numbers: dict[Atom, int] = {}
        self._fresh = 0

    def atom(self, atom: Atom, *, varies: bool = False) -> Term:
        """The term that is ``atom`` alone; an operation varies if an operand does."""
        number = self._numbers.get(atom)
        if number is None:
            number = self._numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
            if varies or any(map(self.varies, atom.operands)):
                self.varying.add(number)
        return atom_poly(number)

    def unknown(self, name: str) -> Term:
        """A term that equals no other one."""
        self._fresh += 1
        return self.atom(Atom(name, number=self._fresh), varies=True)

    def varies(self, term: Term) -> bool:
        return any(number in self.varying for number in self.numbers_in(term))

    def numbers_in(self, term: Term) -> Iterator[int]:
        """The atoms of the monomials of ``term``, not those inside operations."""
        return (number for monomial, _ in parts_of(term) for number in monomial)

    def is_atom(self, term: Term) -> Atom | None:
        """The atom, if ``term`` is a single atom."""
        number = atom_of(term)
        return None if number is None else self.atoms[number]

    def range_of(self, start: Term, stop: Term, step: Term) -> tuple[Term, Term] | None:
        """Low and high (exclusive) of the variable of a loop; None if the direction is not known."""
        match step:
            case int() if step > 0:
                return start, stop
            case int() if step < 0:
                return stop + 1, start + 1
        return None

    # ---------------------------------------------------------------- arithmetic

    def quotient(self, term: Term, by: Term) -> Term | None:
        """``term / by``, if there is no remainder; ``by`` is a number or one monomial."""
        (divisor, factor), *others = parts_of(by) or (((), 0),)
        if others or not factor:
            return None
        found: dict[tuple[int, ...], int] = {}
        for monomial, each in parts_of(term):
            left = _without(monomial, divisor)
            if left is None or each % factor:
                return None
            found[left] = each // factor
        return poly(found)

    def binary(self, op: ir.BinOp, a: Term, b: Term, type: Scalar) -> Term:
        """``op`` of two numbers of ``type``."""
        if type.is_float:
            return self._operation(op.value, (a, b), type)
        if isinstance(a, int) and isinstance(b, int) and (compute := _WRAPPING.get(op)):
            return wrapped(compute(a, b), type)
        if not type.is_signed:
            return self._operation(op.value, (a, b), type)
        match op, b:
            case ir.BinOp.ADD, _:
                return a + b
            case ir.BinOp.SUB, _:
                return a - b
            case ir.BinOp.MUL, _:
                return a * b
            case ir.BinOp.SHL, int() if 0 <= b < type.bits - 1:
                return a * (1 << b)
            case ir.BinOp.SHR, int() if 0 <= b < type.bits - 1:
                return self.divided("floordiv", a, 1 << b, type)
            case ir.BinOp.AND, int() if b >= 0 and not b & (b + 1):
                return self.divided("mod", a, b + 1, type)
            case ((ir.BinOp.FLOORDIV | ir.BinOp.MOD), _):
                return self.divided(op.value, a, b, type)
            case ((ir.BinOp.MIN | ir.BinOp.MAX), _) if isinstance(apart := a - b, int):
                return a if (apart < 0) == (op is ir.BinOp.MIN) else b
        return self._operation(op.value, (a, b), type)

    def divided(self, name: str, a: Term, b: Term, type: Scalar | str) -> Term:
        """``a // b`` or ``a % b``, rounded down."""
        if b == 1:
            return a if name == "floordiv" else 0
        if isinstance(a, int) and isinstance(b, int) and b:
            return a // b if name == "floordiv" else a % b
        inner = self.is_atom(a)
        if name == "floordiv" and isinstance(b, int) and b > 0 and inner and inner.name == name:
            by = inner.operands[1]
            if isinstance(by, int) and by > 0:
                return self.divided(name, inner.operands[0], by * b, type)
        return self._operation(name, (a, b), type)

    def compare(self, op: ir.CmpOp, a: Term, b: Term, type: Scalar) -> Term:
        if not type.is_float and isinstance(apart := a - b, int):
            return int(_COMPARED[op](apart))
        return self._operation(op.value, (a, b), type)

    def select(self, cond: Term, then: Term, orelse: Term, type: Scalar) -> Term:
        if isinstance(cond, int):
            return then if cond else orelse
        return then if then == orelse else self._operation("select", (cond, then, orelse), type)

    def cast(self, operand: Term, source: Scalar, type: Scalar) -> Term:
        """A conversion; between signed integers it keeps the value, unless 8 or 16 bits cut it off."""
        if isinstance(operand, int) and not source.is_float and not type.is_float:
            return int(operand != 0) if type.bits == 1 else wrapped(operand, type)
        signed = not source.is_float and not type.is_float and source.is_signed and type.is_signed
        if signed and type.bits >= min(source.bits, _OF_INDICES):
            return operand
        return self._operation("cast", (operand,), type)

    def operation(self, name: str, operands: Iterable[Term], type: Scalar) -> Term:
        """The result of a pure operation without a special rule."""
        return self._operation(name, tuple(operands), type)

    def _operation(self, name: str, operands: tuple[Term, ...], type: Scalar | str) -> Term:
        return self.atom(Atom(name, operands, str(type)))


def wrapped(value: int, type: Scalar) -> int:
    """``value`` as an integer of ``type``."""
    value &= (1 << type.bits) - 1
    return value - (1 << type.bits) if type.is_signed and value >> (type.bits - 1) else value


def _without(monomial: tuple[int, ...], divisor: tuple[int, ...]) -> tuple[int, ...] | None:
    left = list(monomial)
    for number in divisor:
        if number not in left:
            return None
        left.remove(number)
    return tuple(left)
