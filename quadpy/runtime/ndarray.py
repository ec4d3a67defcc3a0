"""Arrays with run-time shapes.  Owns: NDArray, ndarray, from_dlpack.  Imports: leaves, hostmath, the runtime's memory."""

from __future__ import annotations

from typing import Any, ClassVar

from quadpy.dtypes import BY_NAME, Scalar, bf16
from quadpy.errors import ArgumentError
from quadpy.hostmath import DType, element_of, type_of
from quadpy.runtime.dense import DenseArray, product, shape_of
from quadpy.runtime.interop import TypeKey, describe_host_array, is_wide, type_key
from quadpy.runtime.memory import HOST, Buffer
from quadpy.runtime.storage import STORAGE, Numbers

__all__ = ["NDArray", "from_dlpack", "ndarray"]


class NDArray(DenseArray):
    """An array that kernels take as a parameter; made by ``qp.ndarray``.

    It owns its memory, so it stays valid across ``qp.init`` and ``qp.reset``.  What a launch reads is laid
    down here once: ``type_key``, ``abi`` (address, then extents), ``pointer``, ``nbytes`` and ``wide``, as in
    ``interop.HostView``.
    """

    __slots__ = ("__weakref__", "_stored", "abi", "nbytes", "owner", "pointer", "type_key", "wide")

    writable: ClassVar[bool] = True
    owner: Buffer | Numbers
    type_key: TypeKey
    abi: tuple[int, ...]
    pointer: int
    nbytes: int
    wide: bool

    def __init__(
        self, dtype: Scalar, element: tuple[int, ...], stored: Numbers, *, pointer: int, owner: Buffer | Numbers
    ) -> None:
        """Over memory that exists: ``stored`` shows it to the host, ``owner`` keeps it alive."""
        shape = stored.shape[: stored.ndim - len(element)]
        self._describe(dtype, shape, element)
        self._stored, self.owner, self.pointer, self.nbytes = stored, owner, pointer, stored.nbytes
        self.type_key = type_key("nd", dtype.name, self.ndim, element)
        self.abi = (pointer, *shape)
        self.wide = is_wide(shape, self.nbytes)

    def _memory(self) -> Numbers:
        return self._stored

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.dtype == bf16:  # its bits would pass for integers
            raise AttributeError("NumPy has no bf16")
        interface: dict[str, Any] = self._stored.__array_interface__
        return interface

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.dtype.name, self.element_shape, self._stored)

    def __repr__(self) -> str:
        return f"ndarray({self._element()}, shape={self.shape})"


def ndarray(dtype: DType, shape: int | tuple[int, ...]) -> NDArray:
    """An array of zeros; ``dtype`` is a scalar, vector or matrix type, ``shape`` an int or a tuple of them.

    Raises:
        ArgumentError: ``dtype`` is no type of elements, or ``shape`` no shape.
        OutOfDeviceMemory: the memory is not there.
    """
    scalar, element = element_of(dtype)
    full = shape_of(shape) + element
    buffer = HOST.allocate(product(full) * scalar.nbytes)
    stored = buffer.bytes.view(STORAGE[scalar]).reshape(full)
    return NDArray(scalar, element, stored, pointer=buffer.pointer, owner=buffer)


def from_dlpack(array: Any, element: tuple[int, ...] = ()) -> NDArray:
    """An NDArray over the memory of a writable, C-contiguous array of another library, without a copy.

    The last axes, which must be those of ``element``, become a vector's or matrix's components.
    """
    view = describe_host_array(array, element)
    kind, scalar, _, _ = view.type_key
    if kind != "nd" or not view.writable:
        raise ArgumentError(
            "an NDArray needs memory that is C-contiguous and writable",
            hint="copy it: numpy.ascontiguousarray(a), or a.copy() of a read-only array",
        )
    return NDArray(BY_NAME[scalar], element, view.owner, pointer=view.pointer, owner=view.owner)


def _restored(dtype: str, element: tuple[int, ...], stored: Numbers) -> NDArray:
    array = ndarray(type_of(BY_NAME[dtype], element), stored.shape[: stored.ndim - len(element)])
    array._memory()[...] = stored  # noqa: SLF001 - pickle's half of __reduce__
    return array
