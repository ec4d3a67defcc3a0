"""Nodes of a graph as works of a file."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NoReturn

from quadpy._version import __version__
from quadpy.core.artifact import AbiValue, CodeObject
from quadpy.core.formula import BlockValue, Formula, Operation, formula_to_json
from quadpy.core.public import call_site
from quadpy.core.source import Span
from quadpy.errors import GraphError
from quadpy.graph.model.extents import memory_text
from quadpy.graph.model.nesting import flattened
from quadpy.graph.model.nodes import AllocNode, EmptyNode, FreeNode, KernelNode, MemcpyNode, MemsetNode, Node
from quadpy.graph.saved.fused import fused_to_json
from quadpy.graph.saved.manifest import FORMAT
from quadpy.graph.saved.memory import ALIGNED, SavedArray, SavedMemory
from quadpy.graph.saved.targets import Targets, kernels_to_json
from quadpy.jit.array_arguments import LaunchedCall
from quadpy.jit.formula import compile_formula
from quadpy.runtime.arrays.field_memory import FieldMemory

if TYPE_CHECKING:
    from quadpy.runtime.launch.fusion import Fuse


_MEMORY: Final = "bind={'name': array} for memory of the user's, internal=[array] for memory of the graph, constants=[array] for values that stay"


class Writer:
    """Makes the manifest and the entries of a graph's file from its ``nodes``; ``memory`` has its arrays."""

    def __init__(self, nodes: Sequence[Node], memory: SavedMemory, targets: Targets, fuse: Fuse) -> None:
        self._nodes = flattened(nodes, lambda _: True)
        self._memory, self._targets, self._fuse = memory, targets, fuse
        self._works: list[dict[str, Any]] = []
        self._guards: list[dict[str, Any]] = []
        self._formulas: list[tuple[dict[str, Any], str, SavedArray, int]] = []  # what depends on whole arrays
        self.entries: dict[str, bytes] = {}

    def manifest(self) -> dict[str, Any]:
        """The manifest; ``entries`` has what it refers to.

        Raises:
            GraphError: a node cannot be saved, with its name and line.
            CompilationError: a kernel is not possible for a target, with its line.
        """
        self._own_fields()
        numbers: dict[str, int] = {}
        for node in self._nodes:
            work = self._work(node)
            after = [numbers[name] for name in node.after]
            work |= {"name": node.name, "place": place_of(node.span), "after": after, "derived": node.derived}
            self._works.append(work)
            numbers[node.name] = len(numbers)
        arrays = self._memory.arrays
        for array in arrays:
            if array.memory != "internal" and not array.letters:
                raise GraphError(f"no node of the graph uses {array.name!r}", call_site(), hint="leave it out")
            if array.memory == "constant" and array.letters != "r":
                why = f"the graph writes {array.name!r} of constants="
                raise GraphError(why, call_site(), hint="pass it in internal=")
        sizes = [(number, axis) for number, array in enumerate(arrays) for axis in array.free()]
        for work, key, array, unit in self._formulas:
            work[key] = formula_to_json(_product(array, arrays.index(array), sizes, unit))
        kernels = self._targets.kernels
        # before the arrays, whose addresses it needs to be aligned
        fused = fused_to_json(self._nodes, self._works, arrays, kernels, self._targets.specs, self._fuse, self.entries)
        guards = [guard for guard in self._guards if any(tuple(place) in sizes for place in guard["arrays"])]
        return {
            "format": FORMAT, "quadpy": __version__, "arrays": self._memory.to_json(sizes, self.entries),
            "sizes": [list(size) for size in sizes], "kernels": kernels_to_json(kernels, self.entries),
            "targets": self._targets.names, "works": self._works, "guards": guards, "parameters": None,
            "fused": fused,
        }  # fmt: skip

    def _own_fields(self) -> None:
        """The fields that kernels name, and memory of alloc nodes, belong to the graph unless they are bound."""
        calls = [call for node in self._nodes if isinstance(node, KernelNode) and (call := _call_of(node)) is not None]
        fields = [array for call in calls for array in call.arrays if isinstance(array, FieldMemory)]
        self._memory.own_all((field.pointer, field.nbytes) for field in fields)
        for node in self._nodes:
            if isinstance(node, AllocNode) and self._memory.find(node.pointer, node.nbytes) is None:
                self._memory.own(node.pointer, node.nbytes, kept=False)

    def _work(self, node: Node) -> dict[str, Any]:
        match node:
            case EmptyNode() | AllocNode() | FreeNode() | KernelNode(launches=()):
                return {"kind": "empty"}
            case KernelNode():
                return self._kernel(node)
            case MemcpyNode():
                return self._copy(node)
            case MemsetNode():
                return self._fill(node)
            case _:
                refuse(node, f"a node of kind {node.kind} belongs to this process")

    def _kernel(self, node: KernelNode) -> dict[str, Any]:
        call = _call_of(node)
        if call is None or getattr(call.plan, "elsewhere", None) is None:
            why = "this process only has machine code of its kernel, as of all that was loaded from files"
            refuse(node, why, "build the graph of the kernels that were saved, and save that; or copy their file")
        code = call.plan.code
        values = dict(zip([_key(value) for value in code.layout.values], call.unpack(call.block), strict=True))
        pointers = [value.param for value in code.layout.values if value.part == "pointer" and value.param != "$shadow"]
        memory = dict(zip(pointers, call.arrays, strict=True))
        places = {name: self._place(node, array.pointer, array.nbytes) for name, array in memory.items()}
        aligned = {name for name in pointers if values[name, "pointer", 0] % ALIGNED == 0}
        name, wave = node.launches[0].name.partition(",")[0], getattr(node.kernel, "wave_size", None)
        made = self._targets.kernel(call, aligned, name, place_of(node.launches[0].span), wave)
        effects = effects_of(made.code)
        arguments = [self._source(node, value, values, memory, places, effects) for value in made.code.layout.values]
        return {"kind": "kernel", "kernel": made.number, "arguments": arguments, "priority": node.priority}

    def _source(
        self, node: KernelNode, value: AbiValue, values: Mapping[Any, Any], memory: Mapping[str, Any],
        places: Mapping[str, int | None], effects: Mapping[str, str],
    ) -> list[Any]:  # fmt: skip
        """Where a value of the argument block comes from."""
        if _key(value) not in values:
            refuse(node, f"its code takes {value.param}, which the call here does not pass")
        number, given = places.get(value.param), values[_key(value)]
        if number is None:
            return ["bits", bits_of(value.code, given)]
        array, there = self._memory.arrays[number], memory[value.param]
        axes = sum(key[:2] == (value.param, "extent") for key in values)
        shape = tuple(values[value.param, "extent", axis] for axis in range(axes))
        is_all = array.is_whole(there.pointer, there.nbytes) and shape == array.shape[:axes]
        whole = is_all and axes > 0 and (value.param, "stride", 0) not in values
        if value.part == "pointer":
            array.touch(effects.get(value.param, ""))
            array.narrow = array.narrow or not getattr(there, "wide", False)
            array.fix(axes if whole else 0)  # later axes are those of elements
            if given % ALIGNED == 0 and array.start % ALIGNED == 0:
                array.aligned = ALIGNED
            part = [] if whole else [there.pointer - array.start, there.nbytes]
            return ["pointer", number, given - array.start, *part]
        if whole and value.part == "extent":
            return ["extent", number, value.axis]
        return ["bits", bits_of(value.code, given)]

    def _place(self, node: Node, start: int, nbytes: int) -> int | None:
        """The number of the array that has these bytes; None for no bytes."""
        if not nbytes:
            return None
        if (number := self._memory.find(start, nbytes)) is None:
            place = start, nbytes
            kept = (each for each in node.keep if (getattr(each, "pointer", 0), getattr(each, "nbytes", 0)) == place)
            what = next(map(memory_text, kept), f"{nbytes} bytes at {start:#x}")
            refuse(node, f"it uses {what}, which is neither bound, internal nor constant", _MEMORY)
        return number

    def _end(self, node: Node, start: int, nbytes: int, letters: str) -> tuple[int, SavedArray]:
        number = self._place(node, start, nbytes)
        assert number is not None
        array = self._memory.arrays[number]
        array.touch(letters)
        return number, array

    def _copy(self, node: MemcpyNode) -> dict[str, Any]:
        if node.staged:
            instead = "copy to arrays of the device before, and read them afterwards"
            refuse(node, "it copies from or to memory of the host", instead)
        if not node.nbytes:
            return {"kind": "empty"}
        if node.constant is not None:
            self._memory.hold(node.source, node.constant)
        of, source = self._end(node, node.source, node.nbytes, "r")
        to, target = self._end(node, node.target, node.nbytes, "w")
        work = {"kind": "copy", "target": [to, node.target - target.start], "source": [of, node.source - source.start],
                "bytes": node.nbytes}  # fmt: skip
        alike = (source.shape, source.item) == (target.shape, target.item) and source.memory == target.memory == "bound"
        if alike and source.is_whole(node.source, node.nbytes) and target.is_whole(node.target, node.nbytes):
            self._formulas.append((work, "bytes", source, source.item))
            self._guards += [{"kind": "same", "arrays": [[of, axis], [to, axis]]} for axis in range(len(source.shape))]
        else:
            source.fix()
            target.fix()
        return work

    def _fill(self, node: MemsetNode) -> dict[str, Any]:
        nbytes = node.writes[0][1]
        if not nbytes:
            return {"kind": "empty"}
        number, target = self._end(node, node.target, nbytes, "w")
        work = {"kind": "fill", "target": [number, node.target - target.start], "value": node.value, "element": node.element,
                "width": node.width, "height": node.height, "pitch": node.pitch, "first": node.first}  # fmt: skip
        if target.is_whole(node.target, nbytes) and node.height == 1 and not target.item % node.element:
            self._formulas.append((work, "width", target, target.item // node.element))
        else:
            target.fix()
        return work


def _product(array: SavedArray, number: int, sizes: Sequence[tuple[int, int]], unit: int) -> Formula:
    """The number of elements of ``array``, in terms of ``sizes``, times ``unit``."""
    places = ((number, axis) for axis in range(len(array.shape)))
    factors: list[Formula] = [
        BlockValue(sizes.index(place)) if place in sizes else array.shape[place[1]] for place in places
    ]
    found = Operation("product", (*factors, unit))
    return found if any(isinstance(factor, BlockValue) for factor in factors) else compile_formula(found)(())


def _call_of(node: KernelNode) -> LaunchedCall | None:
    """The call of which the launches are; None if that is unknown."""
    call = node.launches[0].accesses if node.launches else None
    return call if isinstance(call, LaunchedCall) else None


def effects_of(code: CodeObject) -> dict[str, str]:
    """What the tasks do with each array; an atomic update reads and writes."""
    found: dict[str, str] = {}
    for task in code.tasks:
        for name, letters in task.effects:
            found[name] = found.get(name, "") + letters.replace("a", "rw")
    return found


def _key(value: AbiValue) -> tuple[str, str, int]:
    return value.param, value.part, value.axis


def bits_of(code: str, value: float) -> int:
    """The bits of a value of the argument block, whose letter is ``code``."""
    packed = struct.pack(f"={code}", value)
    return int.from_bytes(packed, "little")


def place_of(span: Span | None) -> str:
    """File and line, without the folder: it differs between machines."""
    return f"{PurePath(span.file).name}:{span.line}" if span else ""


def refuse(node: Node, why: str, hint: str = "") -> NoReturn:
    """Raise the error of a graph that cannot be saved because of ``node``."""
    raise GraphError(
        f"the graph cannot be saved because of its node {node.name!r}: {why}", node.span or call_site(), hint=hint
    )
