"""Footprints as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.footprints.find import footprints_of
from quadpy.ir.footprints.model import Footprint, Indices
from quadpy.ir.index.numbers import Given, Number, operands_of
from quadpy.ir.index.polynomials import atom_poly
from quadpy.ir.types import Array

_VERBS: Final = {ir.Access.READ: "read", ir.Access.WRITE: "write", ir.Access.ATOMIC: "update"}
_WIDE: Final = 1 << 30
"""Bounds beyond this say only that an index is an index."""
_MOST_WIDE: Final = 60
"""Characters before the lines, where these are in one column."""


def print_footprints(kernel: ir.Kernel, names: Mapping[str, str]) -> str:
    """The footprints of each task of ``kernel``; ``names`` has the readable names of fields."""
    lines = [f"kernel {kernel.name}"]
    for task in kernel.tasks:
        lines.append(f"  task {task.name} {'serial' if isinstance(task, ir.SerialTask) else 'parallel'}")
        lines += _lines(kernel, task, names)
    return "\n".join(lines) + "\n"


def _lines(kernel: ir.Kernel, task: ir.Task, names: Mapping[str, str]) -> Iterator[str]:
    arrays = kernel.array_types
    rows: dict[str, Span | None] = {}
    for each in sorted(footprints_of(task), key=lambda each: each.array):
        rows.setdefault(footprint_text(each, arrays[each.array], names), each.location)
    width = min(max(map(len, rows), default=0), _MOST_WIDE)
    return (f"    {text.ljust(width)}  {_place(place, task.span)}" for text, place in rows.items())


def _place(location: Span | None, near: Span) -> str:
    if location is None:
        return ""
    return f"line {location.line}" if location.file == near.file else str(location)


def footprint_text(footprint: Footprint, array: Array, names: Mapping[str, str]) -> str:
    """Such as ``reads x[1 : n]``, ``reads some of x[:]`` or ``may write x[0]``."""
    verb = _VERBS[footprint.access]
    what = f"may {verb}" if not footprint.always else f"{verb}s" if footprint.exact else f"{verb}s some of"
    operation = f" by {footprint.operation.value}" if footprint.operation else ""
    index = _index(footprint, array, names)
    return f"{what} {names.get(footprint.array, footprint.array)}{index}{_parts(footprint, array)}{operation}"


def _parts(footprint: Footprint, array: Array) -> str:
    """The scalars of an element, unless these are all."""
    parts = footprint.components
    if parts is None or len(parts) == array.components:
        return ""
    return f".({', '.join(map(str, parts))})" if len(parts) > 1 else f".{parts[0]}"


def _index(footprint: Footprint, array: Array, names: Mapping[str, str]) -> str:
    if footprint.box is None:
        return f"[{', '.join(':' * array.ndim)}]"
    extents = array.shape or [None] * array.ndim
    axes = (
        _slice(axis, atom_poly(Given(footprint.array, "extent", number_)) if extent is None else extent)
        for number_, (axis, extent) in enumerate(zip(footprint.box.axes, extents, strict=True))
    )
    return f"[{', '.join(axes)}]"


def _slice(axis: Indices, extent: Number) -> str:
    """A slice as Python writes it: ``low : stop : step``, ``:`` for the whole axis, or a single index."""
    if axis.low in operands_of("min", axis.last):  # the smallest is at most the largest, if there is any
        return str(axis.low)
    low = "" if axis.low == 0 or _is_wide(axis.low) else f"{axis.low} "
    stop = axis.last + 1
    last = "" if stop == extent or _is_wide(axis.last) else f" {stop}"
    step = "" if axis.step == 1 else f" : {axis.step}"
    return f"{low or ('0 ' if last else '')}:{last}{step}"


def _is_wide(bound: Number) -> bool:
    return isinstance(bound, int) and abs(bound) >= _WIDE
