"""Fields of one component of the vectors or matrices of another field, in the same memory."""

from __future__ import annotations

import weakref
from typing import Final

import numpy as np

from quadpy.errors import ArgumentError
from quadpy.messages import shown
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_layout import Placement
from quadpy.runtime.device.locks import new_lock

__all__ = ["component_of"]

_making: Final = new_lock()
"""One thread at a time makes a field of a component, because ``Field.free`` frees the one in ``components``."""


def component_of(field: Field, index: tuple[object, ...]) -> Field:
    """The field of the numbers at ``index`` in each element; the same object as long as the caller keeps it.

    Raises:
        ArgumentError: the elements have no such component, or the field has no shape yet.
    """
    shape = field.element_shape
    fits = len(index) == len(shape) > 0 and all(
        isinstance(i, (int, np.integer)) and 0 <= i < n for i, n in zip(index, shape, strict=True)
    )
    if not fits:
        kind = (
            {1: f"vectors of {shape[0]}", 2: f"matrices of {shape[0]} by {shape[-1]}"}[len(shape)]
            if shape
            else "numbers"
        )
        raise ArgumentError(f"{shown(index)} is not a component of {field!r}, whose elements are {kind}")
    if not hasattr(field, "shape"):
        raise ArgumentError(f"{field!r} has no shape yet", hint="place it first")
    at = int(np.ravel_multi_index(tuple(int(i) for i in index if isinstance(i, (int, np.integer))), shape))
    with _making:
        found = field.components.get(at)
        if found is None:
            found = field.components[at] = _made(field, at, ", ".join(map(str, index)))
    return found


def _made(field: Field, at: int, index: str) -> Field:
    made = Field(field.dtype, (), f"{field.name}[{index}]" if field.name else "", field.derivative)
    made.is_component = True
    made.made = field.made
    made.container = field.snode.outer
    made.span(field.shape, field.offset, _ComponentTree(made, field, at))
    for kind, theirs in field.derivatives.items():
        if hasattr(theirs, "shape"):
            made.derivatives[kind] = component_of(theirs, np.unravel_index(at, field.element_shape))
    return made


class _ComponentTree:
    """The memory of a component: that of the whole field, which this keeps."""

    def __init__(self, component: Field, whole: Field, at: int) -> None:
        self._component, self._whole, self._at = weakref.ref(component), whole, at
        self._lock = new_lock()

    def bind(self) -> None:
        component, found = self._component(), self._whole.placement
        with self._lock:
            if component is not None and not component.placed:
                start = found.start + self._at * found.strides[-1] * component.dtype.nbytes
                component.put(Placement(found.memory, start, found.strides, found.blocks))
