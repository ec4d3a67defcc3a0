"""The common base of ndarrays and fields: access from the host."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, overload

import numpy as np

from quadpy.core.dtypes import Scalar, bf16, element_text
from quadpy.core.importing import import_late
from quadpy.core.messages import no_attribute, shown
from quadpy.core.public import shortened
from quadpy.errors import ArgumentError, BoundsError, QuadpyError
from quadpy.runtime.arrays.element_types import I_contra, OfElements, PartIndex, T_co
from quadpy.runtime.arrays.exchange import Exchange
from quadpy.runtime.arrays.field_layout import Layout, integers_of
from quadpy.runtime.arrays.parts import SlicedPart, has_slices, part_of
from quadpy.runtime.elements.numpy_types import Numbers, admit, decode, encode
from quadpy.runtime.elements.types import DType
from quadpy.runtime.elements.values import Elements, wrap
from quadpy.runtime.launch.capturing import differentiating_here
from quadpy.runtime.memory.host_storage import Where

Index = tuple[int, ...]


_TEXTS: Final = {
    "dtype": "The type of the elements' numbers, or of structs.",
    "element_shape": "``()`` for numbers, ``(n,)`` for vectors, ``(n, m)`` for matrices.",
    "ndim": "The number of axes.",
    "shape": "The extent of each axis.",
    "size": "The number of elements.",
}


def fixed(name: str) -> property:
    """The attribute ``name``, which users can read but not set; the class sets ``_name``."""

    def refuse(self: object, value: object) -> None:
        raise AttributeError(f"the {name} of {self!r} cannot be changed: make another array, and copy this one into it")

    return property(operator.attrgetter(f"_{name}"), refuse, doc=_TEXTS.get(name))


class DenseArray(Exchange, OfElements[T_co, I_contra]):
    """A grid of ``shape`` with elements of one type: scalars, vectors or matrices.

    On the host, ``a[i, j]`` reads one element, ``a[i, j] = v`` writes one, ``a[i, j].x = v`` a part of one, and ``a[None]``
    is the only element of an array without axes.  ``a[1:3, ...]`` is a part of the array: of an ndarray in the same memory,
    of a field a copy as a NumPy array; ``a[1:3, ...] = values`` writes one.  ``numpy.asarray(a)`` is a view of the memory, or a copy for an array on a GPU.
    NumPy shapes are ``(*shape, *element_shape)``.

    Access to an array on a GPU comes after all work that wrote it, on ``stream``, by default the calling thread's.  It
    raises DeviceError after the device was closed.
    """

    __slots__ = ("_dtype", "_element_shape", "_ndim", "_shape", "_size")

    _kind: ClassVar[str] = "an array"
    _dtype: Scalar
    _element_shape: tuple[int, ...]
    _ndim: int
    _shape: tuple[int, ...]
    _size: int
    if TYPE_CHECKING:
        ndim: int
        size: int
    else:
        dtype, element_shape, ndim, shape, size = map(fixed, ("dtype", "element_shape", "ndim", "shape", "size"))

    def _describe(self, dtype: Scalar, shape: tuple[int, ...], element_shape: tuple[int, ...]) -> None:
        self._dtype, self._shape, self._element_shape = dtype, shape, element_shape
        self._ndim, self._size = len(shape), math.prod(shape)

    def _origin(self) -> tuple[int, ...]:
        """The index of the first element."""
        return (0,) * self.ndim

    def locate(self, index: object) -> Index | None:
        """``index`` as positions, where negative ones count from the end; None if it means a part of the array."""
        if type(index) is int and self._ndim == 1:
            if -self._shape[0] <= index < self._shape[0]:
                return (index,)
            raise BoundsError(f"index {shown((index,))} is outside {self!r}")
        if type(index) is tuple and len(index) == self._ndim:
            for i, extent in zip(index, self._shape):  # noqa: B905 - as many; ``strict`` takes longer
                if type(i) is not int or not -extent <= i < extent:
                    break
            else:
                return index
        key = self._key(index)
        if key is None:
            return None
        for i, extent in zip(key, self._shape, strict=True):
            if not -extent <= i < extent:
                raise BoundsError(f"index {shown(key)} is outside {self!r}")
        return key

    def _key(self, index: object) -> Index | None:
        if index is None:
            index = ()
        elif isinstance(index, Elements) and index.RANK == 1:
            index = index.entries
        try:
            key = tuple(map(operator.index, index if isinstance(index, tuple) else (index,)))
        except TypeError:
            if has_slices(index):
                return None
            raise ArgumentError(
                f"{shown(index)} is not an index",
                hint="pass integers and slices; for lists of indices and masks, use numpy.asarray(a)",
            ) from None
        if len(key) != self._ndim:
            raise ArgumentError(
                f"index {shown(key)} has {len(key)} numbers, but {self!r} takes {self.ndim}",
                hint="a[0, ...] is a part of an array" if len(key) < self.ndim else "",
            )
        return key

    @overload
    def __getitem__(self, index: PartIndex, /) -> Any: ...
    @overload
    def __getitem__(self, index: I_contra | Elements, /) -> T_co: ...
    def __getitem__(self, index: object) -> Any:
        try:
            where = self.locate(index)
            if where is None:
                return self._read_part(index)
            memory = self._memory()
            if not self._element_shape and self._dtype is not bf16 and (found := memory.number(where)) is not None:
                return found
            stored = memory.read(where)
            return wrap(decode(stored, self._dtype), self._dtype, functools.partial(self._set_part, where))
        except QuadpyError as error:
            raise shortened(error)

    def _set_part(self, where: Index, part: Any, values: Numbers) -> None:
        """Write a part of the vector or matrix at ``where``."""
        now = decode(self._memory().read(where), self.dtype).copy()
        now[part] = values
        self._memory().write(where, encode(now, self.dtype), None)

    def _read_part(self, index: object) -> Any:
        """A copy of the part of the array that ``index`` means, of NumPy's shape."""
        part = part_of(index, self.shape, self._origin(), self)
        stored = self._memory().read(part.where)
        return decode(stored, self.dtype)[part.turned].copy()

    def __setitem__(self, index: object, value: object) -> None:
        try:
            where = self.locate(index)
            if where is None:
                self._write_part(index, value)
            else:
                self._set_element(where, value)
        except QuadpyError as error:
            raise shortened(error)

    def require_fits(self, index: object, value: object) -> None:
        """Raise what ``x[index] = value`` would raise, or ``x.fill`` if the index is None, and write nothing."""
        if index is None or self.locate(index) is not None:
            self._element_of(value)
        else:
            self._part_of(index, value)

    def _write_part(self, index: object, value: object) -> None:
        part, values = self._part_of(index, value)
        self._memory().write(part.where, encode(values, self.dtype))

    def _part_of(self, index: object, value: object) -> tuple[SlicedPart, Numbers]:
        """The part of the array that ``index`` means, and ``value`` for it, broadcast as by NumPy."""
        part = part_of(index, self.shape, self._origin(), self)
        if isinstance(value, (bool, int, float, np.generic, Elements)):
            values = admit(value, self.dtype)
        else:
            values = self._admitted(numbers_passed_on(value) if isinstance(value, DenseArray) else np.asarray(value))
        shape = part.shape(self.shape) + self.element_shape
        try:
            return part, np.broadcast_to(values, shape)[part.turned]
        except ValueError:
            raise ArgumentError(
                f"values of shape {values.shape} do not fit a part of shape {shape} of {self!r}"
            ) from None

    def fill(self, value: object, *, stream: object = None) -> None:
        """Set every element to ``value``, a number or a vector or matrix of ``element_shape``, on ``stream``."""
        self._assign(..., value, stream)

    def _set_element(self, where: Index, value: object) -> None:
        """Write the element at ``where``."""
        if self._element_shape or self._dtype is bf16 or not self._memory().put_number(where, value):
            self._assign(where, value)

    def _assign(self, where: Where, value: object, stream: object = None) -> None:
        """Write ``value``; a number is broadcast."""
        self._memory().write(where, encode(self._element_of(value), self._dtype), stream)

    def _element_of(self, value: object) -> Numbers:
        values = admit(value, self._dtype)
        if values.ndim and values.shape != self._element_shape:
            raise ArgumentError(f"a value of shape {values.shape} is not an element of {self!r}")
        return values

    def copy_from(self, other: DenseArray, *, stream: object = None) -> None:
        """Copy all elements of ``other``, which must have the same shapes, on ``stream``; types may differ as in ``from_numpy``."""
        if not isinstance(other, DenseArray):
            raise ArgumentError(
                f"copy_from takes an ndarray or a field of quadpy's, not {type(other).__module__}.{type(other).__qualname__}",
                hint="use from_numpy",
            )
        theirs = other._memory()
        if (other.dtype, other.shape, other.element_shape) == (self.dtype, self.shape, self.element_shape):
            self._memory().copy_from(theirs, stream)
        else:
            self.from_numpy(numbers_passed_on(other), stream=stream)

    if TYPE_CHECKING:  # kernels loop over the indices of an array

        def __iter__(self) -> Iterator[Any]: ...

    def has_grad(self) -> bool:
        """Whether there is a gradient with a shape."""
        return getattr(self, "grad", None) is not None

    def has_dual(self) -> bool:
        """Whether there is a dual with a shape."""
        return getattr(self, "dual", None) is not None

    def __len__(self) -> int:
        if getattr(self, "shape", None) is None:  # a field that is not placed
            raise TypeError(f"{self!r} has no length: it has no shape yet")
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def _element(self) -> str:
        return element_text(self.dtype, self.element_shape)

    # ``__getattr__`` would make each access to an attribute slower, also those of a launch.

    def missing(self, name: str) -> AttributeError:
        """The error for an attribute that this array does not have."""
        instead = {} if name.startswith("_") else import_late("quadpy.core.elsewhere").INSTEAD
        return no_attribute(self._kind, name, getattr(type(self), "__shown__", ()), instead)

    @property
    def n(self) -> int:
        """The length of vectors, or the rows of matrices."""
        return self._extent_of_element("n")

    @property
    def m(self) -> int:
        """The columns of matrices; 1 for vectors."""
        return self._extent_of_element("m")

    def _extent_of_element(self, name: str) -> int:
        if not self._element_shape:
            raise self.missing(name)
        return (*self._element_shape, 1)["nm".index(name)]

    @property
    def element_type(self) -> DType:
        """The type of the elements: a scalar, vector or matrix type."""
        return import_late("quadpy.hostmath.descriptors").type_of(self._dtype, self._element_shape)  # type: ignore[no-any-return]  # as annotated

    @property
    def layout(self) -> Layout:
        """How the components of vectors and matrices are stored."""
        return Layout.AOS

    @property
    def get_type(self) -> NoReturn:
        raise self.missing("get_type")


def shape_of(shape: object) -> tuple[int, ...]:
    """An int, or a sequence or NumPy array of ints, as a tuple; zero is a legal extent."""
    try:
        extents = integers_of(shape)
    except TypeError:
        raise ArgumentError(f"{shown(shape)} is not a shape: pass an int or a tuple of ints") from None
    if any(extent < 0 for extent in extents):
        raise ArgumentError(f"the shape {shown(shape)} has a negative extent")
    if any(extent >= 1 << 63 for extent in extents):
        raise ArgumentError(f"the shape {shown(shape)} has an extent above 2**63 - 1")
    return extents


def numbers_passed_on(array: DenseArray) -> Numbers:
    """All numbers of ``array``, which another array takes."""
    if (taker := differentiating_here()) is not None:
        taker.passes_on(array)
    return array.to_numpy()
