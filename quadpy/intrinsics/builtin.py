"""The objects that users name: ``qp.sin``, ``qp.simt.block.sync``.  Their meaning in a kernel is that of their row."""

from __future__ import annotations

from typing import Any

from quadpy.errors import KernelSyntaxError
from quadpy.intrinsics.rows import Row

__all__ = ["Builtin"]


class Builtin:
    """A function of the kernel language."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.__name__ = self.__qualname__ = row.name
        self.__module__ = "quadpy"
        self.__doc__ = f"{row.signature}\n\n{row.doc}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise KernelSyntaxError(
            f"{self.__name__} exists inside kernels only", hint="call it from a @qp.kernel or a @qp.func function"
        )

    def __repr__(self) -> str:
        return f"<quadpy builtin {self.__name__}>"

    def __quadpy_fingerprint__(self) -> str:
        return f"builtin:{self.__name__}"
