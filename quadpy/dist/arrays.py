"""Arrays with an element for each cell of a grid: each rank has its own block, with a halo around it."""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from quadpy.dist.boxes import Box, Widths
from quadpy.dist.division import Division
from quadpy.dtypes import Scalar, bf16
from quadpy.errors import ArgumentError, BoundsError, CaptureError
from quadpy.messages import shown
from quadpy.public import made_by, public
from quadpy.runtime.arrays.field_layout import StoredMember
from quadpy.runtime.arrays.foreign_host import DISTRIBUTED, TypeKey, is_wide, type_key
from quadpy.runtime.arrays.ndarray import NDArray, array_layout
from quadpy.runtime.elements.types import DType, element_of
from quadpy.runtime.memory.host_storage import Storage
from quadpy.runtime.memory.placement import allocate, storage_at

if TYPE_CHECKING:
    from typing_extensions import Self


__all__ = ["DistributedArray", "DistributedField", "allocated"]


@made_by("the ndarray(dtype) of a qp.dist.Grid makes one")
class DistributedArray:
    """An array that kernels take as a parameter; made by ``grid.ndarray``.

    Kernels see the global shape and global indices.  ``to_numpy``, ``from_numpy`` and access to single elements are calls
    of all ranks together; ``owned_to_numpy`` and ``owned_from_numpy`` concern the rank's own block alone.

    local   the rank's block and its halo
    start   the global index of the first local element; it may be outside of the grid
    halo    how many cells of other ranks are there along each axis, below and above the block
    needs   how far loops read, and what is exchanged for it with this halo
    """

    __slots__ = (
        "__weakref__",
        "_captured",
        "_current",
        "abi",
        "block",
        "device",
        "dtype",
        "element_shape",
        "grid",
        "halo",
        "local",
        "nbytes",
        "ndim",
        "needs",
        "numbers",
        "pointer",
        "shape",
        "size",
        "start",
        "type_key",
        "wide",
    )

    __quadpy_array__: ClassVar[bool] = True  # a kernel that finds one in an argument takes it as a parameter
    __quadpy_view__: ClassVar[bool] = True  # it is an ArrayView itself
    writable: ClassVar[bool] = True
    _kind: ClassVar[str] = "ndarray"

    def __init__(self, grid: Division, dtype: Scalar, element: tuple[int, ...]) -> None:
        self.grid, self.dtype, self.element_shape = grid, dtype, element
        self.shape, self.ndim, self.size = grid.shape, grid.ndim, math.prod(grid.shape)
        self.halo: Widths = ((0, 0),) * grid.ndim
        self._current: list[Widths] = []
        self.needs: dict[tuple[Widths, ...], tuple[Widths, ...]] = {}
        self._captured: weakref.ref[object] | None = None
        self.type_key: TypeKey = type_key(DISTRIBUTED, dtype.name, grid.ndim, element)
        self._allocate()

    @classmethod
    def of(cls, grid: Division, dtype: DType) -> Self:
        """An array of zeros; ArgumentError for structs."""
        if getattr(dtype, "__quadpy_constructor__", None) == "struct":
            raise ArgumentError("distributed arrays of structs do not exist", hint="use one array for each member")
        return cls(grid, *element_of(dtype))

    # ------------------------------------------------------------------- halos

    def is_current(self, reach: Widths) -> bool:
        """Whether the halo has what a kernel needs that reads as far as ``reach``."""
        return any(_covers(known, reach) for known in self._current) or not any(map(any, reach))

    def received(self, reaches: Iterable[Widths]) -> None:
        """The halo is as its owners have it, as far as each of ``reaches``."""
        self._current += reaches

    def used_in(self, capture: object | None) -> None:
        """A call uses the array, in ``capture`` or outside of captures for None.

        A graph starts with any halos, so it exchanges those that it needs; and when it has run is not known here, so calls
        outside of it trust no halo that was current before.
        """
        if capture is None:
            if self._captured is not None:
                self._current.clear()
        elif self._captured is None or self._captured() is not capture:
            self._captured = weakref.ref(capture)
            self._current.clear()

    def written(self) -> None:
        """The owners have written: halos are no longer current."""
        self._current.clear()

    def reserve(self, reaches: Iterable[Widths]) -> None:
        """Have a halo for all of these; where it grows, the block moves to new memory.

        Raises:
            CaptureError: a graph uses the memory.
        """
        wanted = [self.halo, *reaches]
        halo = tuple(
            (max(each[axis][0] for each in wanted), max(each[axis][1] for each in wanted)) for axis in range(self.ndim)
        )
        if halo != self.halo:
            if self._captured is not None:
                raise CaptureError(
                    f"this call reads further around its cells than others before, so {self!r} would move in memory, and a graph uses it",
                    hint="make the call once before the first capture",
                )
            owned = self.owned_to_numpy()
            self.halo = halo
            self._current.clear()
            self._allocate()
            self.owned_from_numpy(owned)

    def _allocate(self) -> None:
        self.needs.clear()
        extents = tuple(n + below + above for n, (below, above) in zip(self.grid.block.shape, self.halo, strict=True))
        self.local, self.numbers = allocated(self.dtype, extents, self.element_shape)
        self.pointer, self.nbytes, self.device, self.block = (
            self.local.pointer, self.local.nbytes, self.local.device, self.local.block,
        )  # fmt: skip
        self.abi, self.wide = (self.pointer, *self.shape), is_wide(self.shape, self.nbytes)
        self.start = tuple(a - below for a, (below, _) in zip(self.grid.block.low, self.halo, strict=True))

    # ------------------------------------------------------------------- the rank's own block

    def _where(self, box: Box) -> tuple[slice, ...]:
        """The local elements of these cells."""
        return tuple(slice(a - s, b - s) for a, b, s in zip(box.low, box.high, self.start, strict=True))

    def owned_to_numpy(self) -> npt.NDArray[Any]:
        """A copy of the elements that this rank owns."""
        found: npt.NDArray[Any] = self.local[(*self._where(self.grid.block), ...)]
        return found

    def owned_from_numpy(self, values: npt.ArrayLike) -> None:
        """Set the elements that this rank owns; halos are renewed when a kernel next reads them.

        No messages travel, but all ranks call it between the same two calls: they must agree on which halos are stale.
        """
        expected, source = self.grid.block.shape + self.element_shape, np.asarray(values)
        if source.shape != expected:
            raise ArgumentError(
                f"an array of shape {source.shape} does not fit the block of {self!r}, which takes {expected}"
            )
        self.local[(*self._where(self.grid.block), ...)] = source
        self.written()

    # ------------------------------------------------------------------- calls of all ranks

    def fill(self, value: object) -> None:
        """Set every element to ``value``."""
        self.local.fill(value)
        self.written()

    def from_numpy(self, values: npt.ArrayLike) -> None:
        """Set all elements: each rank passes the whole array, and takes its own part."""
        source = np.asarray(values)
        if source.shape != self.shape + self.element_shape:
            raise ArgumentError(
                f"an array of shape {source.shape} does not fit {self!r}, which takes {self.shape + self.element_shape}",
                hint="pass the whole array on every rank, or the rank's own part to owned_from_numpy",
            )
        low, high = self.grid.block
        self.owned_from_numpy(source[tuple(map(slice, low, high))])

    def to_numpy(self) -> npt.NDArray[Any]:
        """All elements, on every rank; all ranks call it together."""
        own = np.ascontiguousarray(self.owned_to_numpy())
        whole = np.empty(self.shape + self.element_shape, own.dtype)
        for box, part in zip(self.grid.blocks, self.grid.world.transport.share(own.tobytes()), strict=True):
            stored = np.frombuffer(part, own.dtype).reshape(box.shape + self.element_shape)
            whole[tuple(map(slice, box.low, box.high))] = stored
        return whole

    @public
    def __getitem__(self, index: object) -> Any:
        cell = self._cell(index)
        here = self.local[self._at(cell)] if self._owns(cell) else None
        stored = b"" if here is None else np.asarray(here, _numpy_type(self.dtype)).tobytes()
        found = self.grid.world.transport.share(stored)[self.grid.owner(cell)]
        value = np.frombuffer(found, _numpy_type(self.dtype)).reshape(self.element_shape)
        return value.copy() if self.element_shape else value.item()

    @public
    def __setitem__(self, index: object, value: Any) -> None:
        cell = self._cell(index)
        if self._owns(cell):
            self.local[self._at(cell)] = value
        self.written()

    def _cell(self, index: object) -> tuple[int, ...]:
        given = index if isinstance(index, Sequence) else (index,)
        try:
            cell = tuple(map(operator.index, given))
        except TypeError:
            raise ArgumentError(
                f"{shown(index)} is not a cell of {self!r}", hint="to_numpy() has all elements"
            ) from None
        if len(cell) != self.ndim or not all(-n <= i < n for i, n in zip(cell, self.shape, strict=True)):
            raise BoundsError(f"index {shown(cell)} is outside {self!r}")
        return tuple(i % n for i, n in zip(cell, self.shape, strict=True))

    def _owns(self, cell: tuple[int, ...]) -> bool:
        return self.grid.owner(cell) == self.grid.world.rank

    def _at(self, cell: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(i - s for i, s in zip(cell, self.start, strict=True))

    def __iter__(self) -> Iterator[Any]:
        raise ArgumentError(f"a loop over {self!r} belongs in a kernel", hint="to_numpy() has all elements")

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        element = self.dtype.name + "".join(f"x{n}" for n in self.element_shape)
        return f"distributed {self._kind}({element}, shape={self.shape})"


@made_by("the field(dtype) of a qp.dist.Grid makes one")
class DistributedField(DistributedArray):
    """A field with an element for each cell of a grid; made by ``grid.field``.  Kernels use it by name, without a parameter."""

    __slots__ = ("name",)

    __quadpy_array__: ClassVar[bool] = False
    __quadpy_field__: ClassVar[bool] = True
    __quadpy_distributed__: ClassVar[bool] = True
    is_member: ClassVar[bool] = False
    blocks: ClassVar[tuple[()]] = ()
    _kind: ClassVar[str] = "field"

    name: str

    @property
    def offset(self) -> tuple[int, ...]:
        return (0,) * self.ndim

    def leaves(self) -> tuple[DistributedField, ...]:
        """As ``Field.leaves``."""
        return (self,)

    @property
    def storage(self) -> Storage:
        """The memory of this rank's part."""
        return self.local._memory()  # noqa: SLF001 - as ``transport.parts``

    def stored_members(self) -> list[StoredMember]:
        """As if one rank had the whole field; what runs is made of it by ``dist.localise``."""
        item, full = self.dtype.nbytes, self.shape + self.element_shape
        axes = tuple(math.prod(full[axis + 1 :]) * item for axis in range(self.ndim))
        return [StoredMember(self.dtype, item, self.element_shape, 0, axes)]

    def __quadpy_fingerprint__(self) -> str:
        return f"distributed field:{self.dtype}:{self.element_shape}:{self.shape}"


def allocated(dtype: Scalar, shape: tuple[int, ...], element: tuple[int, ...] = ()) -> tuple[NDArray, NDArray]:
    """An array of zeros of one to three axes, and its numbers as an array of three axes in the same memory."""
    layout = array_layout(dtype.name, shape, element)
    memory = allocate(layout.nbytes)
    numbers = (1,) * (3 - len(shape)) + shape[:-1] + (shape[-1] * math.prod(element),)
    flat = array_layout(dtype.name, numbers, ())
    return (
        NDArray(dtype, shape, element, storage_at(memory, layout.strided), layout),
        NDArray(dtype, numbers, (), storage_at(memory, flat.strided), flat),
    )


def _covers(known: Widths, reach: Widths) -> bool:
    return all(a >= c and b >= d for (a, b), (c, d) in zip(known, reach, strict=True))


def _numpy_type(dtype: Scalar) -> npt.DTypeLike:
    from quadpy.runtime.elements.numpy_types import STORAGE

    return np.float32 if dtype == bf16 else STORAGE[dtype]
