"""Serial tasks that run with the merge of a reduction beside them."""

from __future__ import annotations

import numpy as np
import pytest
from backends import backends

import quadpy as qp
from quadpy.core.artifact import CodeObject

F32, I32 = (qp.types.ndarray(dtype=t, ndim=1) for t in (qp.f32, qp.i32))


@qp.kernel
def returned(x: F32) -> qp.f32:
    s = 1.0
    for i in x:
        s += x[i]
    return 2.0 * s


@qp.kernel
def in_arrays(x: F32, total: F32, mean: F32):
    total[0] = 0.0
    for i in x:
        total[0] += x[i]
    mean[0] = total[0] / x.shape[0]


@qp.kernel
def two_loops(x: F32, out: F32):
    low = 1e9
    for i in x:
        qp.atomic_min(low, x[i])
    high = low + 0.5
    for i in x:
        high += x[i] - low
    out[0] = low
    out[1] = high


@qp.kernel
def of_a_field(x: F32, field: qp.template()) -> qp.f32:
    field[None] = 3.0
    for i in x:
        field[None] += x[i]
    return field[None]


@qp.kernel
def loop_reads_it(x: F32, out: F32):
    out[1] = 2.0
    for i in x:
        out[0] += x[i] * out[1]


@qp.kernel
def loop_writes_it(x: F32, out: F32):
    out[2] = x[0]
    for i in x:
        x[i] = 0.0
        out[0] += 1.0


@qp.kernel
def with_a_branch(x: F32, out: F32):
    if x[0] > 0.0:
        out[0] = 5.0
    for i in x:
        out[0] += x[i]
    if x[1] > 0.0:
        out[1] = out[0]
    else:
        out[2] = out[0]


@qp.kernel
def none_at_all(x: F32, out: F32):
    out[0] = 4.0
    for i in range(x.shape[0] - 8):
        out[0] += x[i]
    out[1] = out[0] + 1.0


# Each kernel with its launches: of the loops (chunks and merge), and of serial tasks that did not join.
LAUNCHES = {
    returned: ["t1", "t1_merge"],
    in_arrays: ["t1", "t1_merge"],
    two_loops: ["t1", "t1_merge", "t3", "t3_merge"],
    of_a_field: ["t1", "t1_merge"],
    loop_reads_it: ["t0", "t1", "t1_merge"],
    loop_writes_it: ["t0", "t1", "t1_merge"],
    with_a_branch: ["t0", "t1", "t1_merge"],
    none_at_all: ["t1", "t1_merge"],
}


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("kernel", LAUNCHES, ids=lambda kernel: kernel.__name__)
def test_launches(kernel, target):
    given = {"field": qp.field(qp.f32, shape=())} if kernel is of_a_field else {}
    code = kernel.compile(target, **given)
    assert [task.symbol.removeprefix(f"{kernel.__name__}_") for task in code.tasks] == LAUNCHES[kernel]
    assert CodeObject.from_parts(code.manifest(), code.image) == code


def test_a_launch_has_the_effects_of_all_its_tasks():
    *_, merge = in_arrays.compile("sm_90").tasks
    assert dict(merge.effects) == {"x": "r", "total": "rw", "mean": "w"}
    assert merge.joined == ("in_arrays_t0", "in_arrays_t2")


@pytest.fixture(params=backends())
def arch(request):
    qp.init(arch=request.param)
    yield request.param
    qp.init(arch=qp.cpu)


@pytest.mark.parametrize("n", [8, 1000, 300_000])
def test_results(arch, n):
    x, x1 = np.full(n, 0.25, np.float32), np.ones(n, np.float32)
    out = np.zeros(4, np.float32)

    def after(kernel, given=x):
        out[:] = 0
        kernel(given.copy(), out)
        return out.tolist()

    assert returned(x) == 2 + n / 2
    total, mean = np.zeros(1, np.float32), np.zeros(1, np.float32)
    in_arrays(x, total, mean)
    assert (total[0], mean[0]) == (n / 4, 0.25)
    assert after(two_loops) == [0.25, 0.75, 0, 0]
    assert of_a_field(x, qp.field(qp.f32, shape=())) == 3 + n / 4
    assert after(loop_reads_it) == [n / 2, 2, 0, 0]
    assert after(loop_writes_it) == [n, 0, 0.25, 0]
    assert after(with_a_branch, x1) == [5 + n, 5 + n, 0, 0]
    assert after(none_at_all) == [4 + (n - 8) / 4, 5 + (n - 8) / 4, 0, 0]
