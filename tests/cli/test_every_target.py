"""The code of every kernel of every example for every AMD target: small, native, with the expected argument layout."""

from __future__ import annotations

import functools
import pkgutil
import re

import pytest

from quadpy import examples
from quadpy.artifact import CodeObject
from quadpy.cli.loading import load_kernels
from quadpy.codegen.objects.metadata import read_metadata
from quadpy.codegen.report import report_tasks
from quadpy.jit.kernel import Kernel
from quadpy.jit.offline import compile_with_asm
from quadpy.target import AMD_ARCHS, parse_target

WITHOUT_KERNELS = {"_common", "_pictures", "decode"}  # the decoder's are in _transformer
EXAMPLES = sorted(
    f"quadpy.examples.{module.name}"
    for module in pkgutil.iter_modules(examples.__path__)
    if module.name not in WITHOUT_KERNELS
)
TARGETS = [*AMD_ARCHS, "gfx1030:w64", "gfx1100:w64", "gfx1201:w64"]
WITHOUT_F32_ADD = {"gfx1030", "gfx1030:w64", "gfx9-generic", "gfx10-1-generic", "gfx10-3-generic"}
"""The targets whose memory units cannot add floats; LLVM's instruction tables say so."""

SCRATCH = 8  # bytes of the pointer to scratch memory, the last argument of a kernel that has slots


@functools.cache
def kernels_of(example: str) -> dict[str, Kernel]:
    return load_kernels(example)


def compiled(example: str, target: str) -> list[CodeObject]:
    return [compile_with_asm(kernel, parse_target(target), {}) for kernel in kernels_of(example).values()]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_code_object_is_lean_and_takes_the_arguments_that_the_launch_gives(example, target):
    for code in compiled(example, target):
        for report in report_tasks(code.image, code.asm, parse_target(target)):
            excess = {
                "spills": report.vgpr_spills + report.sgpr_spills,
                "scratch": report.scratch_bytes,
                "hidden arguments": report.hidden_args,
                "flat instructions": report.instructions["flat"],
            }
            assert not any(excess.values()), f"{report.task}: {excess}"
            assert report.instruction_count
        kernels = read_metadata(code.image).kernels
        assert [kernel.name for kernel in kernels] == [task.symbol for task in code.tasks]
        expected = [slot.offset for slot in code.layout.values] + [code.layout.size] * (code.slots > 0)
        for kernel in kernels:
            assert [arg.offset for arg in kernel.args] == expected
            assert -(-kernel.kernarg_bytes // 8) * 8 == code.layout.size + SCRATCH * (code.slots > 0)


@pytest.mark.parametrize("target", TARGETS)
def test_float_sums_use_the_hardware_where_it_has_them(target):
    """mpm88 adds mass and two components of momentum to nine nodes from each particle."""
    (asm,) = (code.asm for code in compiled("quadpy.examples.mpm88", target) if code.tasks[0].symbol == "p2g_t0")
    native = len(re.findall(r"^\tglobal_atomic_(?:pk_)?add_f32\b", asm, re.MULTILINE))
    swaps = len(re.findall(r"^\tglobal_atomic_cmpswap", asm, re.MULTILINE))
    assert (native, swaps) == ((0, 27) if target in WITHOUT_F32_ADD else (27, 0))
