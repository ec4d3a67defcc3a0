"""A kernel on one grid: its loops over the rank's cells, exchanges before them, and totals after them.

Reductions over all ranks have an order that only the shape of the grid decides.  The numbers of each tile combine as 64 lanes: lane l takes those with the row-major numbers l, l + 64, … in this order, and
the lanes merge by halves.  The ranks gather the results of all tiles, and each combines them in the order of the tiles as
a reduction over a loop does (``codegen.reduction``).  No tile belongs to two ranks, so the bits do not depend on them.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from quadpy.codegen.abi import layout_of
from quadpy.codegen.reduction import merge_op
from quadpy.core.artifact import HIDDEN
from quadpy.core.dtypes import Scalar, i32
from quadpy.dist.arrays import DistributedArray, allocated
from quadpy.dist.captured import apart, capture_of, outside
from quadpy.dist.halo import Channel, Flight, HaloExchange, reaches_of
from quadpy.dist.kernels.tiles import combine_tiles, count_launch, reduce_tiles
from quadpy.dist.localise import LocalKernel, LocalTask, identity
from quadpy.dist.races import LoopRaces
from quadpy.dist.reach import LoopReach, Reaches
from quadpy.dist.transport.agreement import agree
from quadpy.dist.transport.checked import is_debugging
from quadpy.dist.transport.protocol import FlatPart
from quadpy.errors import CaptureError
from quadpy.ir.index.numbers import Given
from quadpy.jit.timed_entry import TIMED
from quadpy.runtime.arrays.ndarray import NDArray, ndarray
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.capturing import CAPTURES, session_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from quadpy.dist.boxes import Box, Widths
    from quadpy.dist.division import Division
    from quadpy.dist.lattice import Lattice
    from quadpy.ir import nodes as ir
    from quadpy.ir.nodes import AtomicOp
    from quadpy.jit.plan import Plan, Values, Views
    from quadpy.runtime.arrays.view import ArrayView
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.streams.stream import Stream


class TaskPlans(NamedTuple):
    """How a task is launched, and the kernel that finishes its reductions."""

    run: Plan
    finish: Plan | None


class Stale(NamedTuple):
    """Arrays whose halos a loop needs, and how far."""

    arrays: tuple[DistributedArray, ...]
    reaches: tuple[tuple[Widths, ...], ...]


@dataclass(slots=True)
class _Loop:
    """A loop over the grid: what it reaches, and its reductions for each lattice at which its iterations were."""

    reach: LoopReach
    totals: dict[Lattice, tuple[Totals, ...]]


class GridProgram:
    """The tasks of one kernel on one grid, for one rank.

    ``names`` are the kernel's array parameters in the order of a call, ``named`` the fields of the grid that it names, and
    ``lattices`` those of both arrays and fields of the grid, whose ``extents`` are known.
    """

    def __init__(
        self, kernel: ir.Kernel, local: LocalKernel, plans: Sequence[TaskPlans], grid: Division, names: Sequence[str],
        lattices: Mapping[str, Lattice], named: Mapping[str, DistributedArray], extents: Mapping[Given, int],
    ) -> None:  # fmt: skip
        self._grid_low = grid.block.low
        self.grid, self.tasks, self._plans = grid, local.tasks, tuple(plans)
        self._named, self._called = dict(named), kernel.called
        self._name, self._where = kernel.name, f"line {kernel.span.line}"
        self._key, self._calls = zlib.crc32(f"{self._name} {self._where}".encode()), grid.world.calls
        self._names, self._distributed = tuple(names), tuple(sorted(lattices))
        layout = [(k, v) for k, v in enumerate(layout_of(kernel).values) if not v.param.startswith(HIDDEN)]
        self._pointers = {v.param: k for k, v in layout if v.part == "pointer"}
        self._numbers = {Given(v.param, v.part, v.axis): k for k, v in layout if v.part in ("scalar", "extent")}
        self._count = len(layout)
        self._slots = tuple(ndarray(scalar, 1) for _, scalar in local.slots)
        self._draws = (grid.launches(),) if local.draws else ()
        self._lattices, self._extents = lattices, extents
        self._loops = [self._loop(task, kernel, whole) for task, whole in zip(self.tasks, kernel.tasks, strict=True)]
        self._exchanges: dict[object, HaloExchange] = {}
        self._channels: dict[Device, Channel] = {}

    def run(self, values: Values, views: Views, stream: Stream) -> object:
        """Run one call; returns the result of the last task."""
        arrays = {**dict(zip(self._names, views, strict=True)), **self._named}
        capture = capture_of(stream)
        distributed = [_distributed(arrays[name]) for name in self._distributed]
        for array in distributed:
            array.used_in(capture)
        self._calls.add(self._key, self._name, tuple([array.serial for array in distributed]))
        if is_debugging():
            agree(self.grid.world.transport, "the next call", str(self._calls.current(self._where)), self._calls)
        for launches in self._draws:
            count_launch(launches, stream=stream)
        call = _Call(self, values, arrays, stream)
        result = None
        for number, (task, loop) in enumerate(zip(self.tasks, self._loops, strict=True)):
            if loop is None:
                result = call.prepared(number, self.grid.block).run(stream)
            else:
                result = None
                self._run_loop(call, number, task, loop)
        return result

    def reaches(self, values: Values) -> list[tuple[LocalTask, Reaches | None]]:
        """What each task reads and writes at a call."""
        return [
            (task, None if loop is None else loop.reach.at(values[: self._count]))
            for task, loop in zip(self.tasks, self._loops, strict=True)
        ]

    # ------------------------------------------------------------------- loops

    def _loop(self, task: LocalTask, kernel: ir.Kernel, whole: ir.Task) -> _Loop | None:
        if task.analysed is None:
            return None
        races = LoopRaces(kernel, whole, self.grid, self._extents, self._numbers)
        reach = LoopReach(task, self.grid, self._lattices, self._numbers, self._count, self._called, races)
        return _Loop(reach, {})

    def _totals(self, task: LocalTask, loop: _Loop, lattice: Lattice) -> tuple[Totals, ...]:
        """Those of the reductions, for iterations at ``lattice``."""
        if task.reduced and lattice not in loop.totals:
            loop.totals[lattice] = outside(
                lambda: tuple(Totals(self.grid, lattice, each.op, each.type) for each in task.reduced)
            )
        return loop.totals[lattice] if task.reduced else ()

    def _run_loop(self, call: _Call, number: int, task: LocalTask, loop: _Loop) -> None:
        found = loop.reach.at(call.values)
        totals = self._totals(task, loop, found.lattice)
        more = tuple(each.partial for each in totals)
        if not found.covers:
            for each, partial in zip(task.reduced, more, strict=True):
                partial.fill(identity(each.op, each.type), stream=call.stream)
        stale = self.stale(call, found) if found.reads else _NOTHING
        if stale.arrays:
            where = f"line {task.span.line}"
            # One launch where races are looked for: its shadow memory knows nothing of other launches.
            first, then = (found.first, found.then) if self.plan(number).code.shadow is None else ((), found.whole)
            flight = Flight(self.exchange(stale), stale.arrays, self.channel(), call.stream, where)
            apart(flight.start)
            call.launch(number, first, more)
            slabs = [call.prepared(number, slab, more) for slab in then]
            apart(lambda: flight.finish(lambda stream: [slab.run(stream) for slab in slabs]))
            for array, reaches in zip(*stale, strict=True):
                array.halo_state.received(reaches)
        else:
            call.launch(number, found.whole, more)
        for name in found.writes:
            _distributed(call.arrays[name]).halo_state.clear()
        self._finish(call, number, task, totals)

    def _finish(self, call: _Call, number: int, task: LocalTask, totals: Sequence[Totals]) -> None:
        """Combines what the iterations of all ranks add up to."""
        finish = self._plans[number].finish
        if finish is None:
            return
        found = tuple(total.of_partial(call.stream, f"line {task.span.line}") for total in totals)
        call.prepared(number, self.grid.iterations.block, found, finish).run(call.stream)
        for name in task.finished:
            _distributed(call.arrays[name]).halo_state.clear()

    def stale(self, call: _Call, found: Reaches) -> Stale:
        """The exchange that is needed before the loop; halos that are too small grow."""
        wanted: dict[DistributedArray, tuple[Widths, ...]] = {}
        for name, reaches in found.reads.items():
            array = _distributed(call.arrays[name])
            wanted[array] = wanted.get(array, ()) + reaches
        stale = {}
        for array, key in wanted.items():
            needs = array.needs.get(key)
            if needs is None:
                array.reserve(key)
                needs = array.needs[key] = reaches_of(array, key)
                call.moved()
            if missing := tuple([reach for reach in needs if not array.halo_state.is_current(reach)]):
                stale[array] = missing
        return Stale(tuple(stale), tuple(stale.values())) if stale else _NOTHING

    def exchange(self, stale: Stale) -> HaloExchange:
        """The exchange for these arrays, or for others alike."""
        key = tuple(
            (array.dtype.name, array.element_shape, array.shape, array.halo, reaches)
            for array, reaches in zip(*stale, strict=True)
        )
        if key not in self._exchanges:
            self._exchanges[key] = outside(lambda: self._new_exchange(stale))
        return self._exchanges[key]

    def _new_exchange(self, stale: Stale) -> HaloExchange:
        if CAPTURES.count and session_of(current_device().current_stream()) is not None:
            raise CaptureError(
                "the halos of this call are new, and a capture cannot make them",
                hint="make the call once before the capture, or capture the step with qp.dist.capture",
            )
        return HaloExchange(self.grid, *stale)

    def channel(self) -> Channel:
        """Where halos are exchanged on the current device."""
        device = current_device()
        if device not in self._channels:
            self._channels[device] = Channel(device)
        return self._channels[device]

    # ------------------------------------------------------------------- launches

    def local_arguments(self, values: Values, arrays: Mapping[str, ArrayView]) -> _Arguments:
        """What all launches of a call pass, as long as no array moves."""
        found = list(values[: self._count])
        views: list[ArrayView] = []
        for name in self._names:
            view = arrays[name]
            if isinstance(view, DistributedArray):
                at, view = self._pointers[name], view.local
                found[at : at + len(view.abi)] = view.abi
            views.append(view)
        for extra in (*(field.local for field in self._named.values()), *self._slots, *self._draws):
            views.append(extra)
            found += extra.abi
        origins = [index for name in self._distributed for index in _distributed(arrays[name]).start]
        return _Arguments(found, views, (*self._grid_low, *origins))

    def plan(self, number: int) -> Plan:
        return self._plans[number].run


class _Launch(NamedTuple):
    """A launch of a part of the task ``number``, with its arguments."""

    number: int
    plan: Plan
    values: Values
    views: Views

    def run(self, stream: Stream) -> object:
        values = [*self.values]  # a plan adds its own, and a captured step runs this again
        if (times := TIMED.times) is None:
            return self.plan.run(values, self.views, stream)
        begin = time.perf_counter_ns()
        result = self.plan.run(values, self.views, stream)
        times(self.number, begin, time.perf_counter_ns())
        return result


class _Arguments(NamedTuple):
    """The argument block before the grid's numbers, the arrays, and the last of these numbers."""

    values: Values
    views: list[ArrayView]
    last: tuple[int, ...]


@dataclass(slots=True)
class _Call:
    """One call of a program."""

    program: GridProgram
    values: Values
    arrays: Mapping[str, ArrayView]
    stream: Stream
    arguments: _Arguments | None = None

    def moved(self) -> None:
        """Note that an array has different memory now."""
        self.arguments = None

    def launch(self, number: int, parts: Iterable[Box], more: Sequence[NDArray] = ()) -> None:
        """Runs task ``number`` over each of ``parts``."""
        for cells in parts:
            self.prepared(number, cells, more).run(self.stream)

    def prepared(self, number: int, cells: Box, more: Sequence[NDArray] = (), plan: Plan | None = None) -> _Launch:
        """Task ``number``, or ``plan``, over ``cells``, to be run later; ``more`` are the arrays that it alone takes."""
        if self.arguments is None:
            self.arguments = self.program.local_arguments(self.values, self.arrays)
        values, views, last = self.arguments
        for extra in more:
            values = [*values, *extra.abi]
        found = [*values, *self.program.grid.shape, *cells.low, *cells.high, *last]
        return _Launch(number, plan or self.program.plan(number), found, [*views, *more])


_NOTHING: Final = Stale((), ())


def _distributed(view: ArrayView) -> DistributedArray:
    assert isinstance(view, DistributedArray)
    return view


_LANES = 64


class Totals:
    """Combines one number of each iteration at a ``lattice`` by ``op``: those in ``partial``, the rank's own block."""

    def __init__(self, grid: Division, lattice: Lattice, op: AtomicOp, type: Scalar) -> None:
        self._grid, self._op = grid, merge_op(op).value
        self.partial, self._numbers = allocated(type, lattice.block.shape)
        counts = [block.size for block in lattice.tile_blocks]
        own, most = lattice.tile_blocks[grid.world.rank], max(counts)
        self._lanes = ndarray(type, (own.size, _LANES))
        self._sent, self._gathered = ndarray(type, most), ndarray(type, most * len(counts))
        self._order, self._total = ndarray(i32, sum(counts)), ndarray(type, 1)
        self._order.from_numpy(lattice.order(most))
        pad = (1,) * (3 - grid.ndim)
        self._extents = (*pad, *lattice.tile, *(*pad, *own.shape)[1:])

    def of_partial(self, stream: Stream, where: str) -> NDArray:
        """An array with the total.  All ranks call it together, for the loop at ``where``."""
        reduce_tiles(self._numbers, self._lanes, self._sent, *self._extents, self._op, stream=stream)
        sent, gathered = FlatPart.whole(self._sent), FlatPart.whole(self._gathered)
        world = self._grid.world
        apart(lambda: world.transport.all_gather(sent, gathered, stream, world.calls.current(where)))
        combine_tiles(self._gathered, self._order, self._total, self._op, stream=stream)
        return self._total
