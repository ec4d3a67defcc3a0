"""Profiles of calls with distributed arrays: each rank's parts of each task, with the lines of the kernel."""

from __future__ import annotations

import pytest
from thread_ranks import run_ranks

import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
N = 12


@qp.kernel
def smooth(u: F32, v: F32) -> qp.f32:
    for i in u:
        v[i] = u[i] + u[(i + 1) % u.shape[0]]
    total = 0.0
    for i in v:
        total += v[i]
    return total


@qp.kernel
def double(x: F32):
    for i in x:
        x[i] *= 2.0


def program():
    grid = qp.dist.Grid(N, periodic=True)
    u, v, own = grid.ndarray(qp.f32), grid.ndarray(qp.f32), qp.ndarray(qp.f32, N)
    u.fill(1.0)
    with qp.profile() as outside:
        assert smooth(u, v) == 2.0 * N
        double(own)
        with qp.profile() as inside:
            double(v)
    assert smooth(v, u) == 8.0 * N  # nothing is measured any more
    return outside, inside


def tasks(profile, name):
    return [r for r in profile.records if r.kind == "kernel" and r.name == name]


def test_each_task_of_a_rank_has_a_time_and_its_line():
    qp.init(arch=qp.cpu)
    ((outside, inside),) = run_ranks(1, program)
    found = tasks(outside, "smooth")
    assert all(r.duration >= 0 and r.cause is not None for r in found)
    lines = [r.span.line for r in found]
    assert lines == sorted(lines)
    assert lines[-1] >= lines[0] + 3  # both loops, and the result
    assert len({r.task for r in found}) == len(set(lines)) > 1
    assert [len(tasks(p, "double")) for p in (outside, inside)] == [2, 1]


@pytest.mark.parametrize("ranks", [2, 3])
def test_all_ranks_of_a_process_are_in_a_profile_around_them(ranks):
    """Parts that wait for halos, and parts that do not, are measured one by one."""

    def alone():
        grid = qp.dist.Grid(N, periodic=True)
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        u.fill(1.0)
        return smooth(u, v)

    qp.init(arch=qp.cpu)
    with qp.profile() as p:
        assert run_ranks(ranks, alone) == [2.0 * N] * ranks
    found = tasks(p, "smooth")
    assert len([r for r in found if r.task == 0]) >= ranks
    assert len({r.thread for r in found}) == ranks


def test_a_call_that_fails_measures_nothing_later():
    qp.init(arch=qp.cpu)

    @qp.kernel(debug=True)
    def checked(u: F32):
        for i in u:
            assert u[i] > 0.0

    def program():
        u = qp.dist.Grid(N).ndarray(qp.f32)
        with pytest.raises(qp.KernelAssertionError), qp.profile():
            checked(u)
        double(u)
        with qp.profile() as p:
            double(u)
        return len(tasks(p, "double"))

    assert run_ranks(1, program) == [1]
