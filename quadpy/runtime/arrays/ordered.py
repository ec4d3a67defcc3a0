"""Arrays with run-time shapes whose axes are in another order in memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from quadpy.core.dtypes import BY_NAME, Scalar
from quadpy.core.importing import import_late
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.foreign_host import is_wide, type_key
from quadpy.runtime.arrays.view import TypeKey
from quadpy.runtime.elements.numpy_types import SCALAR_OF, STORAGE, Numbers
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostPart, HostStorage, Storage, Where
from quadpy.runtime.memory.placement import allocate, storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device


class OrderedNDArray(DenseArray):
    """Like ``NDArray``, with the axes in ``order``, the outermost first; made by ``qp.tensor``.  Kernels get its strides."""

    __slots__ = (
        "__dict__",  # attributes of the user's own
        "__weakref__",
        "_storage",
        "abi",
        "block",
        "device",
        "grad",
        "nbytes",
        "order",
        "pointer",
        "type_key",
        "wide",
    )

    _kind = "an ndarray"
    __quadpy_array__: ClassVar[bool] = True  # a kernel that finds one in an argument takes it as a parameter
    writable: ClassVar[bool] = True
    device: Device | None
    block: Block | None
    type_key: TypeKey
    abi: tuple[int, ...]
    grad: OrderedNDArray | None
    nbytes: int
    pointer: int
    wide: bool

    def __init__(
        self, dtype: Scalar, shape: tuple[int, ...], element: tuple[int, ...], order: tuple[int, ...], stream: object = None
    ) -> None:  # fmt: skip
        """An array of zeros; raises as ``qp.ndarray``."""
        strides, step = [0] * len(shape), math.prod(element) * dtype.nbytes
        nbytes = math.prod(shape) * step
        for axis in reversed(order):
            strides[axis] = step
            step *= shape[axis]
        inner = [math.prod(element[k + 1 :]) * dtype.nbytes for k in range(len(element))]
        layout = StridedLayout(0, STORAGE[dtype], shape + element, (*strides, *inner))
        self._begin(dtype, shape, element, order, storage_at(allocate(nbytes, stream), layout), layout)

    def _begin(
        self, dtype: Scalar, shape: tuple[int, ...], element: tuple[int, ...], order: tuple[int, ...], storage: Storage,
        layout: StridedLayout,
    ) -> None:  # fmt: skip
        self._describe(dtype, shape, element)
        self.order, self.grad, self.nbytes = order, None, layout.reach
        self._storage = storage
        self.device, self.block, self.pointer = storage.device, storage.block, storage.pointer
        self.abi = (self.pointer, *shape, *(step // dtype.nbytes for step in layout.strides[: len(shape)]))
        self.type_key = type_key("strided", dtype.name, len(shape), element)
        self.wide = self.nbytes > 0x7FFFFFFF or is_wide(shape, self.nbytes)  # strides are signed

    @classmethod
    def over(cls, storage: Storage, where: Where = ...) -> OrderedNDArray:
        """The stored numbers at ``where``; those of vectors and matrices are along axes of their own, and bf16 are integers."""
        if isinstance(storage, DeviceStorage):
            layout = storage.layout if where is ... else storage.layout.at(where)
            part: Storage = DeviceStorage(storage.region, layout)
        else:
            assert isinstance(storage, HostStorage)
            view = storage.view[where if where is ... else (*where, ...)]
            layout, part = StridedLayout(0, view.dtype, view.shape, view.strides), HostPart(storage, view)
        made = cls.__new__(cls)
        made._begin(SCALAR_OF[layout.dtype], layout.shape, (), tuple(range(len(layout.shape))), part, layout)  # noqa: SLF001 - of this class
        return made

    def _memory(self) -> Storage:
        return self._storage

    def _read_part(self, index: object) -> Any:
        return import_late("quadpy.runtime.arrays.buffer_view").part_of_array(self, index)

    def __reduce__(self) -> tuple[Any, ...]:
        grad = None if self.grad is None else self.grad.storage_copy()
        made = self.dtype.name, self.element_shape, self.order, self.storage_copy(), grad
        return _restored, made, self.__dict__ or None

    def storage_copy(self) -> Numbers:
        """The stored numbers, in C order."""
        return self._storage.read(...).copy("C")

    def __repr__(self) -> str:
        return f"ndarray({self._element()}, shape={self.shape}, layout={self.order})"


def order_of_layout(layout: object, ndim: int) -> tuple[int, ...]:
    """The order of axes that ``layout`` says, the outermost first; ArgumentError if it does not name each axis once."""
    if layout is None:
        return tuple(range(ndim))
    if not isinstance(layout, (tuple, list)) or sorted(map(str, layout)) != sorted(map(str, range(ndim))):
        raise ArgumentError(
            f"layout={layout!r} must name each of the {ndim} axes once, the outermost first",
            hint=f"for example {tuple(reversed(range(ndim)))}",
        )
    return tuple(int(axis) for axis in layout)


def _restored(
    dtype: str, element: tuple[int, ...], order: tuple[int, ...], stored: Numbers, grad: Numbers | None
) -> OrderedNDArray:
    made = OrderedNDArray(BY_NAME[dtype], stored.shape[: len(order)], element, order)
    made._storage.write(..., stored)  # noqa: SLF001 - the other half of __reduce__
    if grad is not None:
        made.grad = _restored(dtype, element, order, grad, None)
    return made
