"""The code of every kernel of every example for every AMD target: small, native, with the expected argument layout."""

from __future__ import annotations

import functools
import pkgutil
import re

import numpy as np
import pytest
from generations import chosen

import quadpy as qp
from quadpy import examples
from quadpy.cli.loading import load_kernels
from quadpy.codegen.objects.metadata import read_metadata
from quadpy.codegen.report import report_tasks
from quadpy.core.artifact import CodeObject
from quadpy.core.target import AMD_ARCHS, parse_target
from quadpy.examples import cloth, lattice_boltzmann, materials, path_tracer, sph, two_stream
from quadpy.jit.kernel import Kernel
from quadpy.jit.offline import compile_with_asm

WITHOUT_KERNELS = {"_common", "_descent", "_moving", "_pictures", "decode"}  # the decoder's are in _transformer
OBJECTS = {
    "cloth": lambda: cloth.Cloth(np.zeros((2, 3), np.float32), [(0, 1, 1.0)], np.ones(2), 0.1),
    "lattice_boltzmann": lambda: lattice_boltzmann.Flow(np.zeros((8, 8), bool), 0.1),
    "materials": lambda: materials.Box(8),
    "path_tracer": lambda: path_tracer.Camera([{"centre": [0, 0, 0], "radius": 1, "colour": [1, 1, 1]}], 8, 8),
    "sph": lambda: sph.Water(np.full((8, 2), 0.5, np.float32), 0.1),
    "two_stream": lambda: two_stream.Plasma(np.linspace(0, 0.9, 8), np.zeros(8), 8),
}
"""The examples whose kernels use an object."""
EXAMPLES = sorted(
    f"quadpy.examples.{module.name}"
    for module in pkgutil.iter_modules(examples.__path__)
    if module.name not in WITHOUT_KERNELS and module.name not in OBJECTS
)
TARGETS = [*AMD_ARCHS, "gfx1030:w64", "gfx1100:w64", "gfx1201:w64"]
ALWAYS = {"gfx942"}
SHARE = 8
"""Examples share the other targets out, unless ``--every-processor`` asks for all."""
WITHOUT_F32_ADD = {"gfx1030", "gfx1030:w64", "gfx9-generic", "gfx10-1-generic", "gfx10-3-generic"}
"""The targets whose memory units cannot add floats; LLVM's instruction tables say so."""
FLUSHES = ("gfx90a", "gfx11")
"""Targets that add floats without their subnormal numbers, so that small ones take a loop; named by how they begin."""

ADDRESS = 8  # bytes of the pointer to scratch memory, the last argument of a kernel that has slots


@functools.cache
def kernels_of(example: str) -> dict[str, Kernel]:
    return load_kernels(example)


@functools.cache
def object_of(example: str) -> object:
    qp.init(arch=qp.cpu)
    return OBJECTS[example]()


def compiled_of_object(example: str, target: str) -> list[CodeObject]:
    used = object_of(example)
    if example == "path_tracer":
        given = {"scene": used.spheres, "film": used.film}
        return [compile_with_asm(path_tracer.trace, parse_target(target), given)]
    found = [getattr(used, name) for name in dir(type(used)) if not name.startswith("__")]
    return [compile_with_asm(one, parse_target(target), {}) for one in found if isinstance(one, Kernel)]


def compiled(example: str, target: str) -> list[CodeObject]:
    return [compile_with_asm(kernel, parse_target(target), {}) for kernel in kernels_of(example).values()]


def pytest_generate_tests(metafunc):
    every = metafunc.config.getoption("--every-processor")
    if {"example", "each_target"} <= set(metafunc.fixturenames):
        pairs = [(e, t) for k, e in enumerate(EXAMPLES) for j, t in enumerate(TARGETS)
                 if every or t in ALWAYS or (k + j) % SHARE == 0]  # fmt: skip
        metafunc.parametrize(("example", "each_target"), pairs)
    elif "each_target" in metafunc.fixturenames:
        metafunc.parametrize("each_target", chosen(metafunc.config, TARGETS))


def test_a_code_object_is_lean_and_takes_the_arguments_that_the_launch_gives(example, each_target):
    check(compiled(example, each_target), each_target)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("example", OBJECTS)
def test_so_is_the_code_of_methods(example, target):
    codes = compiled_of_object(example, target)
    assert codes
    check(codes, target)


def check(codes, target):
    for code in codes:
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
        added = [each.offset for each in code.hidden if each.name in ("scratch", "results")]
        expected = [slot.offset for slot in code.layout.values] + added
        for kernel in kernels:
            assert [arg.offset for arg in kernel.args] == expected
            assert -(-kernel.kernarg_bytes // 8) * 8 == code.layout.size + ADDRESS * len(added)


def test_float_sums_use_the_hardware_where_it_has_them(each_target):
    """mpm88 adds mass and two components of momentum to nine nodes from each particle."""
    (asm,) = (code.asm for code in compiled("quadpy.examples.mpm88", each_target) if code.tasks[0].symbol == "p2g_t0")
    native = len(re.findall(r"^\tglobal_atomic_(?:pk_)?add_f32\b", asm, re.MULTILINE))
    swaps = len(re.findall(r"^\tglobal_atomic_cmpswap", asm, re.MULTILINE))
    loops = 27 if each_target in WITHOUT_F32_ADD or each_target.startswith(FLUSHES) else 0
    assert (native, swaps) == (0 if each_target in WITHOUT_F32_ADD else 27, loops)
