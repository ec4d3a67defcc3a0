"""Graphs that were saved, as users hold them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from quadpy.core.completion import shows
from quadpy.core.copying import OneProcess
from quadpy.core.messages import counted
from quadpy.core.public import call_site, called_often, made_by, public, shortened
from quadpy.errors import CaptureError, GraphError, QuadpyError
from quadpy.graph.building.graph import Graph
from quadpy.graph.execution import GraphExec
from quadpy.graph.model.inspect import GraphInfo
from quadpy.graph.model.nodes import Node
from quadpy.graph.saved.arrays import ArrayInfo, SavedArrays, whole_shape
from quadpy.graph.saved.manifest import SavedFile
from quadpy.graph.saved.nodes import SavedNodes, info_of
from quadpy.graph.saved.plans import opened
from quadpy.jit.host_arrays import copied_host_arrays
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import session_of
from quadpy.runtime.launch.fusion import Fusion
from quadpy.runtime.memory.device_storage import stream_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from quadpy.runtime.arrays.view import ArrayMemory
    from quadpy.runtime.device.device import Device


@public
def load(path: str | os.PathLike[str], *, target: str | None = None) -> SavedGraph:
    """Load a graph that ``graph.save`` wrote; the current device runs it, without the compiler.

    The file contains machine code: load files only from sources that you trust.

    Args:
        path: the file.
        target: the target whose code runs, such as "x86-64"; by default the best one for the device.

    Raises:
        SavedGraphError: it is not a saved graph, is damaged, or has no code for the device.
        OSError: the file cannot be read.
        CaptureError: the calling thread's stream is captured.
    """
    file, found, device = opened(path, target, "graph")
    if session_of(device.current_stream()) is not None:
        raise CaptureError(
            "a graph is loaded while its stream is captured", call_site(), hint="load it before the capture"
        )
    return SavedGraph(file, found, device)


@made_by("qp.graph.load(path) makes one")
@shows("arrays", "destroy", "device", "fusion", "graph", "inspect", "run", "target")
class SavedGraph(OneProcess):
    """A graph from a file, for one device; safe from any thread.  ``with`` destroys it at its end.

    ``target`` is the one whose code runs.  The graph's own memory keeps what a run leaves there for the next one.
    """

    error: ClassVar[type[GraphError]] = GraphError
    instead: ClassVar[str] = "load the file where it is used"

    def __init__(self, file: SavedFile, target: str, device: Device) -> None:
        self.device, self.target, self._manifest = device, target, file.manifest
        self._arrays = SavedArrays(file, device)
        self._nodes = SavedNodes(file, target, device, self._arrays)
        self._lock = new_lock()
        self._exec: GraphExec | None = None
        self._given: dict[str, Any] = {}  # the arrays of the last run, if they cannot move
        self._shapes: object = None  # of the last run, whose sizes decide whether it is one launch
        self._place: object = None  # the addresses and shapes of the last run
        self._ended = False

    @property
    def arrays(self) -> tuple[ArrayInfo, ...]:
        """The arrays of the graph; a run binds those whose ``memory`` is "bound"."""
        return self._arrays.infos

    @property
    def fusion(self) -> Fusion:
        """Whether the last run was one launch of all works, and why; by the rule of ``Graph.instantiate``."""
        found = self._exec
        return Fusion(False, "nothing has run yet") if found is None else found.fusion

    @called_often
    def run(self, stream: object = None, **arrays: Any) -> None:
        """Run the graph on ``stream`` (default: the thread's current stream) with ``arrays`` by name.

        They are arrays as kernels take them.  A run with the arrays of the run before costs a launch of a graph.

        Raises:
            ArgumentError: an array is missing, or is not as the graph needs it: the message names its axis.
            BoundsError: a kernel is certain to leave an array of this size.
            GraphError: the graph was destroyed.
            StreamError: ``stream`` was destroyed, or is of another device.
        """
        try:
            with self._lock:
                found, given = self._exec, self._given
                if found is not None and len(arrays) == len(given):
                    for name, array in arrays.items():
                        if given.get(name) is not array:
                            break
                    else:
                        if not found.relaunch(stream):
                            found.launch(stream)
                        return
                self._require_alive()
                self._given = {}
                self._run(arrays, stream)
                if all(isinstance(array, NDArray) for array in arrays.values()):  # others may move
                    self._given = arrays
        except QuadpyError as error:
            raise shortened(error)

    def _run(self, arrays: Mapping[str, Any], stream: object) -> None:
        """A run with other arrays than the one before; those of the host are copied to a GPU and back."""
        views = self._arrays.views(arrays)
        shapes = [whole_shape(view) for view in views]
        if "host" in self.device.driver.features:
            place = [view.abi for view in views], shapes
            if self._exec is None or place != self._place:
                self._place = None
                self._bind(views, shapes)
                self._place = place
            assert self._exec is not None
            self._exec.launch(stream)
            return
        on = stream_of(self.device, stream)
        written = [info for info in self.arrays if info.memory == "bound"]
        places = _Places(range(len(views)), ["w" in info.access for info in written])
        addresses: list[Any] = [view.abi[0] for view in views]
        with copied_host_arrays(self.device, on, addresses, views, places, session_of(on)) as there:
            self._bind(there, shapes).launch(on)

    def _bind(self, views: Sequence[ArrayMemory], shapes: Sequence[tuple[int, ...]]) -> GraphExec:
        """What can be launched, with these arrays."""
        nodes, before = self._nodes.bound(views, shapes), self._exec
        may_become_one = shapes != self._shapes and self._nodes.may_fuse
        if before is None or (may_become_one and not before.fusion.fused):
            self._exec = _graph_of(self.device, nodes).make_executable(fuse=self._nodes.fuse)
            if before is not None:
                before.destroy()
        else:
            before.replace({node.name: node for node in nodes if node.kind != "empty"}, same_order=True)
        assert self._exec is not None
        self._shapes = shapes
        return self._exec

    @public
    def graph(self, **arrays: Any) -> Graph:
        """An ordinary graph of its nodes with ``arrays``, which can be a node of another graph.  It shares the memory of this one.

        Raises:
            ArgumentError: as ``run``; or an array of the host for a GPU.
        """
        with self._lock:
            self._require_alive()
            views = self._arrays.views(arrays)
            return _graph_of(self.device, self._nodes.bound(views, [whole_shape(view) for view in views]))

    def inspect(self) -> GraphInfo:
        """The works of the file as plain data; their memory is known when arrays are bound."""
        return info_of(self._manifest["works"], self._manifest["kernels"])

    def destroy(self) -> None:
        """Release the graph; pending runs complete.  Destroying twice does nothing."""
        with self._lock:
            self._ended = True
            found, self._exec, self._given = self._exec, None, {}
        if found is not None:
            found.destroy()

    def _require_alive(self) -> None:
        if self._ended:
            raise GraphError("the saved graph was destroyed", call_site(), hint="load the file again")
        self.device.life.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.destroy()

    def __repr__(self) -> str:
        return f"<SavedGraph of {counted(len(self._nodes), 'work')} for {self.target} on {self.device}>"


class _Places(NamedTuple):
    """What copies of the host's arrays need to know of the arrays of a run."""

    pointers: Sequence[int]
    written: Sequence[bool]


def _graph_of(device: Device, nodes: Sequence[Node]) -> Graph:
    made = Graph(device)
    for node in nodes:
        made.register(node)
    return made
