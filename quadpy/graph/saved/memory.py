"""The arrays of a graph that is saved: which memory its users bind, what belongs to it, and what is constant."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from quadpy.core.dtypes import BY_NAME
from quadpy.core.light import dataclass
from quadpy.core.narrow import MOST_NARROW_BYTES
from quadpy.core.public import call_site
from quadpy.errors import ArgumentError
from quadpy.graph.model.arguments import sequence_of
from quadpy.graph.model.extents import in_order, memory_text, overlap
from quadpy.graph.model.order import MemoryRange
from quadpy.graph.saved.container import name_of, require_room
from quadpy.hostmath.struct_ndarray import record_of_key
from quadpy.jit.array_views import view_of
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import DEFAULT_STREAM
from quadpy.runtime.elements.numpy_types import address_of

ALIGNED: Final = 16
"""Code for GPUs may load as many bytes at once, from arrays that begin at a multiple of it."""


@dataclass(slots=True)
class SavedArray:
    """An array of the file, and where it is in this process.

    fixed   the axes whose extents must stay as they are
    letters what the graph does with it
    """

    name: str
    memory: str
    start: int
    nbytes: int
    type: str = "u8"
    element: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    fixed: set[int] = field(default_factory=set)
    letters: str = ""
    aligned: int = 1
    narrow: bool = False

    @property
    def item(self) -> int:
        """The bytes of an element."""
        return self.nbytes // (math.prod(self.shape) or 1)

    def is_whole(self, start: int, nbytes: int) -> bool:
        """Whether these are all of its bytes."""
        return (start, nbytes) == (self.start, self.nbytes)

    def touch(self, letters: str) -> None:
        """Note what a node does with it."""
        self.letters = "".join(letter for letter in "rw" if letter in self.letters + letters)

    def fix(self, first: int = 0) -> None:
        """Let its extents from axis ``first`` on stay as they are: the graph uses a part of it, or as other memory."""
        self.fixed.update(range(first, len(self.shape)))

    def free(self) -> Iterator[int]:
        """The axes whose extents may change."""
        return (k for k in range(len(self.shape)) if self.memory == "bound" and k not in self.fixed)


class SavedMemory:
    """The arrays of a graph on ``device`` by their addresses; ``owned`` is the memory that belongs to the graph.

    Raises:
        ArgumentError: an array that cannot be bound, or two that share memory.
    """

    def __init__(
        self, device: Device, bind: Mapping[str, Any], constants: Iterable[Any], internal: Iterable[Any],
        owned: Iterable[MemoryRange],
    ) -> None:  # fmt: skip
        self.device = device
        self.arrays: list[SavedArray] = []
        self._data: dict[int, bytes | None] = {}  # by the number of the array
        if not isinstance(bind, Mapping):
            raise ArgumentError(f"bind= takes a dict of arrays by name, not {type(bind).__name__}", call_site())
        for name, array in bind.items():
            if not str(name).isidentifier() or name in _TAKEN:
                raise ArgumentError(
                    f"{name!r} cannot be the name of a bound array: run takes it as a keyword", call_site()
                )
            self._add(_described(name, "bound", array))
        for kind, given in (("constant", constants), ("internal", internal)):
            for array in sequence_of(given, f"{kind}s" if kind == "constant" else kind, "arrays", "pass a list"):
                self._add(_described(f"{kind}{len(self.arrays)}", kind, array), kept=True)
        for start, nbytes in owned:
            if self.find(start, nbytes) is None:
                self.own(start, nbytes, kept=False)

    def _add(self, array: SavedArray, *, kept: bool = False) -> SavedArray:
        for other in self.arrays:
            if overlap((other.start, other.nbytes), (array.start, array.nbytes)):
                raise ArgumentError(
                    f"the arrays {other.name!r} and {array.name!r} of the saved graph share memory", call_site(),
                    hint="name only the larger one of the two: kernels may still take parts of it",
                )  # fmt: skip
        if kept:
            self._data[len(self.arrays)] = self._read(array)
        self.arrays.append(array)
        return array

    def own(self, start: int, nbytes: int, *, kept: bool) -> SavedArray:
        """An array of bytes that the graph owns; with ``kept``, it begins with the values that it has now."""
        made = SavedArray(f"internal{len(self.arrays)}", "internal", start, nbytes, shape=(nbytes,))
        return self._add(made, kept=kept)

    def own_all(self, ranges: Iterable[MemoryRange]) -> None:
        """Own the memory of fields, in the order of ``ranges``; those that overlap, as members of one tree do, are one array."""
        parts = dict.fromkeys(part for part in ranges if part[1] and self.find(*part) is None)
        merged: list[list[int]] = []  # the number of the first part, start and end
        for start, nbytes, number in sorted((*part, number) for number, part in enumerate(parts)):
            if merged and start < merged[-1][2]:
                merged[-1] = [min(merged[-1][0], number), merged[-1][1], max(merged[-1][2], start + nbytes)]
            else:
                merged.append([number, start, start + nbytes])
        for _, start, end in sorted(merged):  # addresses differ from process to process
            self.own(start, end - start, kept=True)

    def hold(self, start: int, data: bytes) -> None:
        """Make ``start`` constant memory with ``data``; it may belong to the graph already."""
        number = self.find(start, len(data))
        array = self.own(start, len(data), kept=False) if number is None else self.arrays[number]
        place = self.arrays.index(array)
        array.memory, array.name, self._data[place] = "constant", f"constant{place}", data

    def find(self, start: int, nbytes: int) -> int | None:
        """The number of the array that has these bytes; None if none has all of them."""
        for number, array in enumerate(self.arrays):
            if array.start <= start and start + nbytes <= array.start + array.nbytes:
                return number
        return None

    def to_json(self, sizes: Sequence[tuple[int, int]], entries: dict[str, bytes]) -> list[dict[str, Any]]:
        """The arrays as the file has them; what they hold is added to ``entries``."""
        found = []
        for number, array in enumerate(self.arrays):
            data = self._data.get(number)
            if data is not None:
                entries[name_of("data", data)] = data
            shape = [
                ["value", sizes.index((number, axis))] if (number, axis) in sizes else extent
                for axis, extent in enumerate(array.shape)
            ]
            found.append({
                "name": array.name, "memory": array.memory, "type": array.type, "element": list(array.element),
                "item": array.item, "shape": shape, "access": array.letters, "aligned": array.aligned,
                "most": MOST_NARROW_BYTES if array.narrow else None,
                "data": None if data is None else name_of("data", data),
            })  # fmt: skip
        return found

    def _read(self, array: SavedArray) -> bytes | None:
        """What is there now; None for zeros, with which internal memory begins."""
        if "host" in self.device.driver.features:
            there = np.ctypeslib.as_array((ctypes.c_uint8 * array.nbytes).from_address(array.start))
        else:
            self.device.synchronize()
            there = np.empty(array.nbytes, np.uint8)
            self.device.staging.download(address_of(there), array.start, array.nbytes, DEFAULT_STREAM)
        if array.memory != "constant" and not there.view(np.bool_).any():  # as numbers, all would be read
            return None
        require_room(array.nbytes)
        return there.tobytes()


_TAKEN: Final = ("stream", "self")


def _described(name: str, memory: str, given: Any) -> SavedArray:
    """``given`` as an array of the file."""
    if isinstance(given, DenseArray) and not in_order(given):
        raise ArgumentError(
            f"{memory_text(given)}, {name!r} of the saved graph, has another order of numbers in memory than C's",
            call_site(), hint="use an ndarray, or let the graph own the memory: leave the field out",
        )  # fmt: skip
    if getattr(type(given), "__quadpy_field__", False):
        if not isinstance(given, DenseArray):
            raise ArgumentError(
                f"{name!r} is a field of structs, which cannot be bound", call_site(), hint="use an ndarray of structs"
            )
        start, nbytes, shape = given.pointer, given.nbytes, given.shape  # type: ignore[attr-defined]  # which fields have
        scalar, element = given.dtype.name, given.element_shape
    else:
        try:
            view = view_of(given, lambda _: ())
        except ArgumentError as error:
            raise ArgumentError(
                f"{name!r} of the saved graph: {error.message}", call_site(), hint=error.hint
            ) from error
        kind, scalar, ndim, element = view.type_key
        start, nbytes, shape = view.pointer, view.nbytes, view.abi[1 : 1 + ndim]
        if kind == "strided":
            raise ArgumentError(
                f"{name!r} of the saved graph is not contiguous in C order",
                call_site(),
                hint="bind the whole array; or a copy, if its axes have another order in memory",
            )
    if not nbytes:
        raise ArgumentError(
            f"{name!r} has no elements, and cannot be told from other empty arrays", call_site(),
            hint="save the graph with at least one element; a run may bind an empty array",
        )  # fmt: skip
    element = element if scalar in BY_NAME else ()
    return SavedArray(name, memory, start, nbytes, type_text(scalar), tuple(element), tuple(shape))


def type_text(scalar: str) -> str:
    """How files name the type of an array's elements: a scalar, or the members of a struct."""
    return scalar if scalar in BY_NAME else repr(record_of_key(scalar))
