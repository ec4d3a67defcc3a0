"""Compiles the IR to machine code: one call for every target."""

from __future__ import annotations

from dataclasses import replace

from quadpy.codegen.abi import hidden_of
from quadpy.codegen.bounds import limits_of
from quadpy.codegen.emit import compile_amdgpu, compile_nvptx, gpu_header
from quadpy.codegen.extent import integer_of
from quadpy.codegen.host import compile_host, compile_host_asm, host_header
from quadpy.codegen.launches import entry_symbol
from quadpy.codegen.lower.kernel import lower_kernel
from quadpy.codegen.pipeline import TARGET_PASSES
from quadpy.codegen.schedule import PLAIN, Form, KernelSchedule, schedule_of
from quadpy.core.artifact import CodeObject
from quadpy.core.target import TargetSpec, amd_arch
from quadpy.ir import nodes as ir
from quadpy.ir.pipeline import run_passes
from quadpy.ir.walk import walk


def lower(kernel: ir.Kernel, spec: TargetSpec, form: Form = PLAIN) -> str:
    """``kernel`` as LLVM IR for ``spec``; errors as for ``compile_kernel``."""
    return _text(schedule_for(kernel, spec, form), spec)


def compile_kernel(kernel: ir.Kernel, spec: TargetSpec, form: Form = PLAIN, *, want_asm: bool = False) -> CodeObject:
    """Machine code of ``kernel`` for ``spec`` in ``form``, with its assembly if ``want_asm`` is set.

    CodegenError if the IR breaks a rule or LLVM rejects the module, NotFusable if ``form`` asks for one launch and that
    is impossible.
    """
    schedule = schedule_for(kernel, spec, form)
    text = _text(schedule, spec)
    image, asm = _machine_code(text, spec, 0 if form.indirect else schedule.layout.size, want_asm=want_asm)
    return code_object(schedule, spec, image, asm)


def code_object(schedule: KernelSchedule, spec: TargetSpec, image: bytes, asm: str = "") -> CodeObject:
    """``image`` with the information that a launch needs."""
    kernel, layout = schedule.kernel, schedule.layout
    return CodeObject(
        target=str(spec),
        image=image,
        entry=entry_symbol(kernel) if spec.family == "cpu" else "",
        layout=layout,
        tasks=schedule.launches,
        results=tuple(t.name for t in kernel.results),
        slots=schedule.cells,
        hidden=hidden_of(layout, scratch=schedule.takes_scratch, results=schedule.takes_results),
        flow=schedule.flow,
        messages=tuple(dict.fromkeys(node.message.text for node in walk(kernel) if isinstance(node, ir.Print))),
        asm=asm,
        sites=kernel.sites,
        limits=schedule.limits,
        shadow=None if kernel.shadow is None else integer_of(kernel.shadow, layout),
    )


def schedule_for(kernel: ir.Kernel, spec: TargetSpec, form: Form = PLAIN) -> KernelSchedule:
    """How ``kernel`` runs on ``spec``, after the passes of the target; errors as for ``compile_kernel``."""
    schedule = schedule_of(run_passes(TARGET_PASSES[spec.family], kernel), spec, form)
    return replace(schedule, limits=tuple(limit for limit, _ in limits_of(kernel, schedule.layout)))


def _text(schedule: KernelSchedule, spec: TargetSpec) -> str:
    if spec.family == "cpu":
        return lower_kernel(schedule, host_header(spec.arch))
    flags = {"amdhsa_code_object_version": amd_arch(spec.arch).code_object} if spec.family == "amdgpu" else {}
    return lower_kernel(schedule, gpu_header(spec), flags)


def _machine_code(text: str, spec: TargetSpec, argument_bytes: int, *, want_asm: bool) -> tuple[bytes, str]:
    """The bytes that the target's driver loads, and their assembly if wanted."""
    match spec.family:
        case "cpu":
            return compile_host(text, spec.arch), compile_host_asm(text, spec.arch) if want_asm else ""
        case "amdgpu":
            return compile_amdgpu(text, spec, want_asm=want_asm)
        case "nvptx":
            ptx = compile_nvptx(
                text, spec, parameter_bytes=argument_bytes + 16
            )  # and the addresses of scratch memory and results
            return ptx.encode(), ptx
