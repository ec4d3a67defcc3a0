"""The pipeline: every pass by name, with what it makes of a small kernel."""

from __future__ import annotations

import pytest

import quadpy as qp
from quadpy.codegen.pipeline import TARGET_PASSES
from quadpy.core.target import parse_target
from quadpy.ir import nodes as ir
from quadpy.ir.pipeline import TASK_PASSES, TRACE, Pass, run_passes
from quadpy.ir.printer import print_ir
from quadpy.ir.verify import verify
from quadpy.ir.walk import map_children
from quadpy.jit.offline import trace_for

F32, I32 = (qp.types.ndarray(dtype=t, ndim=1) for t in (qp.f32, qp.i32))
VEC4 = qp.types.ndarray(dtype=qp.math.vec4, ndim=1)
CHECKS = {"check_meetings", "verify"}
TARGETS = {"cpu": "cpu", "amdgpu": "gfx1100", "nvptx": "sm_90"}


@qp.kernel
def split_tasks(x: F32, y: F32):
    half = x.shape[0] // 2
    total = 0.0
    for i in range(half):
        total += x[i]
    mean = total / half
    for i in y:
        y[i] -= mean


@qp.kernel
def drop_unused_results(x: I32, count: I32):
    for i in x:
        qp.atomic_add(count[x[i]], 1)
        x[i] = qp.atomic_max(count[0], i)


@qp.kernel
def demote_atomics(x: F32, y: F32, total: F32):
    for i in x:
        y[i] += x[i]
        y[i] -= y[i + 1]
        qp.atomic_add(x[i], 1.0)
        total[0] += x[i]
    total[1] *= 2.0
    qp.atomic_mul(total[1], 2.0)


@qp.kernel
def hold_elements(x: F32, y: F32):
    for i in y:
        for j in range(x.shape[0]):
            if j != i:
                y[i] += x[j]


@qp.kernel
def accumulate(x: F32, keys: I32, total: F32, histogram: I32):
    for i in x:
        total[0] += x[i]
        qp.atomic_max(total[1], x[i])
        histogram[keys[i]] += 1
        qp.atomic_add(keys[i], 1)


@qp.kernel
def check_meetings(x: F32):
    qp.loop_config(block_dim=64)
    for i in range(256):
        shared = qp.simt.block.SharedArray((64,), qp.f32)
        shared[qp.simt.block.thread_idx()] = x[i]
        qp.simt.block.sync()
        x[i] = shared[63 - qp.simt.block.thread_idx()]


@qp.kernel
def guard_rest(x: I32, n: qp.i32):
    for i in range(256):
        if n > 0:
            qp.simt.block.sync()
            if x[i] > 0:
                continue
        x[i] = 1


@qp.kernel
def watch_all_waves(x: I32, n: qp.i32):
    for i in range(256):
        if i < n:
            x[i] = qp.simt.subgroup.reduce_add(x[i])
        for _ in range(i):
            x[i] += qp.simt.subgroup.shuffle_xor(x[i], 1)


@qp.kernel(debug=True)
def watch_checked_waves(x: I32, n: qp.i32):
    for i in range(256):
        while x[i] < n:
            x[i] = qp.simt.subgroup.reduce_max(n)


@qp.kernel(debug=True)
def hoist_checks(x: F32, w: F32, y: F32):
    for i in y:
        total = 0.0
        for j in range(1, x.shape[0]):
            total += x[j] * w[j - 1]
        y[i] = total


@qp.kernel(debug=True)
def hoist_checks_of_tasks(x: F32, y: F32):
    for i in x:
        y[i] = x[i]


@qp.kernel(debug=True)
def watch_races(x: F32, keys: I32):
    for i in keys:
        x[keys[i]] = keys[i]


verify_ = demote_atomics


@qp.kernel
def flatten_branches(x: F32):
    for i in x:
        x[i] = qp.sin(x[i])


@qp.kernel
def loads_early(x: F32, w: F32, out: F32, n: qp.i32):
    for i in x:
        total = 0.0
        for j in range(x.shape[0]):
            if i != j:
                total += x[j] - x[i]
        for j in range(n):
            total += w[i] * w[j]
            w[j + n] = 1.0
            total += out[i + n] * out[j]
        out[i] = total


@qp.kernel
def keep_choices(x: F32, y: F32, n: qp.i32):
    for i in y:
        w = [x[i], 2.0, n, x[i] + 1.0, i]
        for k in range(n):
            y[i] += qp.Vector(w)[k % 5]


@qp.kernel
def unscaled_roots(x: F32):
    for i in x:
        x[i] = qp.rsqrt(x[i])


@qp.kernel
def choose_components(x: VEC4, k: qp.i32):
    for i in x:
        x[i][k] = 2.0


@qp.kernel
def select_stores(x: F32, y: F32):
    for i in x:
        if x[i] < 0.0:
            y[i] = 0.0
            x[i] = -x[i]
        else:
            x[i] = qp.sqrt(x[i])
            y[i] = x[i] + 1.0


@qp.kernel
def count_whiles(x: I32, out: I32, n: qp.i32):
    for i in out:
        total = 0
        k = i
        while k < n:
            total += x[k]
            k += 64
        out[i] = total


@qp.kernel
def stores_last(dt: qp.f32, x: F32, v: F32):
    for i in x:
        v[i] -= dt * 9.8
        x[i] += dt * v[i]


KERNELS = {**globals(), "verify": verify_}
ROWS = [("", each.name) for each in TASK_PASSES] + [(t, each.name) for t, row in TARGET_PASSES.items() for each in row]


def comparable(text):
    """Without the lines that say where checks are, and how arrays are aligned, in which targets differ."""
    lines = text.replace(", aligned", "").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("  check "))


def stages(kernel, family):
    """The kernel as each pass of ``family`` left it, by the pass's name."""
    target, seen = parse_target(TARGETS[family]), {}
    kernel = trace_for(kernel, {}, target, seen.__setitem__).kernel
    run_passes(TARGET_PASSES[family], kernel, seen.__setitem__)
    return seen


@pytest.mark.parametrize(("family", "name"), ROWS, ids=["-".join(filter(None, row)) for row in ROWS])
def test_every_pass_does_what_its_golden_files_show(family, name, golden):
    seen = stages(KERNELS[name], family or "cpu")
    names = list(seen)
    before, after = (comparable(print_ir(seen[stage])) for stage in (names[names.index(name) - 1], name))
    assert (before == after) == (name in CHECKS)
    if name not in CHECKS:
        golden.check(f"{name}.before.qir", before)
        golden.check(f"{name}.after.qir", after)


@pytest.mark.parametrize("family", TARGET_PASSES)
def test_the_observer_sees_the_trace_and_then_each_pass_in_order(family):
    assert list(stages(accumulate, family)) == [TRACE, *(each.name for each in (*TASK_PASSES, *TARGET_PASSES[family]))]


@pytest.mark.parametrize("family", TARGET_PASSES)
@pytest.mark.parametrize(
    "name",
    [
        "split_tasks",
        "hold_elements",
        "accumulate",
        "check_meetings",
        "keep_choices",
        "unscaled_roots",
        "loads_early",
        "select_stores",
        "flatten_branches",
        "stores_last",
    ],
)
def test_every_pass_leaves_sound_ir(name, family):
    for stage, kernel in stages(KERNELS[name], family).items():
        assert stage == TRACE or verify(kernel) is kernel


@pytest.mark.parametrize("family", TARGET_PASSES)
def test_names_are_unique_and_every_pass_is_documented(family):
    passes = (*TASK_PASSES, *TARGET_PASSES[family])
    assert len({each.name for each in passes} | {TRACE}) == len(passes) + 1
    assert all(each.doc for each in passes)


def without_zeros(kernel):
    """A toy: ``x + 0.0`` is ``x``."""

    def visit(node):
        node = map_children(node, visit)
        zero = isinstance(node, ir.Binary) and node.op is ir.BinOp.ADD and isinstance(node.rhs, ir.Const)
        return node.lhs if zero and node.rhs.value == 0 else node

    return map_children(kernel, visit)


@qp.kernel
def add_nothing(x: F32):
    for i in x:
        x[i] = x[i] + 0.0


def test_a_pass_is_inserted_as_a_row(monkeypatch):
    first, *rest = TASK_PASSES
    row = Pass("without_zeros", without_zeros, "drops additions of zero")
    monkeypatch.setattr("quadpy.lang.trace.TASK_PASSES", (first, row, *rest))
    seen = stages(add_nothing, "cpu")
    assert list(seen)[:4] == [TRACE, "split_tasks", "without_zeros", rest[0].name]
    assert "+ 0.0" in print_ir(seen["split_tasks"])
    assert "+ 0.0" not in print_ir(seen["without_zeros"])
