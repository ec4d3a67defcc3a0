"""Launches of graphs on a tape: on the way back, a graph that runs the nodes again, and takes them back."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, NoReturn

from quadpy.ad.arrays import Bytes, gradients_among, overlap, storages_of
from quadpy.ad.calls import Call, Launch
from quadpy.ad.copies import Copy
from quadpy.ad.entries import Touch
from quadpy.ad.recorder import Noting, Recorder
from quadpy.core.light import dataclass
from quadpy.core.public import call_site
from quadpy.errors import ArgumentError
from quadpy.graph.captures.new_nodes import NewNode
from quadpy.graph.captures.session import CaptureSession
from quadpy.graph.execution import GraphExec
from quadpy.graph.model.nodes import ChildNode, EmptyNode, KernelNode, MemcpyNode, MemsetNode, Node
from quadpy.jit.kernel import Kernel
from quadpy.runtime.device.current import same_launches
from quadpy.runtime.device.devices import create_stream
from quadpy.runtime.launch.capturing import CapturedStream
from quadpy.runtime.memory.host_storage import Storage
from quadpy.runtime.streams.stream import Stream, use_stream


class ByMemory(CaptureSession):
    """Orders nodes by the memory that they touch, whatever the stream: what is independent runs at once."""

    def _append(self, stream: CapturedStream, new: NewNode, homes: Iterable[str] = ()) -> None:
        self.graph.insert(new.node, None, None, new.name)


class Again(NamedTuple):
    """The backward graph of the graph whose ``nodes`` these are: ``run`` begins with the arrays as that found them.

    calls    those of its kernels
    reads    the arrays that it uses
    changed  those of them that it changes
    skipped  the nodes that change only gradients, which it does not do again
    """

    nodes: Sequence[Node]
    run: GraphExec
    calls: Sequence[Call]
    reads: dict[Bytes, tuple[Storage, ...]]
    changed: tuple[Storage, ...]
    written: Sequence[Bytes]
    skipped: Sequence[Node]

    @property
    def touches(self) -> list[Touch]:
        nodes = self.run.nodes
        read, written = ({part for node in nodes for part in getattr(node, name)} for name in ("reads", "writes"))
        return [(range_of(part), writes) for parts, writes in ((read, False), (written, True)) for part in parts]


@dataclass(frozen=True, slots=True)
class BackwardGraph:
    """A launch of a graph, which found ``copies`` in the arrays that it changes."""

    stream: Stream
    run: GraphExec
    copies: tuple[Copy, ...]
    touches: Sequence[Touch]

    def back(self) -> None:
        for each in self.copies:
            each.restore(self.stream)
        self.run.launch(self.stream)


_known: Final[weakref.WeakKeyDictionary[GraphExec, Again]] = weakref.WeakKeyDictionary()


def backward_of(run: GraphExec) -> Again:
    """The backward graph of ``run``, as its nodes are now.

    Raises:
        ArgumentError: a node that is not differentiated, with its line.
    """
    nodes = [node for node in run.nodes if node.name not in run.disabled]
    found = _known.get(run)
    if found is None or [*map(id, found.nodes)] != [*map(id, nodes)]:
        found = _known[run] = _made(run, nodes)
    return found


def _made(run: GraphExec, nodes: Sequence[Node]) -> Again:
    session, skipped = ByMemory(run.device, create_stream()), list[Node]()
    try:
        try:
            session.begin()
            with use_stream(session.origin), Noting() as recorder:
                written = _issue(nodes, session, recorder, skipped)
                recorder.go_back()
            graph = session.end()
        finally:
            session.abort()
    finally:
        session.abort()  # if an interrupt ended the first one
    reads, changed = {}, {}
    calls = recorder.calls or []
    for call in calls:
        for access in call.touched:
            array = call.arrays[access.array]
            where = array.pointer, array.pointer + array.nbytes
            reads[where] = storages_of(array)
            if access.kind != "read":
                changed[where] = storages_of(array)
    for where in [*reads]:
        if any(overlap(where, part) for part in (*written, *changed)):
            changed[where] = reads.pop(where)
    _require_known_sources(nodes, [*reads, *changed])
    found = tuple(dict.fromkeys(sum(changed.values(), ())))
    run_back = graph.make_executable(fuse="auto")
    return Again(nodes, run_back, calls, reads, found, [*written, *changed], skipped)


def _issue(nodes: Sequence[Node], session: CaptureSession, recorder: Recorder, skipped: list[Node]) -> list[Bytes]:
    """Do once more, in a capture on a tape, what ``nodes`` do, without those that change only gradients, which are ``skipped``.

    Returns which memory copies and fills write.
    """
    written: list[Bytes] = []
    for node in nodes:
        match node:
            case KernelNode(call=call) if call is not None and isinstance(call.args[0], Kernel):
                kernel, *args = call.args
                if kernel.options.derivative:
                    _refuse(node, "it computes derivatives already")
                named = {name: given for name, given in call.kwargs.items() if name != "priority"}
                found = Launch.of(kernel, tuple(args), named)
                if _is_about_gradients(node, found):
                    skipped.append(node)
                else:
                    with same_launches(_drawn_by(node, found.plan)):
                        kernel(*args, **named)
            case MemsetNode() | MemcpyNode():
                parts = [range_of(part) for part in node.writes]
                if recorder.is_gradient(parts):
                    skipped.append(node)
                else:
                    for part in node.reads if isinstance(node, MemcpyNode) else ():
                        recorder.lost.refuse_copy(range_of(part))
                    for part in parts:
                        recorder.overwritten(session.origin, part)
                    written += parts
                    session.graph.insert(replace(node, after=()), None, None, node.kind)
            case ChildNode(nodes=inner):
                written += _issue(inner, session, recorder, skipped)
            case EmptyNode():
                pass
            case _:
                _refuse(
                    node,
                    f"a tape goes back through kernels, copies and fills, and not through a node of kind {node.kind}",
                )
    return written


def _is_about_gradients(node: KernelNode, given: Launch) -> bool:
    """Whether the kernel changes only gradients, which it does not do again on the way back."""
    used = set(map(id, gradients_among(given.arrays)))
    if not used:
        return False
    written = [id(given.arrays[each.array]) in used for each in given.touched if each.kind != "read"]
    if written and all(written):
        return True
    _refuse(node, "it uses a gradient, which changes on the way back")


def _drawn_by(node: KernelNode, plan: Any) -> list[int]:
    """The number of the launch, if the kernel draws random numbers: each launch of a graph has the same."""
    arguments = node.launches[0].arguments if node.launches else b""
    words = {each.name: int.from_bytes(arguments[each.offset : each.offset + 8], "little") for each in plan.code.hidden}
    if "launch" not in words:
        return []
    if words["seed"] != plan.hidden.seed % (1 << 64):
        _refuse(node, "it draws random numbers from the seed of an earlier qp.init")
    return [words["launch"]]


def _require_known_sources(nodes: Sequence[Node], known: Sequence[Bytes]) -> None:
    for node in nodes:
        if isinstance(node, ChildNode):
            _require_known_sources(node.nodes, known)
        elif isinstance(node, MemcpyNode) and node.constant is None:
            low, high = range_of(node.reads[0])
            if not any(low >= start and high <= end for start, end in known):
                _refuse(node, "it copies from memory that no kernel of the graph uses, and that may change meanwhile")


def _refuse(node: Node, why: str) -> NoReturn:
    raise ArgumentError(
        f"a graph with the node {node.name!r} is launched on a tape: {why}", node.span or call_site(),
        hint="call what it does, or launch the graph before or after the tape",
    )  # fmt: skip


def range_of(part: tuple[int, int]) -> Bytes:
    """The addresses of ``(address, bytes)``."""
    return part[0], part[0] + part[1]
