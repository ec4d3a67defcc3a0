"""Fields of one component of the vectors or matrices of another field, in the same memory."""

from __future__ import annotations

import weakref
from typing import Final

import numpy as np

from quadpy.core.messages import shown
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_layout import Placement
from quadpy.runtime.device.locks import new_lock

_making: Final = new_lock()
"""One thread at a time makes a field of a component, because ``Field.free`` frees the one in ``components``."""


def component_of(field: Field, index: tuple[object, ...]) -> Field:
    """The field of the numbers at ``index`` in each element; the same object as long as the caller keeps it.

    Raises:
        ArgumentError: the elements have no such component.
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
    if not hasattr(field, "shape"):
        made.part_of = weakref.ref(field)
        field.parts[at] = made
        return made
    made.container = field.snode.outer
    made.span(field.shape, field.offset, _ComponentTree(made, field, at))
    for kind, theirs in field.derivatives.items():
        if hasattr(theirs, "shape"):
            made.derivatives[kind] = component_of(theirs, np.unravel_index(at, field.element_shape))
    return made


def give_shape(whole: Field) -> None:
    """Give the shape of ``whole``, which was placed, to the components that were asked for before."""
    if whole.in_parts:
        return
    if any(hasattr(part, "shape") for part in whole.parts.values()):
        raise ArgumentError(
            f"components of {whole!r} are placed already", hint="place its other components, and not the field"
        )
    for at, part in whole.parts.items():
        part.span(whole.shape, whole.offset, _ComponentTree(part, whole, at))


def derivative_of(part: Field, kind: str) -> Field:
    """The same component of the derivative of the field that ``part`` is a component of."""
    whole = part.part_of() if part.part_of is not None else None
    if whole is None:  # nothing but its parts is left
        return Field(part.dtype, (), f"{part.name}.{kind}" if part.name else "", kind)
    at = next(at for at, each in whole.parts.items() if each is part)
    return component_of(whole.declare(kind), np.unravel_index(at, whole.element_shape))


def settle(placed: Field) -> None:
    """``placed`` is a component that was placed by itself, or has components without a shape: the others follow."""
    for part in placed.parts.values():
        part.container = placed.container
    whole = placed.part_of() if placed.part_of is not None else None
    count = 0 if whole is None else int(np.prod(whole.element_shape))
    if whole is None or len(whole.parts) < count or not all(hasattr(part, "shape") for part in whole.parts.values()):
        return
    first, *others = (part for _, part in sorted(whole.parts.items()))
    for part in others:
        if _grid(part) != _grid(first):
            raise ArgumentError(
                f"the components of {whole!r} do not fit together: {first!r} has offset {first.offset} in {first.snode.outer}, and "
                f"{part!r} has offset {part.offset} in {part.snode.outer}",
                hint="place them with one shape, offset and order of blocks, below the same sparse nodes",
            )
        first.snode.outer.tree.join(part.snode.outer.tree)
    whole.container = first.container
    whole.span(first.shape, first.offset, PartsTree(whole))


def _grid(part: Field) -> tuple[object, ...]:
    """What the components of one field have in common."""
    assert part.container is not None
    return part.shape, part.offset, [*part.container.cells.items()], [*map(id, part.sparse_nodes)]


class PartsTree:
    """The memory of a field whose components were placed one by one: that of the trees in which they are."""

    def __init__(self, whole: Field) -> None:
        self._whole, self._lock = weakref.ref(whole), new_lock()

    def bind(self) -> None:
        whole = self._whole()
        with self._lock:
            if whole is not None and not whole.placed:
                parts = tuple(part.placement for part in whole.leaves())
                memory, _, strides, blocks, _ = parts[0]
                whole.put(Placement(memory, min(part.start for part in parts), strides, blocks, parts))


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
