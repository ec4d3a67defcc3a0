"""What a struct consists of, where every type is known: its members, and where C puts them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from quadpy.core.dtypes import Scalar, element_text


@dataclass(frozen=True, slots=True)
class Plain:
    """The type of a member that is a number, or a vector or matrix of ``shape``."""

    scalar: Scalar
    shape: tuple[int, ...] = ()

    @property
    def types(self) -> tuple[Scalar, ...]:
        return (self.scalar,) * math.prod(self.shape)

    @property
    def alignment(self) -> int:
        return self.scalar.nbytes

    @property
    def nbytes(self) -> int:
        return self.scalar.nbytes * math.prod(self.shape)

    def __repr__(self) -> str:
        return element_text(self.scalar, self.shape)


@dataclass(frozen=True, slots=True)
class RecordType:
    """A struct: its members in order, its methods, and the class that it was made from.

    Its scalars are numbered through, member by member.
    """

    members: tuple[tuple[str, Plain | RecordType], ...]
    methods: tuple[tuple[str, object], ...] = ()
    cls: type | None = field(default=None, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.members)

    @property
    def types(self) -> tuple[Scalar, ...]:
        """The type of each scalar."""
        return tuple(scalar for _, member in self.members for scalar in member.types)

    @property
    def alignment(self) -> int:
        """As in C: that of the member with the largest one."""
        return max(member.alignment for _, member in self.members)

    @property
    def nbytes(self) -> int:
        """The size in C, a multiple of the alignment."""
        *_, last = self.offsets()
        return _round_up(last + self.members[-1][1].nbytes, self.alignment)

    def offsets(self) -> list[int]:
        """Where in C each member begins."""
        found: list[int] = []
        end = 0
        for _, member in self.members:
            found.append(_round_up(end, member.alignment))
            end = found[-1] + member.nbytes
        return found

    def plain_members(self, path: str = "", start: int = 0) -> Iterator[PlainMember]:
        """The numbers, vectors and matrices of this struct and of those in it, in order."""
        for (name, member), offset in zip(self.members, self.offsets(), strict=True):
            if isinstance(member, RecordType):
                yield from member.plain_members(f"{path}{name}.", start + offset)
            else:
                yield PlainMember(path + name, member, start + offset)

    def window(self, name: str) -> tuple[int, Plain | RecordType] | None:
        """The number of the first scalar of a member, and its type; None where there is no such member."""
        first = 0
        for known, member in self.members:
            if known == name:
                return first, member
            first += len(member.types)
        return None

    def method(self, name: str) -> object | None:
        return dict(self.methods).get(name)

    def __repr__(self) -> str:
        """The members; methods are the business of those who call them."""
        return f"struct({', '.join(f'{name}: {member!r}' for name, member in self.members)})"


class PlainMember(NamedTuple):
    """A member that is not a struct itself, by its path such as ``inner.v``, ``offset`` bytes from the start of the struct."""

    path: str
    type: Plain
    offset: int


def function_of(method: object) -> object:
    """The function of a static method or of a property; any other method is one itself."""
    return method.fget if isinstance(method, property) else getattr(method, "__func__", method)


Shape: TypeAlias = "tuple[int, ...] | RecordType"
"""What a value is made of: () for a number, the extents of a vector or matrix, the type of a struct."""


def count_of(shape: Shape) -> int:
    """How many scalars a value of this shape has."""
    return len(shape.types) if isinstance(shape, RecordType) else math.prod(shape)


def shape_of_member(member: Plain | RecordType) -> Shape:
    return member.shape if isinstance(member, Plain) else member


def _round_up(nbytes: int, step: int) -> int:
    return -(-nbytes // step) * step
