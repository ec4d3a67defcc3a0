"""Parts of ndarrays as separate arrays, without a copy, with NumPy's operators and methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from quadpy.core.completion import shows
from quadpy.core.importing import import_late
from quadpy.core.messages import shown
from quadpy.core.public import public, public_init
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.dense import DenseArray, numbers_passed_on
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.arrays.parts import SlicedPart, part_of
from quadpy.runtime.arrays.reinterpret import storage_over
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostPart, HostStorage, Storage
from quadpy.runtime.memory.strided_layout import StridedLayout

if TYPE_CHECKING:
    from quadpy.runtime.elements.numpy_types import Numbers


class LikeNumPy(NDArrayOperatorsMixin, DenseArray):
    """Operators give NumPy arrays, and methods of NumPy arrays are those of a copy that cannot be written.

    ``view += 1`` and functions of NumPy with ``out=view`` write the memory of the view.
    """

    __slots__ = ()
    __hash__ = object.__hash__  # NumPy's ``==`` compares elements

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, out: tuple[Any, ...] = (), **options: Any) -> Any:
        values = [np.asarray(each) if isinstance(each, DenseArray) else each for each in given]
        if not any(isinstance(each, DenseArray) for each in out):
            return getattr(ufunc, method)(*values, **({"out": out} if out else {}), **options)
        target = out[0]
        target.from_numpy(
            np.broadcast_to(getattr(ufunc, method)(*values, **options), target.shape + target.element_shape)
        )
        return target

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise self.missing(name)
        copy = self.to_numpy()
        copy.flags.writeable = False
        return getattr(copy, name)


@public_init
@shows("get_ndarray", "offset", "subview")
class BufferView(LikeNumPy, NDArray):
    """``size`` elements of ``array``, a 1-D ndarray, starting at element ``offset``, in the same memory; also ``array[a:b]``.

    Kernels take it like any array of one axis, and index it from 0; under ``debug=True`` its own range is checked.
    ``view[a:b]`` is another view.  A view keeps the memory of ``array`` alive.  On the host it has NumPy's operators, which
    give NumPy arrays, and NumPy's methods.

    Raises:
        ArgumentError: ``array`` is not an ndarray of one axis, or has fewer elements.
    """

    __slots__ = ("array", "offset")
    __quadpy_constructor__ = "view"  # calls inside kernels are compiled

    def __init__(self, array: NDArray, offset: int = 0, size: int | None = None) -> None:
        _require_one_axis(array)
        _require_counts(offset=offset, size=size)
        count = max(array.size - offset, 0) if size is None else size
        if offset + count > array.size:
            raise ArgumentError(f"elements {offset} to {offset + count} are not all in {array!r}")
        whole, first = (array.array, array.offset) if isinstance(array, BufferView) else (array, 0)
        self.array: NDArray = whole
        self.offset: int = first + offset
        item = whole.nbytes // whole.size if whole.size else 0
        storage = storage_over(whole, whole.dtype, (count, *whole.element_shape), self.offset * item)
        assert storage is not None, "an ndarray is in C order"
        super().__init__(whole.dtype, (count,), whole.element_shape, storage)

    def get_ndarray(self) -> NDArray:
        """The array that contains the elements of this view."""
        return self.array

    @public
    def subview(self, offset: int, size: int | None = None) -> BufferView:
        """``size`` elements of this view, starting at its element ``offset``; by default all up to its end."""
        return BufferView(self, offset, size)

    def __class_getitem__(cls, dtype: Any) -> Any:
        """The annotation of a parameter that takes views with elements of type ``dtype``."""
        return import_late("quadpy.hostmath.descriptors").NDArrayType(dtype, 1)  # which rests on this package

    def __repr__(self) -> str:
        return f"BufferView({self._element()}, elements {self.offset} to {self.offset + self.size})"


class ArrayPart(LikeNumPy, OrderedNDArray):
    """The part of an ndarray at ``where``, a position or a slice for each axis, in the same memory."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray | ArrayPart, where: tuple[int | slice, ...]) -> None:
        self.array, memory = array, array._memory()  # noqa: SLF001 - arrays and their storage are one part
        shape = SlicedPart(where, ()).shape(array.shape)
        if isinstance(memory, DeviceStorage):
            layout = memory.layout.at(where)
            storage: Storage = DeviceStorage(memory.region, layout)
        else:
            assert isinstance(memory, HostStorage)
            view = memory.view[(*where, ...)]
            layout = StridedLayout(0, view.dtype, view.shape, view.strides)
            storage = HostPart(memory, view)
        self._begin(array.dtype, shape, array.element_shape, tuple(range(len(shape))), storage, layout)

    def __repr__(self) -> str:
        return f"part({self._element()}, shape={self.shape})"


def part_of_array(array: NDArray | ArrayPart, index: object) -> DenseArray | Numbers:
    """``array[index]`` with slices: in the same memory; a copy that cannot be written if an axis runs backwards."""
    where, turned = found = part_of(index, array.shape, (0,) * array.ndim, array)
    if any(item.step < 0 for item in turned):
        copy = numbers_passed_on(array)[where][found.turned]
        copy.flags.writeable = False
        return copy
    (first, *others) = where or (None,)
    if isinstance(array, NDArray) and not others and isinstance(first, slice) and first.step == 1:
        start, stop, _ = first.indices(array.size)
        return BufferView(array, start, max(0, stop - start))
    return ArrayPart(array, where)


def _require_one_axis(array: object) -> None:
    if not isinstance(array, NDArray) or array.ndim != 1 or hasattr(array, "record"):
        raise ArgumentError(f"a BufferView takes an ndarray of one axis, of numbers, vectors or matrices, not {shown(array)}",
                            hint="a slice of a NumPy array is also an array, and can be an argument")  # fmt: skip


def _require_counts(**given: object) -> None:
    for name, number in given.items():
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
            raise ArgumentError(f"{name}={shown(number)} must be a whole number of at least 0")
