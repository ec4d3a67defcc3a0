"""What type checkers know about an array: the type of its elements, and of an index of one of them."""

from __future__ import annotations

from types import GenericAlias
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import EllipsisType
    from typing import Generic, TypeAlias

    from typing_extensions import TypeVar, Unpack

    T_co = TypeVar("T_co", covariant=True, default=Any)
    I_contra = TypeVar("I_contra", contravariant=True, default=Any)

    Slice: TypeAlias = slice | EllipsisType
    PartIndex: TypeAlias = Slice | tuple[Slice, Unpack[tuple[Any, ...]]] | tuple[Any, Slice, Unpack[tuple[Any, ...]]]
    """An index of a part of an array, as far as the type shows it."""

    class OfElements(Generic[T_co, I_contra]): ...

else:
    I_contra = PartIndex = T_co = None

    class OfElements:
        """``qp.Field[qp.f32]`` and ``qp.NDArray[qp.f32, 2]`` are annotations; in kernels, they declare arrays."""

        __slots__ = ()
        __class_getitem__ = classmethod(GenericAlias)
