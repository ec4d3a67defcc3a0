"""From LLVM IR as text to code for a GPU: data layouts, target machines, LLVM's passes.

LLVM aborts the process on code that it cannot select; only its parser and verifier report errors.  Text passed to this
module must therefore come from the lowering, which follows the target's capability table.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import llvmlite.binding as llvm

from quadpy.codegen.host import initialize_all, parsed
from quadpy.codegen.objects.link import link_amdgpu
from quadpy.codegen.ptx_repairs import repaired
from quadpy.core.target import NVIDIA_ARCHS, TargetSpec, amd_arch
from quadpy.errors import CodegenError

AMDGPU_TRIPLE: Final = "amdgcn-amd-amdhsa"
AMDGPU_LAYOUT: Final = (
    "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48"
    "-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024"
    "-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
)
NVPTX_TRIPLE: Final = "nvptx64-nvidia-cuda"
NVPTX_LAYOUT: Final = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

_BEFORE_PTX_81: Final = ("sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a")
"""Processors for which LLVM writes an older version by default."""

_NAMES: Final = {"amdgpu": (AMDGPU_TRIPLE, AMDGPU_LAYOUT), "nvptx": (NVPTX_TRIPLE, NVPTX_LAYOUT)}


def gpu_header(spec: TargetSpec) -> str:
    """The first lines of a module for ``spec``: text parsed without a data layout gets the wrong alignments."""
    triple, layout = _NAMES[spec.family]
    return f'target datalayout = "{layout}"\ntarget triple = "{triple}"\n'


def compile_amdgpu(ir_text: str, spec: TargetSpec, *, opt: int = 3, want_asm: bool = False) -> tuple[bytes, str]:
    """The linked code object of ``ir_text`` and its assembly text (an empty string unless asked for).

    ``ir_text`` begins with ``gpu_header(spec)``.  ``opt`` is LLVM's level, 0 to 3.  CodegenError if LLVM rejects the
    text, LinkError if it refers to undefined symbols.  Safe from any thread; llvmlite runs one call at a time.
    """
    obj, assembly = emit_amdgpu(ir_text, spec, opt=opt, want_asm=want_asm)
    return link_amdgpu(obj), assembly


def emit_amdgpu(ir_text: str, spec: TargetSpec, *, opt: int = 3, want_asm: bool = False) -> tuple[bytes, str]:
    """Like ``compile_amdgpu``, but returns LLVM's relocatable object, not linked."""
    if spec.family != "amdgpu":
        raise CodegenError(f"{spec} is not an AMD target")
    amd_arch(spec.arch)  # LLVM replaces an unknown name by another processor, and aborts later
    machine = _machine(spec, opt)
    with _optimized(ir_text, spec, machine, opt) as module:
        # Emitting rewrites a module in place, and emitting one twice aborts the process: assembly comes from a copy.
        optimized = str(module) if want_asm else ""
        obj = machine.emit_object(module)
    if not want_asm:
        return obj, ""
    with parsed(optimized) as module:
        return obj, machine.emit_assembly(module)


PLAIN_PARAMETERS: Final = 4_352
"""Bytes of parameters that a kernel may have in every version of PTX that quadpy writes."""
_MANY_PARAMETERS: Final = "+ptx81"
"""The first version that allows 32,764 bytes; drivers from CUDA 12.1 on read it."""


def compile_nvptx(ir_text: str, spec: TargetSpec, *, opt: int = 3, parameter_bytes: int = 0) -> str:
    """The PTX of ``ir_text``, which NVIDIA's driver compiles; arguments and errors as for ``compile_amdgpu``.

    ``parameter_bytes`` is the most that any of its kernels takes: large ones need a newer PTX than the processor.
    """
    if spec.family != "nvptx" or spec.arch not in NVIDIA_ARCHS:
        raise CodegenError(f"{spec} is not an NVIDIA target")
    newer = parameter_bytes > PLAIN_PARAMETERS and spec.arch in _BEFORE_PTX_81
    machine = _machine(replace(spec, features=_MANY_PARAMETERS) if newer else spec, opt)
    with _optimized(ir_text, spec, machine, opt) as module:
        return repaired(str(machine.emit_assembly(module)))


@functools.cache
def _machine(spec: TargetSpec, opt: int) -> llvm.TargetMachine:
    initialize_all()
    target = llvm.Target.from_triple(_NAMES[spec.family][0])
    return target.create_target_machine(cpu=spec.arch, features=spec.features, opt=opt)


@contextmanager
def _optimized(ir_text: str, spec: TargetSpec, machine: llvm.TargetMachine, opt: int) -> Iterator[llvm.ModuleRef]:
    with parsed(ir_text) as module:
        if (module.triple, module.data_layout) != _NAMES[spec.family]:
            raise CodegenError(f"the module does not name the data layout and triple of {spec.family.upper()}")
        options = llvm.create_pipeline_tuning_options(speed_level=opt)
        options.slp_vectorization = opt > 1  # off by default in llvmlite; it makes the packed f16 and f32 instructions
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        yield module
