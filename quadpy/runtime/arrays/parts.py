"""Parts of arrays on the host: what slices and an Ellipsis among indices mean."""

from __future__ import annotations

import operator
from typing import NamedTuple

from quadpy.core.messages import shown
from quadpy.errors import ArgumentError, BoundsError


class SlicedPart(NamedTuple):
    """A part of an array: a position or a slice for each axis, and the order of what remains.

    The slices have bounds from 0 to the extent, and positive steps; ``turned`` indexes the part, and reverses the axes
    whose slices had negative ones.
    """

    where: tuple[int | slice, ...]
    turned: tuple[slice, ...]

    def shape(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the part of an array with these extents."""
        pairs = zip(self.where, extents, strict=True)
        return tuple(len(range(*item.indices(n))) for item, n in pairs if isinstance(item, slice))


def has_slices(index: object) -> bool:
    """Whether ``index`` means a part of an array, and not one element."""
    if isinstance(index, tuple):
        return any(isinstance(item, slice) or item is ... for item in index)
    return isinstance(index, slice) or index is ...


def part_of(index: object, shape: tuple[int, ...], origin: tuple[int, ...], array: object) -> SlicedPart:
    """The part of ``array`` that ``index`` means; indices begin at ``origin``, and count from the end if that is 0.

    Raises:
        ArgumentError: ``index`` is not made of integers, slices and an Ellipsis, or is too short or too long.
        BoundsError: an integer is outside the array.
    """
    where: list[int | slice] = []
    turned: list[slice] = []
    for item, extent, start in zip(_spread(index, len(shape), array), shape, origin, strict=True):
        if isinstance(item, slice) and item.step == 0:
            raise ArgumentError("the step of a slice must not be 0")
        try:
            found = _slice_of(item, extent, start, any(origin)) if isinstance(item, slice) else operator.index(item)  # type: ignore[arg-type]  # it raises
        except TypeError:
            raise ArgumentError(
                f"{shown(item)} is not an index", hint="for lists of indices and masks, use numpy.asarray(a)"
            ) from None
        if isinstance(found, range):
            forward = found if found.step > 0 else found[::-1]
            where.append(slice(forward.start, forward.stop, forward.step))
            turned.append(slice(None, None, 1 if found.step > 0 else -1))
        else:
            where.append(_position(found, extent, start, any(origin), array))
    return SlicedPart(tuple(where), tuple(turned))


def _spread(index: object, ndim: int, array: object) -> tuple[object, ...]:
    """An item for each axis: an Ellipsis stands for all axes that the other items leave."""
    items = index if isinstance(index, tuple) else (index,)
    gaps = [number for number, item in enumerate(items) if item is ...]
    if len(gaps) > 1:
        raise ArgumentError(f"the index {shown(index)} has more than one Ellipsis")
    if gaps and len(items) - 1 <= ndim:
        (gap,) = gaps
        items = (*items[:gap], *(slice(None),) * (ndim - len(items) + 1), *items[gap + 1 :])
    if len(items) != ndim:
        raise ArgumentError(
            f"the index {shown(index)} has {len(items)} items, but {array!r} takes {ndim}",
            hint="an Ellipsis replaces all other axes: a[0, ...]",
        )
    return items


def _slice_of(item: slice, extent: int, origin: int, has_offset: bool) -> range:
    """The positions of a slice.  Ends outside the array are moved to its ends, as everywhere in Python."""
    if not has_offset:
        return range(*item.indices(extent))
    step = 1 if item.step is None else operator.index(item.step)
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    ends = (low, high) if step > 0 else (high, low)
    start, stop = (
        end if given is None else min(max(operator.index(given) - origin, low), high)
        for given, end in zip((item.start, item.stop), ends, strict=True)
    )
    return range(start, stop, step)


def _position(index: int, extent: int, origin: int, has_offset: bool, array: object) -> int:
    at = index - origin
    if not has_offset and -extent <= at < 0:
        at += extent
    if not 0 <= at < extent:
        tail = f", whose indices start at {origin}" if has_offset else ""
        raise BoundsError(f"index {shown(index)} is outside {array!r}{tail}")
    return at
