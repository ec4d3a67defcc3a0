"""Functions that generated code calls: output, failed checks, and arrays in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from quadpy.core.dtypes import Scalar
from quadpy.core.faults import FIRST_VALUE, Site
from quadpy.core.output import Message
from quadpy.errors import KernelFault
from quadpy.interpreter.numbers import MEMORY_TYPES
from quadpy.ir.types import Array, Member

OUTSIDE: Final = 1 << 62
"""Subtracted from negative indices, which are then outside every array."""


Show: TypeAlias = Callable[[str, bool], None]
"""Prints a text, and flushes the output if the second argument says so."""


class OutputError(Exception):
    """Its cause is the exception of the user's output stream."""


class Prints:
    """Output of kernels that is shown at once: iterations run in their order."""

    def __init__(self, show: Show) -> None:
        self._show = show

    def show(self, text: str, flush: bool) -> None:
        try:
            self._show(text, flush)
        except Exception as error:
            raise OutputError from error

    def add(self, message: Message, words: Sequence[Any]) -> None:
        values = [int(word) for word in words]
        self.show(message.filled(values[1:] if message.loop else values), message.flush)


class OrderedPrints:
    """Output of iterations that wait for each other; it is shown in the order of the iterations."""

    def __init__(self, prints: Prints) -> None:
        self._prints = prints
        self._lines: list[tuple[int, str, bool]] = []

    def add(self, message: Message, words: Sequence[Any]) -> None:
        values = [int(word) for word in words]
        self._lines.append((values[0], message.filled(values[1:]), message.flush))

    def show(self) -> None:
        for _, text, flush in sorted(self._lines, key=lambda line: line[0]):
            self._prints.show(text, flush)


class Faults:
    """The checks of a kernel under ``debug=True``."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self._sites = sites

    def of(self, number: int, words: Sequence[Any]) -> KernelFault:
        """The exception for check ``number``."""
        return self._sites[number].fault([0] * FIRST_VALUE + [int(word) for word in words])


class _Address:
    """Memory at an address, as NumPy asks for it."""

    def __init__(self, pointer: int, type: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.__array_interface__ = {
            "version": 3, "data": (pointer, False), "typestr": type.str, "shape": shape, "strides": strides,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of an array of type ``array``: the address of its first element, its extents, its run-time strides."""

    array: Array
    pointer: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]

    def _at(self, offset: int, t: Scalar, shape: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray[Any, Any]:
        kind = MEMORY_TYPES[t]
        if 0 in shape:
            return np.empty(shape, kind)
        return np.asarray(_Address(self.pointer + offset, kind, shape, steps))

    def _steps(self, member: Member) -> tuple[int, ...]:
        """Bytes from element to element along each axis."""
        array = self.array
        if member.axes is not None:
            return member.axes
        if array.strided:
            return tuple(stride * array.layout.unit for stride in self.strides)
        return _row_major(self.extents, array.layout.size)

    def parts(self) -> list[np.ndarray[Any, Any]]:
        """For each scalar of an element, the array of these scalars."""
        made = []
        for component in range(self.array.components):
            member, offset = self.array.layout.at(component)
            made.append(self._at(offset, member.scalar, self.extents, self._steps(member)))
        return made

    def whole(self) -> object:
        """The array as debuggers show it: of vectors with the axes of an element last; of structs an array for each member."""
        made = []
        for member in self.array.layout.members:
            steps = (*self._steps(member), *_row_major(member.shape, member.stride))
            made.append(self._at(member.offset, member.scalar, (*self.extents, *member.shape), steps))
        return made[0] if len(made) == 1 else tuple(made)


def _row_major(shape: Sequence[int], size: int) -> tuple[int, ...]:
    """The strides of an array whose elements, of ``size`` bytes, are in C order."""
    steps = [size]
    for extent in shape[:0:-1]:
        steps.append(steps[-1] * extent)
    return tuple(steps[::-1]) if shape else ()


def shared_array(shape: tuple[int, ...], element: tuple[int, ...], type: np.dtype[Any]) -> list[np.ndarray[Any, Any]]:
    """A block's own array and, for each scalar of an element, the array of these scalars."""
    whole = np.zeros((*shape, *element), type)
    scalars = whole.reshape(*shape, -1)
    return [whole, *(scalars[..., k] for k in range(scalars.shape[-1]))]


def has_element(array: np.ndarray[Any, Any], index: Sequence[Any]) -> bool:
    """Whether the index is in the range of each axis."""
    return all(0 <= i < n for i, n in zip(index, array.shape, strict=True))


def ticks() -> np.int64:
    """The value of ``qp.clock_counter`` here: nanoseconds."""
    return np.int64(time.perf_counter_ns())


def address(array: np.ndarray[Any, Any], index: tuple[int, ...]) -> np.uint64:
    """The address of an element, inside the array or not."""
    steps = zip(array.strides, index, strict=True)
    return np.uint64(array.ctypes.data + sum(stride * int(at) for stride, at in steps))
