"""The arguments of a replayed call, bound without running its function.  Owns: Binding, binding_of.

What a parameter is in the table of an executable graph is known by its name in the calls of kernels; so another array is
another address in some places, and another number another number.
Imports: nodes, kernels, the engines that can be patched, straight functions, arrays.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from quadpy.graph.execution import GraphExec
from quadpy.graph.fused import FusedEngine
from quadpy.graph.indirect import IndirectEngine
from quadpy.graph.kernels import kernel_node
from quadpy.graph.nodes import KernelNode, MemsetNode, Node
from quadpy.graph.straight import Note, Straight
from quadpy.graph.usage import Usage
from quadpy.runtime.allocators.block import Block
from quadpy.runtime.device import Device
from quadpy.runtime.ndarray import NDArray

__all__ = ["Binding", "binding_of"]


_EXACT: Final = (int, bool, str, type(None))
"""Types of values that are the same where they are equal; 0.0 is not -0.0."""


@dataclass(slots=True)
class _Parameter:
    """Where one parameter stands; ``fixed`` where it also decides what else than these places has."""

    fixed: bool = False
    written: bool = False
    places: dict[str, list[int]] = field(default_factory=dict)  # by the letter of ``struct``'s language
    nodes: set[str] = field(default_factory=set)


class Binding:
    """``run`` with the arguments ``args`` of ``straight``; ``others`` are blocks of memory that it uses besides."""

    def __init__(
        self, run: GraphExec, straight: Straight, notes: Sequence[tuple[str, Note]], args: tuple[Any, ...],
        parameters: list[_Parameter], others: Usage,
    ) -> None:  # fmt: skip
        self._run, self._straight, self._notes, self.args = run, straight, notes, args
        self._parameters, self._others = parameters, others
        self._engine, self._version = run.engine, run.version

    def bind(self, args: tuple[Any, ...]) -> int:
        """Let later launches do what a call with ``args`` does; how many nodes that changes, or -1 where it cannot.

        ``args`` have the types and extents of those before.
        """
        run, changed = self._run, []
        if len(args) != len(self.args) or run.engine is not self._engine or run.version != self._version:
            return -1
        for place, (before, now) in enumerate(zip(self.args, args, strict=True)):
            if (now is before and not _changes_in_place(now)) or (
                type(now) is type(before) in _EXACT and now == before
            ):
                continue
            if self._parameters[place].fixed:
                return -1
            changed.append(place)
        values = [_value(args[place]) for place in changed]
        if None in values or not _apart(args, self._parameters, self._others):
            return -1
        try:
            patches = [
                (struct.pack(code, value), places)
                for place, value in zip(changed, values, strict=True)
                for code, places in self._parameters[place].places.items()
            ]
        except (struct.error, OverflowError, TypeError):
            return -1  # the kernel says what is wrong
        nodes = functools.partial(_nodes, run.device, self._notes, self._straight.parameters, args)
        run.patch(patches, self._usage(args), nodes)
        self.args = args
        if len(changed) == len(args):
            return len(self._notes)
        return len(set().union(*(self._parameters[place].nodes for place in changed)))

    def result(self, recorded: Any) -> Any:
        """What the function returns: its parameters as they are now, and else what it returned when it was recorded."""
        names = self._straight.results
        if not names:
            return recorded
        given = dict(zip(self._straight.parameters, self.args, strict=True))
        found = recorded if self._straight.in_tuple else (recorded,)
        now = tuple(given.get(name, old) for name, old in zip(names, found, strict=True))
        return now if self._straight.in_tuple else now[0]

    def _usage(self, args: tuple[Any, ...]) -> Usage:
        arrays = [(a.block, p.written) for a, p in zip(args, self._parameters, strict=True) if _uses(a, p)]
        return self._others.beside([b for b, written in arrays if not written], [b for b, written in arrays if written])


def binding_of(run: GraphExec, straight: Straight, args: tuple[Any, ...]) -> Binding | None:
    """The places of the parameters of a function that ``run`` is a recording of; None where they are not all known."""
    engine, notes = run.engine, straight.notes
    given = dict(zip(straight.parameters, args, strict=True))
    nodes = [node for node in run.nodes if isinstance(node, KernelNode)]
    fills = [node for node in run.nodes if isinstance(node, MemsetNode)]  # of arrays that the function makes
    if not isinstance(engine, (IndirectEngine, FusedEngine)) or notes is None or len(notes) != len(nodes):
        return None
    if len(nodes) + len(fills) != len(run.nodes) or any(type(given[name]) is not NDArray for name in straight.shaped):
        return None
    found = {name: _Parameter() for name in straight.parameters}
    for node, note in zip(nodes, notes, strict=True):
        if not _find(node, note, given, functools.partial(engine.find, node.name), found):
            return None
    own = {id(a) for a in args if isinstance(a, NDArray)}
    others = Usage([*(_without(node, own) for node in nodes), *fills])
    parameters = list(found.values())
    if not _apart(args, parameters, others):
        return None
    named = [(node.name, note) for node, note in zip(nodes, notes, strict=True)]
    return Binding(run, straight, named, args, parameters, others)


def _nodes(
    device: Device, notes: Sequence[tuple[str, Note]], parameters: Sequence[str], args: tuple[Any, ...]
) -> dict[str, Node]:  # fmt: skip
    """The kernels' nodes of a call with ``args``, by their names."""
    given = dict(zip(parameters, args, strict=True))
    return {name: kernel_node(device, note.kernel, *note.given(given)) for name, note in notes}


def _find(
    node: KernelNode, note: Note, given: Mapping[str, Any], places: Callable[[int], list[int] | None],
    found: dict[str, _Parameter],
) -> bool:  # fmt: skip
    """Note where the arguments of one call stand; whether what is there is what was found there."""
    arguments = note.given(given)
    slots = note.kernel.argument_slots(*arguments)
    written = {start for start, _ in node.writes}
    for name, slot, value in zip(note.names, slots, arguments, strict=True):
        if name is None:
            continue
        parameter = found[name]
        parameter.nodes.add(node.name)
        held = _value(value)
        if slot is None or held is None:
            parameter.fixed = True
            continue
        code, offset = slot
        expected = struct.pack(code, held)
        if any(launch.arguments[offset : offset + len(expected)] != expected for launch in node.launches):
            return False
        parameter.written |= isinstance(value, NDArray) and value.pointer in written
        where = places(offset)
        if where is None:
            return False
        parameter.places.setdefault(code, []).extend(where)
    return True


def _value(given: Any) -> Any:
    """What stands in an argument block for ``given``; None where it is not one value."""
    if type(given) is NDArray:
        return given.pointer
    return given if type(given) in (int, float) else None


def _changes_in_place(given: Any) -> bool:
    """Whether the same object may say something else than it did."""
    if isinstance(given, tuple):
        return any(map(_changes_in_place, given))
    made = getattr(type(given), "__dataclass_params__", None)
    return isinstance(given, (list, dict)) or (made is not None and not made.frozen)


def _uses(given: Any, parameter: _Parameter) -> bool:
    return type(given) is NDArray and bool(parameter.nodes)


def _apart(args: tuple[Any, ...], parameters: list[_Parameter], others: Usage) -> bool:
    """Whether all arrays are quadpy's own, and no two share memory: then the code for such arrays is that of the call."""
    blocks = [a.block for a, parameter in zip(args, parameters, strict=True) if _uses(a, parameter)]
    own = all(isinstance(block, Block) and not block.lent for block in blocks)
    return own and len({id(block) for block in blocks}) == len(blocks) and not others.has(blocks)


def _without(node: KernelNode, own: set[int]) -> KernelNode:
    """``node`` with what it uses besides the arrays that are arguments."""
    return KernelNode(
        name=node.name, launches=(), writes=node.writes, keep=tuple(k for k in node.keep if id(k) not in own)
    )  # fmt: skip
