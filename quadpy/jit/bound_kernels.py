"""The kernels that are methods, bound to their objects."""

from __future__ import annotations

from typing import Any, Final


class _BoundKernels(dict[Any, Any]):
    """The kernels of one object, by the kernel of its class.  It is in the object, so that both end together."""

    __slots__ = ("owner",)

    def __init__(self, owner: object = None) -> None:
        self.owner = owner

    def __missing__(self, kernel: Any) -> Any:
        return self.setdefault(kernel, kernel.bound_class(kernel, self.owner))

    def __reduce__(self) -> tuple[Any, ...]:  # a copy of the object has its own kernels
        return _BoundKernels, ()

    def __deepcopy__(self, memo: object) -> _BoundKernels:
        return _BoundKernels()


KERNELS: Final = "_quadpy_kernels"
"""The attribute that holds an object's bound kernels."""

_WITHOUT_DICT: Final[dict[int, _BoundKernels]] = {}
"""Those of objects with slots, by their ids: such objects live as long as the process."""


def kernels_of(instance: object) -> _BoundKernels:
    """Those of ``instance``, made on demand."""
    made = _BoundKernels(instance)
    try:
        instance.__dict__[KERNELS] = made
    except (AttributeError, TypeError):  # slots; a class
        return _WITHOUT_DICT.setdefault(id(instance), made)
    return made
