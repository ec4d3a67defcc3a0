"""How objects that are not data behave under ``copy`` and ``pickle``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn

from quadpy.errors import QuadpyError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ByName", "OneProcess"]


class OneProcess:
    """Belongs to a device: its handle or state has one owner, so a copy is the same object, and it cannot be pickled."""

    __slots__ = ()

    error: ClassVar[type[QuadpyError]]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise self.error(f"{self!r} cannot be pickled", hint="it belongs to this process: create one where it is used")


class ByName:
    """A decorated function: copied and pickled as functions are, by its qualified name in a module."""

    def __reduce__(self) -> str:
        return str(getattr(self, "__qualname__", repr(self)))
