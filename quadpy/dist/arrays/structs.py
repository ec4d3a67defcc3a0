"""Arrays of a grid whose elements are structs, in the memory of C's; halos move them as bytes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quadpy.core.completion import shows
from quadpy.core.dtypes import u8
from quadpy.core.public import made_by
from quadpy.dist.arrays.array import DistributedArray
from quadpy.dist.division import Division
from quadpy.dist.lattice import Lattice
from quadpy.errors import ArgumentError
from quadpy.hostmath.struct_access import BYTE, StructMember, from_stored
from quadpy.hostmath.struct_ndarray import key_of_record
from quadpy.hostmath.struct_types import StructType
from quadpy.runtime.elements.numpy_types import address_of, numpy_dtype
from quadpy.runtime.memory.host_storage import HostStorage

if TYPE_CHECKING:
    from typing_extensions import Self


@made_by("the ndarray(dtype) of a qp.dist.Grid makes one")
@shows()
class DistributedStructs(DistributedArray):
    """An array of structs; made by ``grid.ndarray`` of a struct type.

    From the host, arrays are structured NumPy arrays, and an element is a struct.  ``type`` is the struct type; ``dtype`` and
    ``element_shape`` are those of the bytes.
    """

    __slots__ = ("type",)

    def __init__(self, grid: Division, lattice: Lattice, type: StructType) -> None:
        self.type = type
        super().__init__(grid, lattice, u8, (type.record().nbytes,))

    @property
    def _key(self) -> tuple[str, tuple[int, ...]]:
        return key_of_record(self.type.record()), ()

    def _like(self) -> Self:
        return type(self)(self.grid, self.lattice, self.type)

    @property
    def _target(self) -> StructMember:
        return StructMember(self.type, self.type.record(), self.local.shape, self.local._memory())  # noqa: SLF001 - as ``transport.parts``

    def _element(self, numbers: npt.NDArray[Any], cell: tuple[int, ...]) -> Any:
        def store(path: tuple[str, ...], value: object) -> None:
            self._agree(f"setting {'.'.join(path)} of element {cell}")
            self._used()
            if self._owns(cell):
                owner: Any = self._target
                for name in path:
                    owner = owner.get_member_field(name)
                owner[self._at(cell)] = value
            self.halo_state.clear()

        return from_stored(self.type, self._shown(numbers), store)

    def copy_from(self, other: object) -> None:
        """Copy all elements of ``other``, an array of the same structs on the same cells or faces of this grid."""
        if isinstance(other, DistributedArray) and other.type_key != self.type_key:
            raise ArgumentError(f"copy_from of {self!r} takes an array like it, not {other!r}")
        super().copy_from(other)

    def _shown(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.ascontiguousarray(numbers).view(numpy_dtype(self.type.record()))[..., 0]

    def _numbers(self, values: Any) -> npt.NDArray[Any]:
        """The bytes of a structured array, or of a dict with an array for each member."""
        first = next(iter(values.values())) if isinstance(values, dict) and values else values
        shape = np.shape(first)[: self.ndim]
        raw = np.zeros((*shape, math.prod(self.element_shape)), BYTE)
        host = StructMember(self.type, self.type.record(), shape, HostStorage(raw, address_of(raw)))
        host.from_numpy(values)
        return raw

    def __repr__(self) -> str:
        return f"distributed {self._kind}({self.type!r}, shape={self.shape})"
