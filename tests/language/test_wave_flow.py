"""Control flow around what waves and blocks do together: what is refused, what is checked where it runs, what works."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import KernelDivergenceError
from quadpy.jit.offline import trace_for

block, subgroup = qp.simt.block, qp.simt.subgroup
A = qp.types.ndarray
I1 = A(dtype=qp.i32, ndim=1)


@pytest.fixture
def on_cpu(init):
    """There the lanes are watched in every kernel."""
    init(arch=qp.cpu)


def line_of(kernel, text):
    lines = kernel.source.fn.__code__.co_firstlineno
    text_of_file = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(text_of_file, 1) if n > lines and text in line)


@qp.kernel
def branch(x: I1, n: qp.i32):
    for i in range(x.shape[0]):
        if i < n:
            x[i] = subgroup.reduce_add(1)


@pytest.mark.parametrize("n", [0, 32, 64, 256])
def test_lanes_that_agree_go_on(on_cpu, n):
    x = np.zeros(256, np.int32)
    branch(x, n)
    assert (x == np.where(np.arange(256) < n, 32, 0)).all()


@pytest.mark.parametrize(("n", "first"), [(1, 0), (33, 32), (255, 224)])
def test_lanes_that_disagree_are_an_error_with_the_line(on_cpu, n, first):
    x = np.zeros(256, np.int32)
    with pytest.raises(KernelDivergenceError, match="lanes of a wave diverge here") as caught:
        branch(x, n)
    assert caught.value.span.line == line_of(branch, "if i < n")
    assert caught.value.iteration == {"i": first}
    assert caught.value.kernel == "branch"
    assert "subgroup.any_true" in caught.value.hint
    branch(x, 64)  # the next call is as good as any
    assert (x[:64] == 32).all()


@qp.kernel
def until_done(x: I1):
    for i in range(x.shape[0]):
        left = x[i]
        while left > 0:
            left -= subgroup.reduce_max(left) * 0 + 1
        x[i] = left


@qp.kernel
def rows(x: I1, ends: I1):
    for i in range(x.shape[0]):
        total = 0
        for _ in range(ends[i], ends[i + 1], 1):
            total += subgroup.reduce_add(1)
        x[i] = total


@qp.kernel
def left_early(x: I1):
    for i in range(x.shape[0]):
        if x[i] > 5:
            continue
        x[i] = subgroup.ballot(True) != 0


@qp.kernel
def broken_off(x: I1):
    for i in range(x.shape[0]):
        for _ in range(8):
            if x[i] > 8:
                break
            x[i] += subgroup.reduce_min(1)


@qp.func
def limited(v):
    if v > 3:
        return v
    return subgroup.reduce_add(v)


@qp.kernel
def returned(x: I1):
    for i in range(x.shape[0]):
        x[i] = limited(x[i])


APART = {"while": until_done, "continue": left_early, "break": broken_off, "return": returned}


@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("size", [32, 64])
def test_every_way_in_which_lanes_come_apart(init, name, size):
    init(arch=qp.cpu, wave_size=size)
    together, apart = np.full(256, 2, np.int32), np.full(256, 2, np.int32)
    APART[name](together)
    assert (together == together[0]).all()
    apart[100] = 7
    with pytest.raises(KernelDivergenceError) as caught:
        APART[name](apart)
    assert caught.value.iteration == {"i": 100 // size * size}


def test_loops_of_different_lengths(on_cpu):
    x, ends = np.zeros(256, np.int32), np.arange(257, dtype=np.int32) * 3
    with pytest.raises(KernelDivergenceError) as caught:
        rows(x, ends)
    assert caught.value.span.line == line_of(rows, "for _ in range(ends")
    ends[:] = 0
    rows(x, ends)
    assert (x == 0).all()


def test_what_is_known_to_agree_costs_nothing():
    """No vote, no record: the branch depends on the number of the wave, on parameters and on votes."""

    @qp.kernel
    def known(x: I1, n: qp.i32):
        for i in range(x.shape[0]):
            t = block.thread_idx()
            if t // 64 == 1 and n > 2:
                x[i] = subgroup.reduce_add(1)
            if t >= 128:
                x[i] = subgroup.broadcast_first(x[i])
            while subgroup.any_true(x[i] > 0):
                x[i] -= 1

    assert known.compile("cpu").sites == ()
    assert branch.compile("cpu").sites[0].error == "KernelDivergenceError"
    assert branch.compile("gfx942").sites == branch.compile("sm_90").sites == ()
    assert trace_for(branch, {}).kernel.sites == ()


@qp.kernel(debug=True)
def branch_checked(x: I1, y: I1, n: qp.i32):
    for i in range(x.shape[0]):
        if i < n:
            x[i] = subgroup.reduce_add(y[i])


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_gpus_check_under_debug(target):
    assert "KernelDivergenceError" in [site.error for site in branch_checked.compile(target).sites]


def test_debug_checks_on_every_backend():
    x, y = np.zeros(256, np.int32), np.ones(256, np.int32)
    branch_checked(x, y, 128)
    qp.sync()
    with pytest.raises(KernelDivergenceError, match="diverge here"):
        run_to_the_end(lambda: branch_checked(x, y, 100))


def run_to_the_end(call):
    call()
    qp.sync()


@qp.kernel
def skipped(x: I1, y: I1, n: qp.i32):
    """A ``continue`` inside what the block does together skips what comes after that, too."""
    for i in range(x.shape[0]):
        if n > 0:
            block.sync()
            if i % 2:
                continue
            x[i] += 1
        x[i] += 10
        if n > 1:
            if i % 3:
                continue
            y[i] += 1
        y[i] += 10


@qp.kernel
def skipped_by_waves(x: I1, y: I1, n: qp.i32):
    for i in range(x.shape[0]):
        for _ in range(n):
            y[i] += subgroup.inclusive_add(0) + 1
            if i % 3:
                continue
            y[i] += 10
        y[i] += 1000
        if n > 0:
            x[i] += subgroup.reduce_add(1)
            if i % 2:
                continue
            x[i] += 1
        x[i] += 100


@pytest.mark.parametrize("n", [0, 1, 2])
def test_continue_after_barriers(n):
    i = np.arange(512)
    x, y = np.zeros(512, np.int32), np.zeros(512, np.int32)
    skipped(x, y, n)
    odd = (i % 2 == 1) & (n > 0)
    assert (x == np.where(odd, 0, (n > 0) + 10)).all()
    assert (y == np.where(odd | ((i % 3 > 0) & (n > 1)), 0, (n > 1) + 10)).all()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_continue_after_operations_of_waves(init, arch, n):
    for size in (32, 64) if arch == "cpu" else (None,):
        init(wave_size=size)
        i = np.arange(512)
        x, y = np.zeros(512, np.int32), np.zeros(512, np.int32)
        skipped_by_waves(x, y, n)
        lanes = x[1] if n else size
        odd = (i % 2 == 1) & (n > 0)
        assert lanes in (32, 64, None)
        assert (x == np.where(odd, lanes, (lanes + 1 if n else 0) + 100)).all()
        assert (y == n + 10 * n * (i % 3 == 0) + 1000).all()


def test_equal_kernels_of_two_files_have_lines_of_their_own(on_cpu, load):
    text = """
    @qp.kernel
    def k(x: qp.types.ndarray(dtype=qp.i32, ndim=1), n: qp.i32):
        for i in range(x.shape[0]):
            if i < n:
                x[i] = qp.simt.subgroup.reduce_add(1)
    """
    spans = []
    for module in (load(text), load("\n\n" + text)):
        with pytest.raises(KernelDivergenceError) as caught:
            module.k(np.zeros(256, np.int32), 7)
        assert caught.value.span.file == module.__file__
        spans.append(caught.value.span.line)
    assert spans[1] == spans[0] + 2
