"""Kernels with distributed arrays: each loop runs over the rank's own cells, after the halos that it reads are renewed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quadpy.codegen.abi import layout_of
from quadpy.core.artifact import HIDDEN, CodeObject, TaskInfo
from quadpy.dist.arrays import DistributedArray
from quadpy.dist.division import Division
from quadpy.dist.localise import Geometry, LocalKernel, localised
from quadpy.dist.program import GridProgram, TaskPlans
from quadpy.errors import ArgumentError, DistributedError
from quadpy.ir import nodes as ir
from quadpy.ir.effects import effects_of
from quadpy.ir.printer import print_effects
from quadpy.jit.plan import Plan, Values, Views, unknown_footprints
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.fusion import Fusion
from quadpy.runtime.launch.launch import HostLaunch, Prepared
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.streams.stream import Stream


class DistributedPlan:
    """A ``Plan`` for calls with distributed arrays: the ``Plan`` of each task, with exchanges between them.

    ``distributed`` are the parameters with such arrays, ``named`` the grid's fields that the kernel names, ``fields``
    its other fields.  ``make`` compiles a kernel of one task; it is told which task is the last, as its plan has the
    result.
    """

    def __init__(
        self, kernel: ir.Kernel, distributed: Sequence[str], named: Mapping[str, DistributedArray],
        make: Callable[[ir.Kernel, bool], Plan], fields: tuple[FieldMemory, ...],
    ) -> None:  # fmt: skip
        infos = tuple(
            TaskInfo(task.name, isinstance(task, ir.ParallelTask), effects=print_effects(effects_of(task)))
            for task in kernel.tasks
        )
        self.code = CodeObject("", b"", "", layout_of(kernel), infos, tuple(t.name for t in kernel.results))
        self.footprints = unknown_footprints(self.code)
        self.fields = fields
        self.kernel, self.distributed, self.named = kernel, (*distributed, *named), dict(named)
        self.spans = tuple(task.span for task in kernel.tasks)
        self.arrays = [
            param.name
            for param in kernel.params
            if isinstance(param, ir.ArrayParam) and not param.name.startswith(HIDDEN)
        ]
        self._fields_of_grids = list(named.values())
        self._make = make
        self._lock = new_lock()
        self._parts: dict[Geometry, tuple[LocalKernel, tuple[TaskPlans, ...]]] = {}

    def run(self, values: Values, views: Views, stream: object) -> object:
        """Like ``Plan.run``; all ranks make the call together.

        Raises:
            DistributedError: the kernel does something that ranks cannot do together; the error shows the line.
        """
        return self.program(views).run(values, views, stream_of(current_device(), stream))

    def prepare(self, values: Values, views: Views, stream: Stream | None = None) -> Prepared | HostLaunch:
        """Raises an error: a call with distributed arrays is several launches, with messages between them."""
        raise ArgumentError(
            f"{self.kernel.name} takes distributed arrays, and is not a single node of a graph", hint="capture the call"
        )

    def apart(self, values: Values) -> Plan:
        """See ``Plan.apart``."""
        return self

    def fusion(self, values: Values) -> Fusion:
        """Like ``Plan.fusion``."""
        return Fusion(False, "messages between ranks come between its tasks")

    def program(self, views: Views) -> GridProgram:
        """The program that runs on the grid of these arrays."""
        grid = self._grid_of(views)
        with self._lock:
            programs: dict[object, GridProgram] = grid.programs.setdefault(self, {})
            shapes = tuple([view.shape for view in views if isinstance(view, DistributedArray)])
            found = programs.get(shapes)
            if found is None:
                found = programs[shapes] = self._new_program(grid, views)
            return found

    def _new_program(self, grid: Division, views: Views) -> GridProgram:
        arrays = {**dict(zip(self.arrays, views, strict=True)), **self.named}
        lattices = {name: each.lattice for name, each in arrays.items() if isinstance(each, DistributedArray)}
        shapes = tuple((name, lattice.shape) for name, lattice in lattices.items())
        geometry = Geometry(grid.shape, grid.is_split, grid.periodic, shapes)
        if geometry not in self._parts:
            self._parts[geometry] = self._compiled(geometry)
        local, plans = self._parts[geometry]
        return GridProgram(self.kernel, local, plans, grid, self.arrays, lattices, self.named, geometry.extents)

    def _grid_of(self, views: Views) -> Division:
        distributed = [view for view in views if isinstance(view, DistributedArray)] + self._fields_of_grids
        grid = distributed[0].grid
        for each in distributed:
            if each.grid is not grid:
                raise self._of_different_grids(views)
        return grid

    def _of_different_grids(self, views: Views) -> DistributedError:
        grids: dict[int, tuple[str, Division]] = {}
        for name, view in [*zip(self.arrays, views, strict=True), *self.named.items()]:
            if isinstance(view, DistributedArray):
                grids.setdefault(id(view.grid), (name, view.grid))
        (one, a), (other, b), *_ = grids.values()
        which = f"different grids: {a!r} and {b!r}" if repr(a) != repr(b) else f"two grids that are alike: {a!r}"
        return DistributedError(
            f"{self.kernel.name}: {one} and {other} are of {which}", self.kernel.span,
            hint="call qp.dist.Grid once, and make both arrays of that grid",
        )  # fmt: skip

    def _compiled(self, geometry: Geometry) -> tuple[LocalKernel, tuple[TaskPlans, ...]]:
        local, make = localised(self.kernel, self.distributed, geometry), self._make
        last = len(local.tasks) - 1
        plans = tuple(
            TaskPlans(make(task.kernel, number == last), None if task.finish is None else make(task.finish, False))
            for number, task in enumerate(local.tasks)
        )
        return local, plans
