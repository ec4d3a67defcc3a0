"""Types of the IR beyond machine numbers: arrays, and the layouts of their elements."""

from __future__ import annotations

import enum
import math

from quadpy.core.dtypes import Scalar, element_text
from quadpy.core.light import dataclass


class Space(enum.Enum):
    """Where memory lives; a target maps each to one of its address spaces."""

    GLOBAL = "global"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Member:
    """Scalars of one type in an element: a number, a vector ``(n,)`` or a matrix ``(n, m)``, row-major.

    Bytes: the first scalar is at ``offset``, each other one ``stride`` after the one before; ``axes`` are the steps from
    element to element along each axis of the array.  ``axes`` None means C order, in steps of the layout's ``size``.
    Offsets, strides and axes are multiples of the scalar's size.
    """

    scalar: Scalar
    stride: int
    shape: tuple[int, ...] = ()
    offset: int = 0
    axes: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        text = f"{self.type_text} at {self.offset}"
        if self.axes is not None:
            return f"{text} strides={[*self.axes, self.stride]}"
        return text if self.stride == self.scalar.nbytes else f"{text} stride={self.stride}"

    @property
    def type_text(self) -> str:
        """The type alone, such as ``f32x3``."""
        return element_text(self.scalar, self.shape)


@dataclass(frozen=True, slots=True)
class Layout:
    """An element of an array: its members, and the bytes from one element to the next in C order.

    The scalars of an element are numbered through, member by member.
    """

    members: tuple[Member, ...]
    size: int

    @property
    def count(self) -> int:
        """How many scalars an element has."""
        return sum(member.count for member in self.members)

    @property
    def unit(self) -> int:
        """The bytes in which run-time strides count: the size of the largest scalar."""
        return max(member.scalar.nbytes for member in self.members)

    def at(self, component: int) -> tuple[Member, int]:
        """The member that scalar ``component`` belongs to, and the scalar's offset in bytes."""
        first = 0
        for member in self.members:
            if component < first + member.count:
                return member, member.offset + (component - first) * member.stride
            first += member.count
        raise IndexError(component)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self.members))}, size {self.size}}}"


@dataclass(frozen=True, slots=True)
class Array:
    """``ndim`` axes of elements of one ``layout`` in ``space``.

    ``shape`` is None if the extents are run-time values, as in an ndarray; a field has them here.  ``strided`` means
    that the axis strides are run-time values, in units of the layout.  ``aligned`` says that the memory begins at a
    multiple of 16 bytes, ``aligned_rows`` that each row of the last axis does.
    """

    layout: Layout
    ndim: int
    shape: tuple[int, ...] | None = None
    strided: bool = False
    space: Space = Space.GLOBAL
    aligned: bool = False
    aligned_rows: bool = False

    @property
    def elem(self) -> Scalar:
        """The type of an element's scalars, all of one type."""
        (member,) = self.layout.members
        return member.scalar

    @property
    def element(self) -> tuple[int, ...]:
        """The shape of an element whose scalars are all of one type."""
        (member,) = self.layout.members
        return member.shape

    @property
    def components(self) -> int:
        """How many scalars one element has."""
        return self.layout.count

    def __repr__(self) -> str:
        extents = ", ".join(map(str, self.shape)) if self.shape is not None else ", ".join("?" * self.ndim)
        first, *others = self.layout.members
        is_plain = not others and first.offset == 0 and (first.axes is not None or first.stride == first.scalar.nbytes)
        tail = f", strides={[*first.axes, first.stride]}" if is_plain and first.axes is not None else ""
        tail += ", strided" if self.strided else ""
        tail += ", aligned rows" if self.aligned_rows else ", aligned" if self.aligned else ""
        tail += f", {self.space.value}" if self.space is not Space.GLOBAL else ""
        elements = first.type_text if is_plain else repr(self.layout)
        return f"{elements}[{extents}{tail}]"


def array_of(
    scalar: Scalar,
    ndim: int,
    element: tuple[int, ...] = (),
    shape: tuple[int, ...] | None = None,
    *,
    strides: tuple[int, ...] | None = None,
    strided: bool = False,
    space: Space = Space.GLOBAL,
    aligned: bool = False,
    aligned_rows: bool = False,
) -> Array:
    """An array of scalars, or of vectors or matrices of the shape ``element``.

    ``strides`` are bytes: one entry for each axis, then one for the components of an element; without them, elements are
    in C order, their components innermost.
    """
    nbytes = scalar.nbytes
    axes, stride = (strides[:-1], strides[-1]) if strides is not None else (None, nbytes)
    layout = Layout((Member(scalar, stride, element, 0, axes),), nbytes * math.prod(element))
    return Array(layout, ndim, shape, strided, space, aligned, aligned_rows)
