"""What a thread does that runs several iterations of a loop over memory, on GPUs."""

from __future__ import annotations

import re

import pytest

import quadpy as qp
from quadpy.core.target import parse_target
from quadpy.ir.passes.stores_last import stores_last
from quadpy.jit.offline import compile_with_asm, trace_for

pytestmark = pytest.mark.cpu_only
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
A = qp.types.ndarray(dtype=qp.f32, ndim=1)
G = qp.types.ndarray(dtype=qp.f32, ndim=2)
INTS = qp.types.ndarray(dtype=qp.i32, ndim=1)
BYTES = qp.types.ndarray(dtype=qp.u8, ndim=1)
D = qp.types.ndarray(dtype=qp.f64, ndim=1)


@qp.kernel
def scale(a: qp.f32, x: A):
    for i in x:
        x[i] *= a


@qp.kernel
def integrate(dt: qp.f32, x: A, v: A):
    for i in x:
        v[i] -= dt * 9.8
        x[i] += dt * v[i]


@qp.kernel
def fold(x: A, n: qp.i32):
    for i in x:
        x[i] = 2.0 * x[i]
        x[i] = x[i] + x[n - i]


@qp.kernel
def jacobi(f: G, g: G):
    for i, j in qp.ndrange((1, f.shape[0] - 1), (1, f.shape[1] - 1)):
        g[i, j] = 0.25 * (f[i - 1, j] + f[i + 1, j] + f[i, j - 1] + f[i, j + 1])


@qp.kernel
def convert(x: A, d: D, y: INTS, z: BYTES):
    for i in x:
        y[i] = qp.i32(x[i]) + qp.i32(d[i])
        z[i] = qp.u8(x[i])


@qp.kernel
def histogram(keys: INTS, counts: INTS):
    for i in keys:
        counts[keys[i]] += 1


@qp.kernel
def histogram_of_blocks(keys: INTS, counts: INTS, threads: qp.i32):
    qp.loop_config(block_dim=64)
    for t in range(threads):
        bins = qp.simt.block.SharedArray((64,), qp.i32)
        bins[t % 64] = 0
        qp.simt.block.sync()
        for i in range(t, keys.shape[0], threads):
            qp.atomic_add(bins[keys[i]], 1)
        qp.simt.block.sync()
        qp.atomic_add(counts[t % 64], bins[t % 64])


@qp.kernel
def elementary(x: A, y: A):
    for i in x:
        v = x[i]
        y[i] = qp.sin(v) * qp.cos(v) + v**0.7


@qp.kernel
def long_functions(x: A, y: A):
    for i in x:
        y[i] = qp.lgamma(qp.tgamma(qp.erfc(x[i])))


@qp.kernel
def elementary_in_a_plane(f: G, g: G):
    for i, j in f:
        g[i, j] = qp.sin(f[i, j]) + qp.exp(f[i, j]) ** 0.7


def accesses(kernel, target):
    """The loads and stores of the strip, ``L`` and ``S`` in their order; single iterations come before it."""
    return max(runs(kernel, target), key=len)


def runs(kernel, target):
    """The loads and stores between labels."""
    asm = compile_with_asm(kernel, parse_target(target), {}).asm
    found = re.findall(r"^(\.LBB\w+:)|^\s+global_(load|store)_", asm, re.MULTILINE)
    return "".join("|" if label else kind[0].upper() for label, kind in found).split("|")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kernel", "arrays"), [(scale, 1), (integrate, 2)], ids=["scale", "integrate"])
def test_updates_in_place_wait_for_memory_once(kernel, arrays, target):
    assert accesses(kernel, target) == "L" * 4 * arrays + "S" * 4 * arrays


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_maps_of_elementary_functions_load_four_elements_at_once(target):
    assert "LLLL" in runs(elementary, target)


@pytest.mark.parametrize("kernel", [long_functions, elementary_in_a_plane], ids=["long", "in a plane"])
def test_of_longer_bodies_a_thread_runs_one_iteration(kernel):
    assert max(map(len, runs(kernel, "gfx1100"))) <= 2


@pytest.mark.parametrize("target", TARGETS)
def test_a_load_stays_after_a_store_that_may_be_to_the_same_element(target):
    strip = accesses(fold, target)
    assert re.fullmatch(r"L{4}S{4}L{4}S{4}", strip), strip


@pytest.mark.parametrize("target", TARGETS)
def test_neighbours_in_a_row_share_an_offset(target):
    asm = compile_with_asm(jacobi, parse_target(target), {}).asm
    loads = re.findall(r"global_load_\w+ v\S+, (v\d+), s\[\S+\](?: offset:(-?\d+))?", asm)
    assert {"-4", "4"} <= {offset for _, offset in loads} or any(
        "x3" in line or "b96" in line for line in asm.splitlines()
    )


@pytest.mark.parametrize("target", TARGETS)
def test_saturating_casts_are_one_instruction(target):
    asm = compile_with_asm(convert, parse_target(target), {}).asm
    assert re.search(r"v_cvt_i32_f32", asm)
    assert re.search(r"v_cvt_i32_f64", asm)
    assert re.search(r"v_cvt_u32_f32", asm)
    assert not re.search(r"v_cmp_\w+_f(32|64)", asm)


def test_stores_move_past_loads_that_are_elsewhere_and_no_further():
    """Of one array with the same index and of written arrays that do not overlap it is known; of others it is not."""
    (task,) = trace_for(fold, {}).kernel.tasks
    kinds = [type(stmt).__name__ for stmt in stores_last(task.body.stmts, disjoint=True)]
    assert [k for k in kinds if k != "Let"] == ["Load", "Store", "Load", "Store"]
    (task,) = trace_for(integrate, {}).kernel.tasks
    for disjoint, expected in ((True, ["Load", "Load", "Store", "Store"]), (False, ["Load", "Store", "Load", "Store"])):
        kinds = [type(stmt).__name__ for stmt in stores_last(task.body.stmts, disjoint=disjoint)]
        assert [k for k in kinds if k != "Let"] == expected


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", [histogram, histogram_of_blocks], ids=["of a loop", "of blocks"])
def test_histograms_load_for_eight_iterations_at_once(kernel, target):
    asm = compile_with_asm(kernel, parse_target(target), {}).asm
    accesses = "".join(kind[0] for kind in re.findall(r"\b(global_load|ds_add)_", asm))
    assert "g" * 8 + "d" * 8 in accesses
