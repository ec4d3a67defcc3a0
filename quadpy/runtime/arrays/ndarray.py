"""Arrays with run-time shapes."""

from __future__ import annotations

import functools
import math
import struct
from typing import TYPE_CHECKING, Any, ClassVar, Final

from quadpy.core.completion import shows
from quadpy.core.dtypes import BY_NAME, Scalar, bf16
from quadpy.core.importing import import_late
from quadpy.core.public import made_by, public, require_switch
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.dense import DenseArray, shape_of
from quadpy.runtime.arrays.derivatives import DIFFERENTIATED, directions_in, require_floats
from quadpy.runtime.arrays.element_types import I_contra, T_co
from quadpy.runtime.arrays.foreign_device import DeviceView, cuda_array_interface, describe_device_array, is_on_gpu
from quadpy.runtime.arrays.foreign_host import describe_host_array, device_kind, is_wide, row_bytes, type_key
from quadpy.runtime.arrays.view import TypeKey
from quadpy.runtime.device.current import State, current_config
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.elements.numpy_types import STORAGE, Numbers
from quadpy.runtime.elements.types import DType, element_of
from quadpy.runtime.memory.allocators.block import Block, DeviceBuffer
from quadpy.runtime.memory.device_storage import Region, unset_buffer, zero_buffer
from quadpy.runtime.memory.host_storage import HostStorage, Storage
from quadpy.runtime.memory.placement import allocate, allocate_unset, storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device


@made_by("qp.ndarray(dtype, shape) makes one; qp.from_dlpack shares the memory of another array")
@shows(
    "copy_from", "device", "dtype", "element_shape", "fill", "from_numpy", "from_torch", "grad", "nbytes",
    "ndim", "shape", "size", "to_dlpack", "to_numpy", "to_torch",
)  # fmt: skip
class NDArray(DenseArray[T_co, I_contra]):
    """An array that kernels take as a parameter; made by ``qp.ndarray``.

    It owns its memory: on the host it stays valid across ``qp.init`` and ``qp.reset``, on a GPU until the device is
    closed.
    """

    # ``__dict__`` is for attributes of the user's own.
    # What a launch reads is computed once: ``type_key``, ``abi`` (address, then extents), ``pointer``, ``nbytes`` and
    # ``wide``, as in ``HostView``, and the ``device`` and ``block`` of the memory.  On a GPU, two attributes combine them
    # for fewer checks: ``form`` is one object for all arrays of a type on a device, and ``packed`` is ``abi`` as bytes,
    # with 32-bit extents; it is empty if the array is ``wide``.
    __slots__ = (
        "__dict__", "__weakref__", "_storage", "abi", "block", "device", "form", "grad", "nbytes", "packed", "pointer", "type_key", "wide",
    )  # fmt: skip

    _kind = "an ndarray"
    dual: NDArray | None = None
    __quadpy_array__: ClassVar[bool] = True  # a kernel that finds one in an argument takes it as a parameter
    writable: ClassVar[bool] = True
    device: Device | None
    block: Block | None
    type_key: TypeKey
    abi: tuple[int, ...]
    pointer: int
    nbytes: int
    wide: bool
    form: object
    packed: bytes
    grad: NDArray | None

    def __init__(
        self, dtype: Scalar, shape: tuple[int, ...], element: tuple[int, ...], storage: Storage,
        layout: _Shared | None = None,
    ) -> None:  # fmt: skip
        """An array over C-ordered memory, which ``storage`` keeps alive; ``layout`` is that of the type and shape."""
        layout = layout or array_layout(dtype.name, shape, element)
        self._begin(dtype, shape, element, layout, storage, storage.device)

    def _begin(
        self, dtype: Scalar, shape: tuple[int, ...], element: tuple[int, ...], layout: _Shared,
        memory: Storage | DeviceBuffer, device: Device | None,
    ) -> None:  # fmt: skip
        self._dtype, self._shape, self._element_shape = dtype, shape, element
        self._ndim, self._size = len(shape), layout.size
        self.nbytes, self.wide = layout.nbytes, layout.wide
        self._storage, self.device, self.grad = memory, device, None
        self.block, self.pointer = block, pointer = memory.block, memory.pointer
        known = None if block is None else block.described
        if known is not None and known[0] is layout:  # of an earlier array in this place
            _, self.abi, self.type_key, self.form, self.packed = known
            return
        self.abi = abi = (pointer, *shape)
        if device is None:
            self.type_key, self.form, self.packed = layout.on_host, None, b""
            return
        self.type_key = layout.unaligned if pointer % 16 else layout.aligned
        self.form = device.form(self.type_key, wide=layout.wide, lent=block is not None and block.lent)
        self.packed = b"" if layout.wide else layout.packing.pack(*abi)
        if type(memory) is DeviceBuffer and block is not None:
            block.described = layout, abi, self.type_key, self.form, self.packed

    def _memory(self) -> Storage:
        memory = self._storage
        return self._new_storage() if type(memory) is DeviceBuffer else memory  # type: ignore[return-value]  # one of the two

    def _new_storage(self) -> Storage:
        """The storage for the first access from the host: most arrays are only passed to kernels."""
        with _storage_lock:
            memory = self._storage
            if type(memory) is DeviceBuffer:
                assert self.device is not None
                layout = array_layout(self._dtype.name, self._shape, self._element_shape)
                memory = self._storage = storage_at(Region(self.device, memory.block, memory), layout.strided)
        return memory  # type: ignore[return-value]  # as above

    def _read_part(self, index: object) -> Any:
        return import_late("quadpy.runtime.arrays.buffer_view").part_of_array(self, index)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.dtype == bf16:  # NumPy would take its bits for integers
            raise AttributeError("NumPy has no bf16")
        if self.device is not None:
            raise AttributeError("the array is on a GPU: numpy.asarray(a) and a.to_numpy() copy it")
        storage = self._memory()
        interface: dict[str, Any] = storage.read(...).__array_interface__
        assert isinstance(storage, HostStorage)
        storage.mark_exported()
        return interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3, for an array on a GPU; later work on its stream comes after all work that wrote the array."""
        if self.device is None or self.dtype == bf16:
            raise AttributeError("the array is on the host" if self.device is None else "NumPy has no bf16")
        return cuda_array_interface(
            self.device, self.block, self.pointer, STORAGE[self.dtype], self.shape + self.element_shape
        )

    def __reduce__(self) -> tuple[Any, ...]:
        grad = None if self.grad is None else self.grad._memory().read(...)  # noqa: SLF001 - of the same class
        return _restored, (self.dtype.name, self.element_shape, self._memory().read(...), grad), self.__dict__ or None

    def _repr_html_(self) -> str:
        """For notebooks: type, shape and first values."""
        return import_late("quadpy.runtime.arrays.rich").html_of(self)  # type: ignore[no-any-return]  # a text

    def __repr__(self) -> str:
        return f"ndarray({self._element()}, shape={self.shape})"


@public
def ndarray(
    dtype: DType,
    shape: int | tuple[int, ...],
    needs_grad: bool = False,
    *,
    needs_dual: bool | int = False,
    stream: object = None,
) -> NDArray:
    """Create an array of zeros on the device that ``qp.init`` chose.

    Args:
        dtype: a scalar, vector, matrix or struct type.
        shape: an int or a tuple of ints.
        needs_grad: have a gradient, ``a.grad``: an array of the same type and shape.
        needs_dual: have a dual, ``a.dual``, for forward mode; a number is that of directions at once, the first axis of
            ``a.dual``.  With both, the gradient has a dual, too: ``a.grad.dual``.
        stream: the home of the memory, on which it is allocated and freed; by default the calling thread's stream.

    Raises:
        ArgumentError: ``dtype`` is not an element type, ``shape`` is not a shape, or there is no gradient of integers.
        OutOfDeviceMemory: the device has too little memory.
        StreamError: ``stream`` is not a stream of this device, or was destroyed.
    """
    element: tuple[int, ...]
    if type(dtype) is Scalar:
        scalar, element = dtype, ()
    elif getattr(dtype, "__quadpy_constructor__", None) == "struct":
        return dtype.ndarray(shape, needs_grad=needs_grad, needs_dual=needs_dual, stream=stream)  # type: ignore[union-attr, no-any-return]  # which ``hostmath`` has
    else:
        scalar, element = element_of(dtype)
    extents = (shape,) if type(shape) is int and 0 <= shape < 1 << 63 else shape_of(shape)
    made = _zeros(scalar, element, extents, stream)
    if needs_grad or needs_dual:
        require_switch(needs_grad, "needs_grad")
        directions = directions_in(needs_dual)
        require_floats(scalar, "needs_grad" if needs_grad else "needs_dual")
        if needs_grad:
            made.grad = _zeros(scalar, element, extents, stream)
        for each in (made, made.grad) if needs_dual else ():
            if each is not None:
                each.dual = _zeros(scalar, element, extents if directions is None else (directions, *extents), stream)
                DIFFERENTIATED.add(each)
        DIFFERENTIATED.add(made)
    return made


def _zeros(scalar: Scalar, element: tuple[int, ...], shape: tuple[int, ...], stream: object = None) -> NDArray:
    layout = array_layout(scalar.name, shape, element)
    device: Device | None = None
    memory: Storage | DeviceBuffer
    if State.device[0] == "cpu":
        memory = storage_at(allocate(layout.nbytes, stream), layout.strided)
    else:
        device = current_device()
        memory = zero_buffer(device, layout.nbytes, stream)
    made = _new_array(NDArray)  # a call of the class takes longer
    made._begin(scalar, shape, element, layout, memory, device)  # noqa: SLF001 - as above
    return made


def unset_array(scalar: Scalar, shape: tuple[int, ...], stream: object = None) -> NDArray:
    """Like ``ndarray``, for numbers that are written before they are read: they have any values."""
    layout = array_layout(scalar.name, shape, ())
    device: Device | None = None
    memory: Storage | DeviceBuffer
    if State.device[0] == "cpu":
        memory = storage_at(allocate_unset(layout.nbytes, stream), layout.strided)
    else:
        device = current_device()
        memory = unset_buffer(device, layout.nbytes, stream)
    made = _new_array(NDArray)
    made._begin(scalar, shape, (), layout, memory, device)  # noqa: SLF001 - as above
    return made


@public
def from_dlpack(array: Any, element: tuple[int, ...] = ()) -> NDArray:
    """An NDArray over the memory of ``array``, a writable, C-contiguous array of another library, without a copy.

    The last axes, which must match ``element``, become the components of vectors or matrices.  A GPU array must be on
    the current device and support DLPack or ``__cuda_array_interface__``.  The calling thread's stream waits for the
    library's work on it so far, and the array is kept alive until quadpy's work on it is complete.

    Raises:
        ArgumentError: the memory cannot be shared, or is not C-contiguous and writable.
        DeviceError: the array is on another GPU.
    """
    element = shape_of(element)
    there = current_config().arch != "cpu" and is_on_gpu(array)
    view = describe_device_array(array, current_device(), element) if there else describe_host_array(array, element)
    kind, scalar, _, _ = view.type_key
    if kind == "strided" or not view.writable:
        raise ArgumentError(
            "an NDArray needs memory that is C-contiguous and writable",
            hint="copy it: numpy.ascontiguousarray(a), or a.copy() for a read-only array",
        )
    dtype, shape = BY_NAME[scalar], view.abi[1:]
    if isinstance(view, DeviceView):
        region = Region(view.device, view.block, view.owner)
        return NDArray(dtype, shape, element, storage_at(region, array_layout(scalar, shape, element).strided))
    storage = HostStorage(view.owner.reshape(shape + element), view.pointer)
    storage.mark_exported()
    return NDArray(dtype, shape, element, storage)


class _Shared:
    """The data that all arrays of one type and shape share, in C order; cached, as programs create many such arrays.

    row        see ``row_bytes``
    packing    packs an address and 32-bit extents
    on_host    the type key on the host
    aligned    the type key on a GPU, if the memory begins at a multiple of 16 bytes
    unaligned  the same, if it does not
    """

    __slots__ = ("aligned", "nbytes", "on_host", "packing", "row", "size", "strided", "unaligned", "wide")

    def __init__(
        self, size: int, nbytes: int, row: int, wide: bool, packing: struct.Struct, strided: StridedLayout,
        on_host: TypeKey, aligned: TypeKey, unaligned: TypeKey,
    ) -> None:  # fmt: skip
        self.size, self.nbytes, self.row, self.wide, self.packing, self.strided = (
            size,
            nbytes,
            row,
            wide,
            packing,
            strided,
        )
        self.on_host, self.aligned, self.unaligned = on_host, aligned, unaligned

    def with_keys(self, on_host: TypeKey, aligned: TypeKey, unaligned: TypeKey) -> _Shared:
        """The same with other type keys."""
        shared = self.size, self.nbytes, self.row, self.wide, self.packing, self.strided
        return _Shared(*shared, on_host, aligned, unaligned)


@functools.lru_cache(maxsize=1024)
def array_layout(scalar: str, shape: tuple[int, ...], element: tuple[int, ...]) -> _Shared:
    dtype, full = BY_NAME[scalar], shape + element
    strides = tuple(math.prod(full[axis + 1 :]) * dtype.nbytes for axis in range(len(full)))
    nbytes = math.prod(full) * dtype.nbytes
    strided = StridedLayout(0, STORAGE[dtype], full, strides)
    row, packing = row_bytes(shape, math.prod(element) * dtype.nbytes), struct.Struct(f"=Q{len(shape)}i")
    keys = (type_key(kind, scalar, len(shape), element) for kind in ("nd", device_kind(0, row), device_kind(1, row)))
    return _Shared(math.prod(shape), nbytes, row, is_wide(shape, nbytes), packing, strided, *keys)


_new_array: Final = NDArray.__new__
_storage_lock: Final = new_lock()


def _restored(dtype: str, element: tuple[int, ...], stored: Numbers, grad: Numbers | None = None) -> NDArray:
    array = _zeros(BY_NAME[dtype], element, stored.shape[: stored.ndim - len(element)])
    array._memory().write(..., stored)  # noqa: SLF001 - pickle's half of __reduce__
    array.grad = None if grad is None else _restored(dtype, element, grad)
    return array
