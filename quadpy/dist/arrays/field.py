"""Fields with an element for each cell of a grid."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from quadpy.core.completion import shows
from quadpy.core.public import made_by
from quadpy.dist.arrays.array import DistributedArray
from quadpy.runtime.arrays.field_layout import StoredMember
from quadpy.runtime.memory.host_storage import Storage

if TYPE_CHECKING:
    from typing_extensions import Self


@made_by("the field(dtype) of a qp.dist.Grid makes one")
@shows("name")
class DistributedField(DistributedArray):
    """A field with an element for each cell of a grid; made by ``grid.field``.  Kernels use it by name, without a parameter."""

    __slots__ = ("name",)

    __quadpy_array__: ClassVar[bool] = False
    __quadpy_field__: ClassVar[bool] = True
    __quadpy_distributed__: ClassVar[bool] = True
    is_member: ClassVar[bool] = False
    is_component: ClassVar[bool] = False
    blocks: ClassVar[tuple[()]] = ()
    _kind: ClassVar[str] = "field"

    name: str

    def __copy__(self) -> Self:
        made = super().__copy__()
        made.name = self.name
        return made

    @property
    def offset(self) -> tuple[int, ...]:
        return (0,) * self.ndim

    def leaves(self) -> tuple[DistributedField, ...]:
        """Like ``Field.leaves``."""
        return (self,)

    @property
    def storage(self) -> Storage:
        """The memory of this rank's part."""
        return self.local._memory()  # noqa: SLF001 - as ``transport.parts``

    def stored_members(self) -> list[StoredMember]:
        """As if one rank had the whole field; ``dist.localise`` makes the code that runs from it."""
        item, full = self.dtype.nbytes, self.shape + self.element_shape
        axes = tuple(math.prod(full[axis + 1 :]) * item for axis in range(self.ndim))
        return [StoredMember(self.dtype, item, self.element_shape, 0, axes)]

    def __quadpy_fingerprint__(self) -> str:
        return f"distributed field:{self.dtype}:{self.element_shape}:{self.shape}"
