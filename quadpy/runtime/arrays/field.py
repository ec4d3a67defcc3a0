"""Fields: global arrays that kernels bind at compile time."""

from __future__ import annotations

import enum
import math
import weakref
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from quadpy.dtypes import BY_NAME, Scalar
from quadpy.errors import ArgumentError, BoundsError
from quadpy.runtime.arrays.dense import DenseArray, shape_of
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.elements.numpy_types import STORAGE, Numbers
from quadpy.runtime.elements.types import DType, element_of
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.host_storage import Storage
from quadpy.runtime.memory.placement import Memory, allocate_lasting, storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout

__all__ = ["AXIS_NAMES", "Field", "FieldTree", "Layout", "Placement", "StoredMember", "axis_strides", "field"]

AXIS_NAMES: Final = "ijklmnopqrst"


class Layout(enum.Enum):
    """How the components of vectors and matrices are stored: together (AOS), or each in its own array (SOA)."""

    AOS = "aos"
    SOA = "soa"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a field is stored: ``start`` bytes into ``memory``, with ``strides`` in scalars.

    There is one stride per axis, and one more for the components of an element in row-major order.
    """

    memory: Memory
    start: int
    strides: tuple[int, ...]


class StoredMember(NamedTuple):
    """The numbers of one type in an element, in bytes: the first at ``offset``, each other one ``stride`` after it.

    ``axes`` are the steps from element to element along each axis.
    """

    scalar: Scalar
    stride: int
    shape: tuple[int, ...]
    offset: int
    axes: tuple[int, ...]


class FieldTree(Protocol):
    """A tree of fields, which allocates their memory when the first of them needs it."""

    def bind(self) -> None:
        """Call ``put`` on every field of the tree."""


class Field(DenseArray):
    """A dense global array; made by ``qp.field``.  Kernels use it by name, without a parameter.

    It owns its memory: on the host it stays valid across ``qp.init`` and ``qp.reset``, on a GPU until the device is
    closed.  With an ``offset``, indices start there instead of at 0, and negative ones do not count from the end.
    """

    __slots__ = ("__weakref__", "_placement", "_storage", "_tree", "name", "offset")
    __quadpy_field__ = True  # a kernel that names one takes it as a parameter

    name: str
    offset: tuple[int, ...]

    def __init__(self, dtype: Scalar, element: tuple[int, ...], name: str) -> None:
        """A field without a shape, which ``span`` sets, and without memory, which ``put`` sets."""
        self.dtype, self.element_shape, self.name = dtype, element, name
        self._placement: Placement | None = None
        self._tree: FieldTree | None = None

    def span(self, shape: tuple[int, ...], offset: object = None, tree: FieldTree | None = None) -> None:
        """Set the shape, and the tree that will allocate the memory."""
        if hasattr(self, "shape"):
            raise ArgumentError(f"{self!r} already has a shape: place a field once, and without shape=")
        origin = (0,) * len(shape) if offset is None else _offset_of(offset, len(shape))
        self._describe(self.dtype, shape, self.element_shape)
        self.offset, self._tree = origin, tree

    def put(self, placement: Placement) -> None:
        """Set the memory."""
        item = self.dtype.nbytes
        *axes, component = (stride * item for stride in placement.strides)
        inner = [component * math.prod(self.element_shape[k + 1 :]) for k in range(len(self.element_shape))]
        whole, strides = self.shape + self.element_shape, (*axes, *inner)
        self._storage = storage_at(
            placement.memory, StridedLayout(placement.start, STORAGE[self.dtype], whole, strides)
        )
        self._storage.name = f"the field {self.name!r}"
        self._placement = placement

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "ndim", "size", "offset"):
            raise AttributeError(
                f"the field {self.name!r} has no {name} yet: pass shape=, or place it with qp.root.dense(...).place(f)"
            )
        raise AttributeError(f"a field has no attribute {name!r}")

    def leaves(self) -> tuple[Field, ...]:
        """The field itself; a field of structs has several."""
        return (self,)

    @property
    def placed(self) -> bool:
        """Whether it has memory."""
        return self._placement is not None

    @property
    def placement(self) -> Placement:
        """Where the field is stored; the first use allocates the memory of its tree, which no field can join then."""
        if self._placement is None:
            if self._tree is None:
                raise ArgumentError(f"{self!r} has no memory", hint="pass shape=, or place it under qp.root")
            self._tree.bind()
        assert self._placement is not None
        return self._placement

    @property
    def pointer(self) -> int:
        """The address of the first component of the first element."""
        return self._memory().pointer

    @property
    def block(self) -> Block | None:
        """The allocation of a field on a GPU, as in ``NDArray``; the fields of a tree share it."""
        return self._memory().block

    @property
    def strides(self) -> tuple[int, ...]:
        """In scalars: one per axis, then one for the components of an element in row-major order."""
        return self.placement.strides

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without gaps between them."""
        return self.size * math.prod(self.element_shape) * self.dtype.nbytes

    def stored_members(self) -> list[StoredMember]:
        """How an element is stored."""
        *axes, component = (stride * self.dtype.nbytes for stride in self.strides)
        return [StoredMember(self.dtype, component, self.element_shape, 0, tuple(axes))]

    def __quadpy_fingerprint__(self) -> str:
        """What a compiled kernel depends on: type, shape and layout, not the address."""
        return f"field:{self.dtype}:{self.element_shape}:{self.shape}:{self.offset}:{self.strides}"

    def _memory(self) -> Storage:
        if self._placement is None:
            self.placement  # noqa: B018 - binds the tree
        return self._storage

    def _origin(self) -> tuple[int, ...]:
        return self.offset

    def locate(self, index: object) -> tuple[int, ...] | None:
        if not any(self.offset):
            return super().locate(index)
        key = self._key(index)
        if key is None:
            return None
        at = tuple(i - start for i, start in zip(key, self.offset, strict=True))
        if not all(0 <= i < extent for i, extent in zip(at, self.shape, strict=True)):
            raise BoundsError(f"index {key} is outside of {self!r}, which starts at {self.offset}")
        return at

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles values, type, shape, offset and name; the copy has C order."""
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
    """Create a field of zeros.

    Args:
        dtype: the element type: a scalar, vector, matrix or struct type.
        shape: an int or a tuple of ints; ``()`` for one element, read as ``f[None]``; None for a field that gets its
            shape from ``qp.root.dense(...).place(f)``.
        order: the axes from the outermost to the innermost in memory: ``"ji"`` is column-major.
        offset: the index of the first element, one int per axis.
        layout: how the components of vectors and matrices are stored.
        name: shown in messages.

    Raises:
        ArgumentError: an option that does not match the shape.

    The memory is allocated when it is first needed, on the device that ``qp.init`` has chosen by then.
    """
    if getattr(dtype, "__quadpy_constructor__", None) == "struct":
        options = {"order": order, "offset": offset, "layout": layout, "name": name}
        return dtype.field(shape, **options)  # type: ignore[union-attr, no-any-return]  # which ``hostmath`` has
    return _field(Field(*element_of(dtype), name), shape, order, offset, layout)


def require_no_layout(order: object, offset: object, layout: Layout) -> None:
    """ArgumentError for options of a field that has no shape yet."""
    if order is not None or offset is not None or layout is not Layout.AOS:
        raise ArgumentError(
            "order, offset and layout need a shape", hint="pass shape=, or give them where the field is placed"
        )


def _field(
    made: Field, shape: object, order: object = None, offset: object = None, layout: Layout = Layout.AOS
) -> Field:
    if shape is None:
        require_no_layout(order, offset, layout)
        return made
    extents = shape_of(shape)
    strides = _strides(extents, _order_of(order, len(extents)), math.prod(made.element_shape), layout)
    made.span(extents, offset, _OwnTree(made, strides))
    return made


class _OwnTree:
    """The tree of a single field, which gets its memory when it first needs it.

    So a field that a module creates before ``qp.init`` is on the device that ``qp.init`` chooses.
    """

    def __init__(self, owner: Field, strides: tuple[int, ...]) -> None:
        self._owner, self._strides = weakref.ref(owner), strides
        self._lock = new_lock()

    def bind(self) -> None:
        field = self._owner()
        with self._lock:
            if field is not None and not field.placed:
                field.put(Placement(allocate_lasting(field.nbytes), 0, self._strides))


def axis_strides(shape: tuple[int, ...], order: str | None) -> tuple[int, ...]:
    """The strides of a dense array of single numbers with the axes in this order."""
    return _strides(shape, _order_of(order, len(shape)), 1, Layout.AOS)[:-1]


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
        raise ArgumentError(f"offset={offset!r} must be {ndim} integers, one per axis")
    return origin


def _restored(dtype: str, element: tuple[int, ...], offset: tuple[int, ...], name: str, stored: Numbers) -> Field:
    made = _field(Field(BY_NAME[dtype], element, name), stored.shape[: len(offset)], offset=offset)
    made._memory().write(..., stored)  # noqa: SLF001 - the other half of __reduce__
    return made
