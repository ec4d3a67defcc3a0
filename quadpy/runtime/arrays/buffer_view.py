"""A range of an ndarray as a separate array, without a copy."""

from __future__ import annotations

from typing import Any

from quadpy.completion import shows
from quadpy.errors import ArgumentError
from quadpy.importing import import_late
from quadpy.messages import shown
from quadpy.public import public, public_init
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.reinterpret import storage_over

__all__ = ["BufferView"]


@public_init
@shows("get_ndarray", "start", "subview")
class BufferView(NDArray):
    """``size`` elements of ``array``, a 1-D ndarray, starting at element ``offset``, in the same memory.

    Kernels take it like any array of one axis, and index it from 0; under ``debug=True`` its own range is checked.
    ``view[a:b]`` is another view.  A view keeps the memory of ``array`` alive.

    Raises:
        ArgumentError: ``array`` is not an ndarray of one axis, or has fewer elements.
    """

    __slots__ = ("array", "start")

    def __init__(self, array: NDArray, offset: int = 0, size: int | None = None) -> None:
        _require_one_axis(array)
        _require_counts(offset=offset, size=size)
        count = max(array.size - offset, 0) if size is None else size
        if offset + count > array.size:
            raise ArgumentError(f"elements {offset} to {offset + count} are not all in {array!r}")
        whole, first = (array.array, array.start) if isinstance(array, BufferView) else (array, 0)
        self.array: NDArray = whole
        self.start: int = first + offset
        item = whole.nbytes // whole.size if whole.size else 0
        storage = storage_over(whole, whole.dtype, (count, *whole.element_shape), self.start * item)
        assert storage is not None, "an ndarray is in C order"
        super().__init__(whole.dtype, (count,), whole.element_shape, storage)

    def get_ndarray(self) -> NDArray:
        """The array that contains the elements of this view."""
        return self.array

    @public
    def subview(self, offset: int, size: int | None = None) -> BufferView:
        """``size`` elements of this view, starting at its element ``offset``; by default all up to its end."""
        return BufferView(self, offset, size)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return super().__getitem__(index)
        first, last, step = index.indices(self.size)
        if step != 1:
            raise ArgumentError(f"a BufferView has no steps: [{shown(index)}]", hint="use numpy.asarray(view)[::2]")
        return BufferView(self, first, max(0, last - first))

    def __class_getitem__(cls, dtype: Any) -> Any:
        """The annotation of a parameter that takes views with elements of type ``dtype``."""
        return import_late("quadpy.hostmath.descriptors").NDArrayType(dtype, 1)  # which rests on this package

    def __repr__(self) -> str:
        return f"BufferView({self._element()}, elements {self.start} to {self.start + self.size})"


def _require_one_axis(array: object) -> None:
    if not isinstance(array, NDArray) or array.ndim != 1:
        raise ArgumentError(f"a BufferView takes an ndarray of one axis, not {shown(array)}",
                            hint="a slice of a NumPy array is also an array, and can be an argument")  # fmt: skip


def _require_counts(**given: object) -> None:
    for name, number in given.items():
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
            raise ArgumentError(f"{name}={shown(number)} must be a whole number of at least 0")
