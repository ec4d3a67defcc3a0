"""What a launch knows about an array of any library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from quadpy.runtime.memory.allocators.block import Block
    from quadpy.runtime.streams.owned import OwningDevice

TypeKey: TypeAlias = tuple[str, str, int, tuple[int, ...]]
"""``(kind, scalar name, ndim, element shape)``; there is one object per type, so ``is`` compares types.

The kind is ``nd`` or ``strided``, for an ndarray in GPU memory one of DEVICE_KINDS, or DISTRIBUTED with a digit
for each axis: 1 where there is one element more than cells.
"""


class ArrayMemory(Protocol):
    """The memory of an array in a launch: of an NDArray, of a field, or of another library's array.

    pointer, nbytes  the range of addresses that it touches
    device           the GPU that has the memory; None for the host
    block            its allocation there; None for the host, and for an array of 0 bytes
    """

    @property
    def pointer(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> OwningDevice | None: ...
    @property
    def block(self) -> Block | None: ...


class ArrayView(ArrayMemory, Protocol):
    """An array among the arguments of a launch.

    type_key  kind, scalar type, number of axes and shape of an element; equal types have the identical object
    abi       address of the first element, extents, and the strides of a strided array
    wide      whether indices need 64 bits
    writable  whether a kernel may write to it
    """

    @property
    def type_key(self) -> TypeKey: ...
    @property
    def abi(self) -> tuple[int, ...]: ...
    @property
    def wide(self) -> bool: ...
    @property
    def writable(self) -> bool: ...
