"""How each task of a kernel runs on a target: decided here once, and read by lowering, the report and the host.

It refuses kernels that a target cannot run: loops that the host cannot count, or too many arguments.
"""

from __future__ import annotations

from dataclasses import astuple
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from quadpy.codegen.abi import layout_of
from quadpy.codegen.extent import extent_of
from quadpy.codegen.frames import CpuFrame, GpuFrame, GridStride
from quadpy.codegen.launches import cpu_launch, fused_launch, gpu_launches, latch_launch, task_symbol
from quadpy.codegen.plans.frame import cpu_frame, cpu_grain, fused_frame, gpu_frame
from quadpy.codegen.plans.fusion import fusion_of
from quadpy.codegen.plans.joining import Joined, joined_tasks
from quadpy.codegen.plans.phases import Step, meetings_of, segments_of, steps_of
from quadpy.codegen.predication import Latch, predicated_flow, predication_of
from quadpy.codegen.reduction import MOST_CHUNKS, reduction_rows
from quadpy.codegen.targets import rules_for
from quadpy.core.flow import Flow, loops_of, map_tasks
from quadpy.core.light import dataclass
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import has_barrier, needs_whole_blocks
from quadpy.ir.effects import effects_of
from quadpy.ir.nodes import Access
from quadpy.ir.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quadpy.codegen.targets.rules import GpuRules, TargetRules
    from quadpy.core.artifact import AbiLayout, Limit, TaskInfo
    from quadpy.core.target import TargetSpec


@dataclass(frozen=True, slots=True)
class Form:
    """The requirements of a launch that the kernel does not determine; code for a CPU has one form.

    predicated  loops over tasks are repeated without testing their conditions: tasks find out whether it is their turn
    fused       all tasks are one cooperative launch
    indirect    kernels read their arguments from memory
    """

    predicated: bool = False
    fused: bool = False
    indirect: bool = False

    def __str__(self) -> str:
        """For cache keys: empty if there are no requirements."""
        return "".join(f";{name}" for name, asked in zip(self.__slots__, astuple(self), strict=True) if asked)


PLAIN = Form()


@dataclass(frozen=True, slots=True)
class Schedule:
    """How one task runs.

    symbol     of the CPU's function, or of the GPU's first kernel
    frame      the order in which iterations run
    launches   in order; on the CPU one, which the entry function makes
    grain      CPU: the amount of the loop that is worth giving to another thread
    segment    the segment of a predicated loop that the task belongs to
    constants  arrays that nothing writes during the task, if the target has special loads for them
    exchanged  arrays through which threads pass each other values, with barriers in between
    before     serial tasks that the launch of the merge runs before its update; none of them has launches
    after      the same, after the update
    """

    task: ir.Task
    symbol: str
    frame: CpuFrame | GpuFrame
    launches: tuple[TaskInfo, ...]
    grain: int = 1
    segment: int | None = None
    constants: frozenset[str] = frozenset()
    exchanged: frozenset[str] = frozenset()
    before: tuple[ir.Task, ...] = ()
    after: tuple[ir.Task, ...] = ()


@dataclass(frozen=True, slots=True)
class FusedSchedule:
    """How one launch runs all tasks.

    steps    phases of tasks, and the meetings of blocks
    counter  the cell of scratch memory in which blocks count themselves when they meet
    answers  the first of two cells for each loop, which hold whether it goes on
    loops    the number of loops over tasks
    written  arrays that any task writes
    shares   of each task: where among the equal shares of the blocks it begins, and how many there are
    """

    launch: TaskInfo
    steps: tuple[Step, ...]
    counter: int
    answers: int
    loops: int
    written: frozenset[str]
    shares: tuple[tuple[int, int], ...]


COUNTER_CELLS = 16
"""The counter has a cache line to itself."""


@dataclass(frozen=True, slots=True)
class KernelSchedule:
    """How a kernel runs on a target: a value, which can be compared, hashed, shown and pickled.

    layout         the position of each value in the argument block
    launches       all, in the numbering of ``flow``
    cells          eight-byte cells of scratch memory
    takes_scratch  whether GPU kernels take its address
    latches        the tasks of predicated loops that a decision follows; the last cell belongs to the latches
    fused          how one launch runs all tasks, if the form asks for that
    limits         of accesses that may be certain to leave their arrays
    """

    kernel: ir.Kernel
    form: Form
    spec: TargetSpec
    layout: AbiLayout
    tasks: tuple[Schedule, ...]
    launches: tuple[TaskInfo, ...]
    flow: Flow
    cells: int
    takes_scratch: bool
    latches: tuple[Latch, ...] = ()
    fused: FusedSchedule | None = None
    limits: tuple[Limit, ...] = ()

    @property
    def rules(self) -> TargetRules:
        """How the target expresses what the kernel does."""
        return rules_for(self.spec)

    @property
    def takes_results(self) -> bool:
        """Whether GPU kernels take the address of memory for the results; otherwise these are in scratch memory."""
        return self.rules.gpu is not None and self.form == PLAIN and bool(self.kernel.results)

    @property
    def latch_launches(self) -> tuple[TaskInfo, ...]:
        return self.launches[len(self.launches) - len(self.latches) :]


def schedule_of(kernel: ir.Kernel, spec: TargetSpec, form: Form = PLAIN) -> KernelSchedule:
    """The schedule of ``kernel``, after the target's passes; NotFusable if it cannot be one launch."""
    rules, layout = rules_for(spec), layout_of(kernel)
    require_counts(kernel, layout)
    if not form.indirect:
        require_parameters(kernel, layout, spec)
    if form.fused:
        return _fused(kernel, form, spec, layout)
    if rules.gpu is None:
        return _cpu(kernel, form, spec, layout)
    return _gpu(kernel, form, spec, rules.gpu, layout)


def _cpu(kernel: ir.Kernel, form: Form, spec: TargetSpec, layout: AbiLayout) -> KernelSchedule:
    tasks = []
    for number, task in enumerate(kernel.tasks):
        frame, launch = cpu_frame(kernel, task), cpu_launch(kernel, number, layout)
        tasks.append(Schedule(task, launch.symbol, frame, (launch,), cpu_grain(kernel, task, frame)))
    launches = tuple(schedule.launches[0] for schedule in tasks)
    return KernelSchedule(
        kernel, form, spec, layout, tuple(tasks), launches, kernel.flow, kernel.slots, takes_scratch=False
    )


def _gpu(kernel: ir.Kernel, form: Form, spec: TargetSpec, gpu: GpuRules, layout: AbiLayout) -> KernelSchedule:
    first_cells, cells = _result_cells(kernel)
    found = predication_of(kernel.flow) if form.predicated else None
    tasks, joined = [], joined_tasks(kernel)
    elsewhere = {other for each in joined.values() for numbers in each for other in numbers}
    for number, task in enumerate(kernel.tasks):
        frame, others = gpu_frame(kernel, task, first_cells[number]), joined.get(number, Joined())
        tasks.append(
            Schedule(
                task,
                task_symbol(kernel, number),
                frame,
                () if number in elsewhere else gpu_launches(kernel, number, frame, layout, gpu, others),
                segment=found.segments.get(number) if found else None,
                constants=_constants(kernel, task, form, gpu),
                exchanged=_exchanged(task),
                before=tuple(kernel.tasks[other] for other in others.before),
                after=tuple(kernel.tasks[other] for other in others.after),
            )
        )
    ends = list(accumulate((len(schedule.launches) for schedule in tasks), initial=0))
    ranges = [range(a, b) for a, b in pairwise(ends)]
    latches = found.latches if found else ()
    launches = [launch for schedule in tasks for launch in schedule.launches]
    launches += [latch_launch(kernel, number, latch) for number, latch in enumerate(latches)]
    if found:
        flow, cells = predicated_flow(kernel.flow, ranges, ends[-1], found), cells + 1
    else:
        flow = map_tasks(kernel.flow, ranges.__getitem__)
    return KernelSchedule(
        kernel,
        form,
        spec,
        layout,
        tuple(tasks),
        tuple(launches),
        flow,
        cells,
        takes_scratch=cells > 0,
        latches=latches,
    )


def _fused(kernel: ir.Kernel, form: Form, spec: TargetSpec, layout: AbiLayout) -> KernelSchedule:
    """Cells of scratch memory: those of separate launches, then the counter's and two for each loop."""
    fusion, (first_cells, cells) = fusion_of(kernel, rules_for(spec).gpu), _result_cells(kernel)
    steps = steps_of(kernel)
    frames = [
        fused_frame(kernel, t, first_cells[number], copies=fusion.copies) for number, t in enumerate(kernel.tasks)
    ]
    divided = [[p.task for p in found if isinstance(frames[p.task], GridStride)] for found in segments_of(steps)]
    others = [[number] for number, frame in enumerate(frames) if not isinstance(frame, GridStride)]
    at_once = [found for found in [*divided, *others] if found]
    launch = fused_launch(kernel, fusion.block_dim, layout, at_once, meetings_of(steps))
    tasks = tuple(Schedule(t, launch.symbol, frame, ()) for t, frame in zip(kernel.tasks, frames, strict=True))
    places = {task: (number, len(found)) for found in at_once for number, task in enumerate(found)}
    shares = tuple(places[number] for number in range(len(frames)))
    counter = -(-cells // COUNTER_CELLS) * COUNTER_CELLS
    loops = len(list(loops_of(kernel.flow)))
    answers = counter + COUNTER_CELLS
    fused = FusedSchedule(launch, steps, counter, answers, loops, frozenset(_written(kernel)), shares)
    return KernelSchedule(
        kernel, form, spec, layout, tasks, (launch,), (), answers + 2 * loops, takes_scratch=True, fused=fused
    )


def _result_cells(kernel: ir.Kernel) -> tuple[list[int], int]:
    """The first cell for the results of each task's chunks, and how many cells there are with the kernel's slots."""
    rows, count = reduction_rows(kernel)
    first = [kernel.slots + rows[number] * MOST_CHUNKS for number in range(len(kernel.tasks))]
    return first, kernel.slots + count * MOST_CHUNKS


def _constants(kernel: ir.Kernel, task: ir.Task, form: Form, gpu: GpuRules) -> frozenset[str]:
    """The constants; in the direct form, LLVM finds them itself: arrays that are ``noalias`` and not written."""
    if not (form.indirect and kernel.noalias and gpu.has_constant_loads):
        return frozenset()
    return frozenset(name for name, access in effects_of(task) if access == Access.READ)


def _exchanged(task: ir.Task) -> frozenset[str]:
    """The arrays through which the threads of a block may pass each other values: read and written, with barriers."""
    if not has_barrier(task.body) and not any(
        isinstance(n, ir.Wave) and n.op is ir.WaveOp.SYNC for n in walk(task.body)
    ):
        return frozenset()
    return frozenset(name for name, access in effects_of(task) if Access.READ in access and access != Access.READ)


def _written(kernel: ir.Kernel) -> Iterator[str]:
    return (name for task in kernel.tasks for name, access in effects_of(task) if access != Access.READ)


_MOST_PARAMETERS: Final = {"amdgpu": 32_764, "nvptx": 32_764}
"""Bytes of arguments that a launch takes: PTX's limit from sm_70 on; AMD documents none, and gets the same."""


def require_counts(kernel: ir.Kernel, layout: AbiLayout) -> None:
    """The host must be able to count the blocks of a loop whose iterations wait for each other."""
    for task in kernel.tasks:
        if not isinstance(task, ir.ParallelTask) or not needs_whole_blocks(task.body):
            continue
        if extent_of(task, layout) is None:
            raise KernelTypeError(
                "the number of iterations of this loop must follow from arguments and shapes: its iterations wait for each "
                "other, so the loop runs in whole blocks", task.axes[0].span,
                hint="pass the number as an argument, or compute it from arguments with only + - * // % min and max, "
                     "outside run-time branches and loops",
            )  # fmt: skip


def require_parameters(kernel: ir.Kernel, layout: AbiLayout, spec: TargetSpec) -> None:
    """The arguments must fit into a launch."""
    size, most = layout.size + 8, _MOST_PARAMETERS.get(spec.family)
    if most is not None and size > most:
        raise KernelTypeError(
            f"{kernel.name} takes {len(kernel.params):,} parameters of {size:,} bytes; a launch on {spec} takes at most {most:,}",
            kernel.span, hint="combine arrays of the same shape into one array with one more axis",
        )  # fmt: skip
