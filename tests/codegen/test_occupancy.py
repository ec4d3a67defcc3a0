"""The occupancy model, against the numbers that LLVM itself prints into its assembly."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import llvmlite.binding as llvm
import pytest

from quadpy.codegen.emit import AMDGPU_TRIPLE, compile_amdgpu
from quadpy.codegen.objects.metadata import KernelInfo, read_metadata
from quadpy.codegen.report import occupancy
from quadpy.core.target import TargetSpec, amd_arch, parse_target
from quadpy.errors import CodegenError

ModuleText = Callable[[str, TargetSpec], str]


def hungry(number: int, vgprs: int, sgprs: int, lds: int, block: int) -> str:
    """A kernel that takes this many registers and bytes, through the clobbers of an empty assembly statement."""
    return f"""
        @lds{number} = internal addrspace(3) global [{max(lds, 1)} x i8] poison, align 16
        define amdgpu_kernel void @k{number}() #{number} {{
          call void asm sideeffect "", "~{{v{vgprs - 1}}},~{{s{sgprs - 1}}}"()
          {f"store volatile i8 1, ptr addrspace(3) @lds{number}" if lds else ""}
          ret void
        }}
        attributes #{number} = {{ "amdgpu-flat-work-group-size"="{block},{block}" }}"""


CASES = [
    # VGPRs, SGPRs, bytes of LDS, threads per block
    *((vgprs, 16, 0, 64) for vgprs in (8, 28, 52, 64, 65, 96, 100, 128, 168, 200, 256)),
    *((8, sgprs, 0, 64) for sgprs in (80, 96, 100, 102)),
    *((8, 16, lds, block) for lds in (512, 4096, 8192, 20000, 65536) for block in (32, 64, 128, 256, 1024)),
    (72, 16, 16384, 256),
]


def printed_by_llvm(text: str, spec: TargetSpec) -> list[int]:
    """The occupancy of each kernel, from the comments of verbose assembly."""
    target = llvm.Target.from_triple(AMDGPU_TRIPLE)
    machine = target.create_target_machine(cpu=spec.arch, features=spec.features, opt=3)
    machine.set_asm_verbosity(True)
    module = llvm.parse_assembly(text, llvm.create_context())
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    return [int(number) for number in re.findall(r"; Occupancy: *(\d+)", machine.emit_assembly(module))]


def test_is_what_llvm_computes(amd: TargetSpec, module_text: ModuleText) -> None:
    text = module_text("".join(hungry(number, *case) for number, case in enumerate(CASES)), amd)
    kernels = read_metadata(compile_amdgpu(text, amd)[0]).kernels
    for case, kernel, expected in zip(CASES, kernels, printed_by_llvm(text, amd), strict=True):
        *_, block = case
        result = occupancy(amd, kernel, block)
        assert result.waves_per_simd == expected, f"{case}: {kernel}"
        assert result.max_waves == amd_arch(amd.arch).max_waves
        assert (result.waves_per_simd == result.max_waves) == (result.limited_by == "wave slots")


@pytest.fixture(scope="module")
def kernel(module_text: ModuleText) -> KernelInfo:
    spec = parse_target("gfx942")
    return read_metadata(compile_amdgpu(module_text("saxpy.ll", spec), spec)[0]).kernels[0]


@pytest.mark.parametrize(
    ("target", "changes", "block", "waves", "limit"),
    [
        ("gfx942", {}, 256, 8, "wave slots"),
        ("gfx942", {"vgprs": 129}, 256, 3, "vgprs"),
        ("gfx942", {"sgprs": 102}, 256, 7, "sgprs"),
        ("gfx942", {"lds_bytes": 32768}, 256, 2, "lds"),
        ("gfx942", {"lds_bytes": 32768}, 1024, 8, "wave slots"),
        ("gfx942", {"vgprs": 72}, 1024, 4, "block size"),  # 28 waves have registers, blocks have 16
        ("gfx1100", {"lds_bytes": 32768}, 256, 8, "lds"),
        ("gfx1100:w64", {"vgprs": 100}, 64, 7, "vgprs"),
        ("gfx1250", {}, 64, 8, "block size"),  # 16 barriers for blocks of two waves
    ],
)
def test_what_limits(
    target: str, changes: dict[str, int], block: int, waves: int, limit: str, kernel: KernelInfo
) -> None:
    result = occupancy(parse_target(target), replace(kernel, **changes), block)
    assert (result.waves_per_simd, result.limited_by) == (waves, limit)


def test_dynamic_lds_counts(kernel: KernelInfo) -> None:
    spec = parse_target("gfx942")
    static = occupancy(spec, replace(kernel, lds_bytes=16384), 256)
    assert occupancy(spec, kernel, 256, dynamic_lds=16384) == static
    assert static.limited_by == "lds"


@pytest.mark.parametrize(
    ("changes", "block"), [({"lds_bytes": 65537}, 64), ({"vgprs": 513}, 64), ({"vgprs": 256}, 1024), ({}, 0), ({}, -64)]
)
def test_a_block_that_never_fits(changes: dict[str, int], block: int, kernel: KernelInfo) -> None:
    with pytest.raises(CodegenError, match=f"no block of {block} threads of 'saxpy' can run on gfx942"):
        occupancy(parse_target("gfx942"), replace(kernel, **changes), block)
