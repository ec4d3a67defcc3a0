"""The arrays of a loaded graph: memory of its own, and the arrays that users bind to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from quadpy.core.dtypes import BY_NAME, u8
from quadpy.core.messages import counted, shown
from quadpy.errors import ArgumentError, DeviceError
from quadpy.graph.model.extents import overlap
from quadpy.graph.saved.manifest import SavedFile, scalar_bytes
from quadpy.graph.saved.memory import type_text
from quadpy.hostmath.struct_ndarray import record_of_key
from quadpy.jit.array_views import view_of
from quadpy.runtime.arrays.ndarray import NDArray, ndarray
from quadpy.runtime.arrays.view import ArrayMemory, ArrayView, TypeKey
from quadpy.runtime.device.device import Device
from quadpy.runtime.memory.allocators.block import Block

_LARGEST_EXTENT: Final = 0x7FFFFFFF
_FIXED: Final = (
    "save the graph again for another size: it takes a part of this array, fills or copies it with numbers of another size, "
    "or passes its size as a number"
)


class ArrayInfo(NamedTuple):
    """An array of a saved graph.

    memory   "bound" for one that a run binds; "internal" and "constant" for the graph's own
    dtype    the scalar type, or the members of a struct
    shape    the extents, None where a run may choose; without the axes of an element
    access   what the graph does with it: "r", "w" or "rw"
    """

    name: str
    memory: str
    dtype: str
    element_shape: tuple[int, ...]
    shape: tuple[int | None, ...]
    access: str

    @staticmethod
    def of(array: Mapping[str, Any]) -> ArrayInfo:
        """That of ``array`` in a manifest."""
        shape = tuple(extent if type(extent) is int else None for extent in array["shape"])
        return ArrayInfo(array["name"], array["memory"], array["type"], tuple(array["element"]), shape, array["access"])

    def __str__(self) -> str:
        axes = ", ".join("any" if extent is None else str(extent) for extent in self.shape)
        element = "".join(f"x{extent}" for extent in self.element_shape)
        return f"{self.name}: {self.dtype}{element}[{axes}] {self.memory}, {self.access or 'unused'}"


class Part(NamedTuple):
    """Memory of an array as a launch sees it; as ``ArrayMemory``, with ``keep`` alive."""

    type_key: TypeKey
    pointer: int
    nbytes: int
    device: Any
    block: Block | None
    keep: object


class Bound(NamedTuple):
    """An array of the graph in a run: its memory, and its extents."""

    memory: ArrayMemory
    shape: tuple[int, ...]

    def part(self, start: int, nbytes: int, item: int) -> Part:
        """``nbytes`` bytes from ``start`` on, of numbers with ``item`` bytes."""
        whole = self.memory
        return Part(_KEYS[item], whole.pointer + start, nbytes, whole.device, whole.block, whole)


_KEYS: Final[dict[int, TypeKey]] = {n: ("nd", f"u{8 * n}", 1, ()) for n in (1, 2, 4, 8)}


class SavedArrays:
    """The arrays of ``file`` on ``device``; its own memory is allocated here."""

    def __init__(self, file: SavedFile, device: Device) -> None:
        self.device, self._kind = device, file.kind
        self.infos = tuple(map(ArrayInfo.of, file.manifest["arrays"]))
        self._facts = file.manifest["arrays"]
        self.sizes: list[list[int]] = file.manifest["sizes"]
        self._guards = file.manifest["guards"]
        self._own = {
            number: self._allocated(array, file)
            for number, array in enumerate(self._facts)
            if array["memory"] != "bound"
        }
        self.names = [array["name"] for array in self._facts if array["memory"] == "bound"]

    def _allocated(self, array: Mapping[str, Any], file: SavedFile) -> NDArray:
        nbytes = array["item"]
        for extent in array["shape"]:
            nbytes *= extent
        made = ndarray(u8, nbytes)
        if array["data"] is not None:
            data = file.entries[array["data"]]
            if len(data) != nbytes:
                raise ArgumentError(
                    f"the array {array['name']!r} of the file has {nbytes} bytes, and {len(data)} are stored"
                )
            made.from_numpy(memoryview(data))
        return made

    def views(self, given: Mapping[str, Any]) -> list[ArrayView]:
        """The arrays that users bind, in the order of ``names``.

        Raises:
            ArgumentError: one is missing, unknown, or not as the graph needs it.
        """
        if missing := [name for name in self.names if name not in given]:
            raise ArgumentError(f"the array {missing[0]!r} is not bound", hint=f"it takes {', '.join(self.names)}")
        if unknown := [name for name in given if name not in self.names]:
            raise ArgumentError(
                f"the graph has no array {unknown[0]!r}", hint=f"it takes {', '.join(self.names) or 'none'}"
            )
        bound = [array for array in self._facts if array["memory"] == "bound"]
        views = [self._view(array, given[array["name"]]) for array in bound]
        for (second, right), (first, left) in itertools.combinations(zip(bound, views, strict=True), 2):
            is_written = "w" in first["access"] + second["access"]
            if is_written and overlap((left.pointer, left.nbytes), (right.pointer, right.nbytes)):
                raise ArgumentError(
                    f"the arrays {second['name']!r} and {first['name']!r} share memory",
                    hint="pass arrays of their own: the code was made for such",
                )
        return views

    def bound(self, views: Sequence[ArrayMemory], shapes: Sequence[tuple[int, ...]]) -> list[Bound]:
        """All arrays in a run with these views, in the order of the file.

        Raises:
            ArgumentError: extents that must be equal are not.
        """
        given = iter(zip(views, shapes, strict=True))
        found = [
            Bound(self._own[number], tuple(array["shape"])) if number in self._own else Bound(*next(given))
            for number, array in enumerate(self._facts)
        ]
        for guard in self._guards:
            (left, axis), (right, other) = guard["arrays"]
            if found[left].shape[axis] != found[right].shape[other]:
                raise ArgumentError(
                    f"axis {axis} of {self.infos[left].name!r} has extent {found[left].shape[axis]}, and axis {other} of "
                    f"{self.infos[right].name!r} has {found[right].shape[other]}; the graph copies one to the other",
                    hint="bind arrays of the same shape",
                )
        return found

    def _view(self, array: Mapping[str, Any], given: Any) -> ArrayView:
        """``given`` as the memory of ``array``."""
        name, is_host = array["name"], "host" in self.device.driver.features
        try:
            view = view_of(given, lambda _: ())
        except ArgumentError as error:
            raise ArgumentError(f"{name}: {error.message}", hint=error.hint) from error.__cause__
        if view.device is not None and (is_host or view.device != self.device):
            raise DeviceError(
                f"{name} is on {view.device}, and the {self._kind} on {self.device}", hint="copy it there"
            )
        aligned = scalar_bytes(array["type"]) if is_host or view.block is None else array["aligned"]
        for misfit, hint in self._misfits(array, view, aligned):
            raise ArgumentError(misfit, hint=hint)
        return view

    def _misfits(self, array: Mapping[str, Any], view: ArrayView, aligned: int) -> Iterator[tuple[str, str]]:
        """Why ``view`` cannot be ``array``, each with what to do."""
        name, element, rank, most = array["name"], tuple(array["element"]), len(array["shape"]), array["most"]
        kind, scalar, _, own = view.type_key
        wanted, shape = (*array["shape"], *element), whole_shape(view)
        takes, found = f"{name} takes elements of {_text(array['type'], element)}", type_text(scalar)
        if found != array["type"]:
            yield f"{takes}, not {_text(found, own)}", "convert the array"
        if kind == "strided":
            yield f"{name} must be contiguous", "copy it: numpy.ascontiguousarray"
        if "w" in array["access"] and not view.writable:
            yield f"{name} is read-only, and the {self._kind} writes it", "pass a copy"
        if len(wanted) != len(shape):
            of = f" of {_text(array['type'], element)}" if element else ""
            yield f"{name} takes {counted(rank, 'axis')}{of}, not the shape {shown(shape)}", "reshape the array"
        if shape[rank:] != element:
            yield f"{takes}, not {_text(found, shape[rank:])}", "convert the array"
        for axis, (extent, here) in enumerate(zip(wanted, shape, strict=True)):
            if type(extent) is int and extent != here:
                yield (
                    f"axis {axis} of {name} must have extent {extent}, as when the {self._kind} was saved, not {here}",
                    _FIXED,
                )
        if most is not None and (view.nbytes > most or max(view.abi[1:], default=0) > _LARGEST_EXTENT):
            made = f"the {self._kind} was saved for arrays of up to {most}"
            yield f"{name} has {view.nbytes} bytes; {made}", "save it with a larger array"
        if view.nbytes and view.pointer % aligned:
            yield (
                f"{name} begins at {view.pointer:#x}, which is not a multiple of {aligned}",
                "pass a copy of the array",
            )


def whole_shape(view: ArrayView) -> tuple[int, ...]:
    """The extents of an array, and then those of its elements, which are axes for other libraries."""
    _, scalar, ndim, element = view.type_key
    return (*view.abi[1 : 1 + ndim], *(element if record_of_key(scalar) is None else ()))


def _text(scalar: str, element: Sequence[int]) -> str:
    return scalar + "".join(f"x{extent}" for extent in element) if scalar in BY_NAME else scalar
