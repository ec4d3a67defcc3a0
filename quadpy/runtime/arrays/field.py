"""Global arrays that kernels bind at compile time.  Owns: Field, Layout, field.  Imports: leaves, hostmath, the runtime's storages."""

from __future__ import annotations

import enum
import weakref
from dataclasses import dataclass
from typing import Any, Final, Protocol

from quadpy.dtypes import BY_NAME, Scalar
from quadpy.errors import ArgumentError, BoundsError
from quadpy.hostmath import DType, element_of, type_of
from quadpy.runtime.arrays.dense import DenseArray, product, shape_of
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.host_storage import Storage
from quadpy.runtime.memory.numpy_storage import STORAGE, Numbers
from quadpy.runtime.memory.placement import Memory, allocate_lasting, storage_in

__all__ = ["Binder", "Field", "Layout", "Place", "field"]

AXIS_NAMES: Final = "ijklmnopqrst"


class Layout(enum.Enum):
    """How the components of vectors and matrices lie: together (AOS), or each in an array of its own (SOA)."""

    AOS = "aos"
    SOA = "soa"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field lies: ``start`` bytes into ``memory``, with ``strides`` in scalars.

    There is one stride an axis, and one more for the components of an element in row-major order.
    """

    memory: Memory
    start: int
    strides: tuple[int, ...]


class Binder(Protocol):
    """What gives out places when the first is needed: a layout tree."""

    def bind(self) -> None:
        """Call ``put`` of every field placed in it."""


class Field(DenseArray):
    """A dense global array; made by ``qp.field``, used in kernels by its name, with no parameter.

    It owns its memory: on the host it stays valid across ``qp.init`` and ``qp.reset``, on a GPU until the device is
    closed.  With an ``offset``, indices start there instead of at 0, and negative ones do not count from the end.
    """

    __slots__ = ("__weakref__", "_place", "_storage", "_tree", "name", "offset")
    __quadpy_field__ = True  # a kernel that names one takes it as a parameter

    name: str
    offset: tuple[int, ...]

    def __init__(self, dtype: Scalar, element: tuple[int, ...], name: str) -> None:
        """Without a shape; it gets one by ``span``, and memory by ``put``."""
        self.dtype, self.element_shape, self.name = dtype, element, name
        self._place: Place | None = None
        self._tree: Binder | None = None

    def span(self, shape: tuple[int, ...], offset: object = None, tree: Binder | None = None) -> None:
        """Fix the shape, and the tree that will find the place."""
        if hasattr(self, "shape"):
            raise ArgumentError(f"{self!r} has its shape already: place a field once, and give it no shape=")
        origin = (0,) * len(shape) if offset is None else _offset_of(offset, len(shape))
        self._describe(self.dtype, shape, self.element_shape)
        self.offset, self._tree = origin, tree

    def put(self, place: Place) -> None:
        """Fix where the memory lies."""
        item = self.dtype.nbytes
        *axes, component = (stride * item for stride in place.strides)
        inner = [component * product(self.element_shape[k + 1 :]) for k in range(len(self.element_shape))]
        whole, strides = self.shape + self.element_shape, (*axes, *inner)
        self._storage = storage_in(place.memory, place.start, STORAGE[self.dtype], whole, strides)
        self._storage.called = f"the field {self.name!r}"
        self._place = place

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "ndim", "size", "offset"):
            raise AttributeError(
                f"the field {self.name!r} has no {name} yet: give it a shape=, or place it: qp.root.dense(...).place(f)"
            )
        raise AttributeError(f"a field has no attribute {name!r}")

    @property
    def placed(self) -> bool:
        """Whether it has its memory."""
        return self._place is not None

    @property
    def place(self) -> Place:
        """Where the memory lies; asking for it closes the tree that the field is placed in."""
        if self._place is None:
            if self._tree is None:
                raise ArgumentError(f"{self!r} has no memory", hint="give it a shape=, or place it under qp.root")
            self._tree.bind()
        assert self._place is not None
        return self._place

    @property
    def pointer(self) -> int:
        """The address of component 0 of the first element."""
        return self._memory().pointer

    @property
    def block(self) -> Block | None:
        """The allocation of a field on a GPU, as in ``NDArray``; fields of one tree share one."""
        return self._memory().block

    @property
    def strides(self) -> tuple[int, ...]:
        """In scalars: one an axis, then one for the components of an element in row-major order."""
        return self.place.strides

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without what lies between them."""
        return self.size * product(self.element_shape) * self.dtype.nbytes

    def __quadpy_fingerprint__(self) -> str:
        """What a compiled kernel depends on: type, shape and layout, not where the memory lies."""
        return f"field:{self.dtype}:{self.element_shape}:{self.shape}:{self.offset}:{self.strides}"

    def _memory(self) -> Storage:
        if self._place is None:
            self.place  # noqa: B018 - binds the tree
        return self._storage

    def _locate(self, index: object) -> tuple[int, ...]:
        if not any(self.offset):
            return super()._locate(index)
        key = self._key(index)
        at = tuple(i - start for i, start in zip(key, self.offset, strict=True))
        if not all(0 <= i < extent for i, extent in zip(at, self.shape, strict=True)):
            raise BoundsError(f"index {key} is outside of {self!r}, which starts at {self.offset}")
        return at

    def __reduce__(self) -> tuple[Any, ...]:
        """Values, type, shape, offset and name travel; the copy lies in C order."""
        stored = self._memory().read(...).copy("C")
        return _restored, (self.dtype.name, self.element_shape, self.offset, self.name, stored)

    def __repr__(self) -> str:
        shape = self.shape if hasattr(self, "shape") else None
        return f"field({self._element()}, shape={shape}" + (f", name={self.name!r})" if self.name else ")")


def field(
    dtype: DType,
    shape: int | tuple[int, ...] | None = None,
    *,
    order: str | None = None,
    offset: int | tuple[int, ...] | None = None,
    layout: Layout = Layout.AOS,
    name: str = "",
) -> Field:
    """A field of zeros; ``dtype`` is a scalar, vector or matrix type.

    Args:
        dtype: what the elements are.
        shape: an int or a tuple of them, ``()`` for one element, read as ``f[None]``; None for a field that
            ``qp.root.dense(...).place(f)`` gives its shape.
        order: the axes from the outermost to the innermost in memory: ``"ji"`` is column-major.
        offset: the index of the first element, one int an axis.
        layout: of the components of vectors and matrices.
        name: shown in messages.

    Raises:
        ArgumentError: an option that does not fit the shape.

    The memory is taken when it is first needed, of the device that ``qp.init`` has chosen by then.
    """
    made = Field(*element_of(dtype), name)
    if shape is None:
        if order is not None or offset is not None or layout is not Layout.AOS:
            raise ArgumentError(
                "order, offset and layout need a shape", hint="give shape=, or say them where it is placed"
            )
        return made
    extents = shape_of(shape)
    strides = _strides(extents, _order_of(order, len(extents)), product(made.element_shape), layout)
    made.span(extents, offset, _OwnTree(made, strides))
    return made


class _OwnTree:
    """The tree of a field that has one to itself: it gets its memory when that is first needed.

    So a field that a module makes before ``qp.init`` has chosen the device lies on that device all the same.
    """

    def __init__(self, owner: Field, strides: tuple[int, ...]) -> None:
        self._owner, self._strides = weakref.ref(owner), strides
        self._lock = new_lock()

    def bind(self) -> None:
        field = self._owner()
        with self._lock:
            if field is not None and not field.placed:
                field.put(Place(allocate_lasting(field.nbytes), 0, self._strides))


def _strides(shape: tuple[int, ...], order: list[int], components: int, layout: Layout) -> tuple[int, ...]:
    strides = [0] * len(shape)
    step = components if layout is Layout.AOS else 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return (*strides, 1 if layout is Layout.AOS else step)


def _order_of(order: object, ndim: int) -> list[int]:
    names = AXIS_NAMES[:ndim]
    if order is None:
        return list(range(ndim))
    if not isinstance(order, str) or sorted(order) != sorted(names):
        raise ArgumentError(
            f"order={order!r} must name each of the {ndim} axes once", hint=f"for example {names[::-1]!r}"
        )
    return [names.index(letter) for letter in order]


def _offset_of(offset: object, ndim: int) -> tuple[int, ...]:
    origin = tuple(offset) if isinstance(offset, (tuple, list)) else (offset,)
    if len(origin) != ndim or not all(isinstance(start, int) for start in origin):
        raise ArgumentError(f"offset={offset!r} must be {ndim} integers, one an axis")
    return origin


def _restored(dtype: str, element: tuple[int, ...], offset: tuple[int, ...], name: str, stored: Numbers) -> Field:
    shape = stored.shape[: len(offset)]
    made = field(type_of(BY_NAME[dtype], element), shape, offset=offset, name=name)
    made._memory().write(..., stored)  # noqa: SLF001 - pickle's half of __reduce__
    return made
