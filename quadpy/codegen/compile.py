"""From the IR to machine code: one call for every target.  Owns: ``lower``, ``compile_kernel``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Final

from quadpy.artifact import CodeObject, TaskInfo
from quadpy.codegen.abi import hidden_of, layout_of
from quadpy.codegen.emit import compile_amdgpu, compile_nvptx, gpu_header
from quadpy.codegen.extent import extent_of, tiled_extent
from quadpy.codegen.fused import fused_info, require_fusable
from quadpy.codegen.host import compile_host, compile_host_asm, host_header
from quadpy.codegen.lower.gpu.fused import fused_slots
from quadpy.codegen.lower.gpu.kernel import scratch_slots
from quadpy.codegen.lower.gpu.latch import latch_name
from quadpy.codegen.lower.gpu.tasks import launches_of
from quadpy.codegen.lower.kernel import lower_for_cpu, lower_for_gpu
from quadpy.codegen.lower.task import entry_name, task_name
from quadpy.codegen.pipeline import TARGET_PASSES
from quadpy.codegen.predication import Predication, predicated_flow, predication_of
from quadpy.errors import KernelTypeError
from quadpy.flow import map_tasks
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import has_barrier
from quadpy.ir.effects import effects_of, scratch_use
from quadpy.ir.pipeline import run_passes
from quadpy.ir.printer import print_effects, print_expr
from quadpy.target import TargetSpec

__all__ = ["compile_kernel", "lower"]


def lower(kernel: ir.Kernel, spec: TargetSpec) -> str:
    """``kernel`` as LLVM IR for ``spec``; CodegenError where the IR breaks a rule."""
    kernel = run_passes(TARGET_PASSES[spec.family], kernel)
    _require_counts(kernel)
    _require_parameters(kernel, spec)
    if spec.family == "cpu":
        return lower_for_cpu(kernel, host_header())
    return lower_for_gpu(kernel, spec, gpu_header(spec))


def compile_kernel(kernel: ir.Kernel, spec: TargetSpec, *, want_asm: bool = False) -> CodeObject:
    """Machine code of ``kernel`` for ``spec``, with its assembly where ``want_asm`` asks for it.

    CodegenError where the IR breaks a rule or LLVM refuses the module, NotFusable where one launch is asked for that
    cannot be.
    """
    if kernel.fused:
        require_fusable(kernel, spec)
    text = lower(kernel, spec)
    image, asm = _machine_code(text, spec, 0 if kernel.indirect else layout_of(kernel).size, want_asm=want_asm)
    if kernel.fused:
        return CodeObject(
            str(spec),
            image,
            "",
            layout_of(kernel),
            (fused_info(kernel),),
            slots=fused_slots(kernel),
            hidden=hidden_of(kernel, scratch=True),
            asm=asm,
        )
    infos = [tuple(_task_infos(kernel, number, spec)) for number in range(len(kernel.tasks))]
    ends = list(accumulate(map(len, infos), initial=0))
    launches = [range(a, b) for a, b in pairwise(ends)]
    found = None if spec.family == "cpu" else predication_of(kernel)
    latches = tuple(_latch_infos(kernel, found)) if found else ()
    slots = kernel.slots if spec.family == "cpu" else scratch_slots(kernel)
    return CodeObject(
        target=str(spec),
        image=image,
        entry=entry_name(kernel) if spec.family == "cpu" else "",
        layout=layout_of(kernel),
        tasks=tuple(info for task in infos for info in task) + latches,
        results=tuple(t.name for t in kernel.results),
        slots=slots,
        hidden=hidden_of(kernel, scratch=slots > 0 and spec.family != "cpu"),
        flow=predicated_flow(kernel.flow, launches, ends[-1], found)
        if found
        else map_tasks(kernel.flow, launches.__getitem__),
        asm=asm,
    )


def _machine_code(text: str, spec: TargetSpec, argument_bytes: int, *, want_asm: bool) -> tuple[bytes, str]:
    """What the target's driver loads, and its assembly where that is wanted."""
    match spec.family:
        case "cpu":
            return compile_host(text, spec.arch), compile_host_asm(text, spec.arch) if want_asm else ""
        case "amdgpu":
            return compile_amdgpu(text, spec, want_asm=want_asm)
        case "nvptx":
            ptx = compile_nvptx(text, spec, parameter_bytes=argument_bytes + 8)  # and the address of scratch memory
            return ptx.encode(), ptx


def _task_infos(kernel: ir.Kernel, number: int, spec: TargetSpec) -> Iterator[TaskInfo]:
    task = kernel.tasks[number]
    axes = task.axes if isinstance(task, ir.ParallelTask) else ()
    count, effects = " * ".join(map(_count, axes)), print_effects(effects_of(task))
    loop = task if isinstance(task, ir.ParallelTask) else None
    whole = has_barrier(task.body)
    if spec.family == "cpu":
        dim, extent = (loop.block_dim or 0, extent_of(loop, layout_of(kernel))) if loop and whole else (0, None)
        yield TaskInfo(task_name(kernel, number), bool(axes), dim, count, effects, extent=extent, has_barrier=whole)
        return
    for launch in launches_of(kernel, number):
        counted = count if launch.parallel else ""
        extent = extent_of(loop, layout_of(kernel)) if launch.parallel and loop else None
        yield TaskInfo(
            launch.symbol, launch.parallel, launch.block_dim, counted, effects, launch.grid_stride, extent, whole,
            tiled_extent(loop, layout_of(kernel)) if launch.tiled and loop else None, scratch_use(task),
        )  # fmt: skip


def _latch_infos(kernel: ir.Kernel, found: Predication) -> Iterator[TaskInfo]:
    for number, latch in enumerate(found.latches):
        asked = tuple((name, "r") for name in sorted({name for name, _ in latch.decisions}))
        yield TaskInfo(latch_name(kernel, number), False, 1, effects=asked, scratch="rw", latch=True)


def _require_counts(kernel: ir.Kernel) -> None:
    """A launch must know how many blocks a loop has in which iterations wait for each other."""
    for task in kernel.tasks:
        if isinstance(task, ir.ParallelTask) and has_barrier(task.body) and extent_of(task, layout_of(kernel)) is None:
            raise KernelTypeError(
                "how many iterations this loop has must follow from arguments and shapes: with block.sync() in it, it "
                "runs in whole blocks", task.axes[0].span,
                hint="pass the number as an argument, built with + - * // % and min and max only",
            )  # fmt: skip


_MOST_PARAMETERS: Final = {"amdgpu": 32_764, "nvptx": 32_764}
"""Bytes of arguments that a launch takes: of NVIDIA's from sm_70 on by PTX; of AMD's, which name none, as many."""


def _require_parameters(kernel: ir.Kernel, spec: TargetSpec) -> None:
    """The arguments fit into a launch."""
    size, most = layout_of(kernel).size + 8, _MOST_PARAMETERS.get(spec.family)
    if most is not None and not kernel.indirect and size > most:
        raise KernelTypeError(
            f"{kernel.name} takes {len(kernel.params):,} parameters, {size:,} bytes; a launch on {spec} takes {most:,}",
            kernel.span, hint="put arrays of one shape into one array with one more axis",
        )  # fmt: skip


def _count(axis: ir.Axis) -> str:
    start, stop, step = (print_expr(e) for e in (axis.start, axis.stop, axis.step))
    return f"range({start}, {stop}, {step})"
