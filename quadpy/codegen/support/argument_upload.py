"""The kernels that write arguments into the device's memory, in the order of a stream.

The bytes are arguments of the launch itself, which the driver copies: so no buffer on the host has to live until the
work is done, and nothing is allocated.
"""

from __future__ import annotations

import functools
from typing import Final

from quadpy.codegen.emit import compile_amdgpu, compile_nvptx, gpu_header
from quadpy.codegen.lower.text import ModuleText
from quadpy.codegen.targets import rules_for
from quadpy.codegen.targets.rules import GpuRules
from quadpy.core.artifact import AbiLayout, CodeObject
from quadpy.core.target import TargetSpec, amd_arch

UPLOAD_SIZES: Final = (120, 248, 504, 1016, 2040, 4024)
"""Bytes that one launch writes; with the address before them they stay below 4 KiB, the most that CUDA and HIP take."""

_DATA: Final = {"amdgpu": "ptr addrspace(4) byref([{0} x i8]) align 8", "nvptx": "ptr byval([{0} x i8]) align 8"}
_FROM: Final = {"amdgpu": "ptr addrspace(4)", "nvptx": "ptr"}


def upload_name(nbytes: int) -> str:
    """The symbol of the kernel for ``nbytes``, which takes an address (i64) and the bytes, in nbytes / 8 threads."""
    return f"quadpy_upload_{nbytes}"


@functools.cache
def upload_code(spec: TargetSpec) -> CodeObject:
    """The kernels of all sizes for a GPU."""
    module, gpu = ModuleText(), rules_for(spec).gpu
    assert gpu is not None
    module.declare(gpu.thread, "i32", ())
    module.functions += [_kernel(nbytes, gpu, spec.family) for nbytes in UPLOAD_SIZES]
    if spec.family == "amdgpu":
        module.flag("amdhsa_code_object_version", amd_arch(spec.arch).code_object)
    text = module.text(gpu_header(spec))
    image = compile_amdgpu(text, spec)[0] if spec.family == "amdgpu" else compile_nvptx(text, spec).encode()
    return CodeObject(target=str(spec), image=image, entry="", layout=AbiLayout((), 0), tasks=())


def _kernel(nbytes: int, gpu: GpuRules, family: str) -> str:
    """The kernel's text: one thread for each eight bytes."""
    data, source = _DATA[family].format(nbytes), _FROM[family]
    return f"""
define {gpu.convention} void @{upload_name(nbytes)}(ptr addrspace(1) %target, {data} %data) {gpu.attributes(nbytes // 8)} nounwind {{
  %thread = call i32 @{gpu.thread}()
  %at = zext i32 %thread to i64
  %from = getelementptr i64, {source} %data, i64 %at
  %to = getelementptr i64, ptr addrspace(1) %target, i64 %at
  %held = load i64, {source} %from, align 8
  store i64 %held, ptr addrspace(1) %to, align 8
  ret void
}}
"""
