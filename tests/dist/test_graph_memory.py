"""Arrays of a grid in graphs: copies between different halos, and memory that a graph holds as long as it exists."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.dist import captured
from quadpy.errors import CaptureError

A1, A2, A3 = (qp.types.ndarray(ndim=n) for n in (1, 2, 3))


pytestmark = pytest.mark.usefixtures("any_debug")


@qp.kernel
def far1(u: A1, v: A1, d: qp.i32):
    for i in u:
        v[i] = u[(i + d) % u.shape[0]] + 1.0


@qp.kernel
def far2(u: A2, v: A2, d: qp.i32):
    for i, j in u:
        v[i, j] = u[(i + d) % u.shape[0], (j - d) % u.shape[1]] + 1.0


@qp.kernel
def far3(u: A3, v: A3, d: qp.i32):
    for i, j, k in u:
        v[i, j, k] = u[(i + d) % u.shape[0], (j - d) % u.shape[1], (k + d) % u.shape[2]] + 1.0


KERNELS = {(16,): far1, (9, 8): far2, (6, 5, 8): far3}


@pytest.mark.parametrize("shape", KERNELS, ids=str)
@pytest.mark.parametrize("element", [(), (2,)], ids=["scalars", "vectors"])
@pytest.mark.parametrize("how", ["calls", "capture"])
@pytest.mark.parametrize("kind", ["ndarray", "field"])
def test_a_copy_between_different_halos(shape: tuple[int, ...], element: tuple[int, ...], how: str, kind: str):
    far, dtype = KERNELS[shape], qp.types.vector(2, qp.f32) if element else qp.f32
    numbers = np.random.default_rng(1).random((*shape, *element), np.float32)
    want, axes = numbers, tuple(range(len(shape)))
    for _ in range(2):
        want = np.roll(want, [-1, 1, -1][: len(shape)], axes) + np.float32(1)

    def program() -> Any:
        grid = qp.dist.Grid(shape, periodic=True)
        u, v, w = grid.ndarray(dtype), grid.ndarray(dtype), getattr(grid, kind)(dtype)
        u.from_numpy(numbers)

        def step() -> None:
            far(u, v, 1)  # u has a halo, v and w have none
            w.copy_from(v)
            u.copy_from(w)

        if how == "calls":
            step()
            step()
        else:
            qp.dist.capture(step).launch()
        assert grid.world.size == 1 or u.halo != v.halo
        return u.to_numpy()

    for ranks in (1, 2, 3, 4):
        for found in run_ranks(ranks, program):
            np.testing.assert_array_equal(found, want, err_msg=f"{ranks} ranks")


def made_by_dist(work: Callable[[], object]) -> Any:
    return qp.dist.capture(work)


def made_by_graph(work: Callable[[], object]) -> Any:
    work()
    with qp.graph.capture() as graph:
        work()
    return graph.instantiate()


def cloned(work: Callable[[], object]) -> Any:
    work()
    with qp.graph.capture() as graph:
        work()
    return graph.clone()


@pytest.mark.parametrize("make", [made_by_dist, made_by_graph, cloned])
@pytest.mark.parametrize("what", ["kernel", "fill", "copy", "element"])
def test_a_graph_holds_memory_until_it_is_gone(make: Callable[..., Any], what: str):
    def program() -> None:
        grid = qp.dist.Grid((16,), periodic=True)
        u, v, w = (grid.ndarray(qp.f32) for _ in range(3))
        far1(w, v, 1)
        works: dict[str, Callable[[], object]] = {
            "kernel": lambda: far1(u, v, 1),
            "fill": lambda: u.fill(2.0),
            "copy": lambda: u.copy_from(v),
            "element": lambda: u.__setitem__(3, 2.0),
        }
        made = make(works[what])
        for _ in range(2):  # also after a call outside
            assert u.halo_state.in_graph
            if grid.world.size > 1:
                with pytest.raises(CaptureError, match="a graph uses it"):
                    far1(u, v, 3)
            u.fill(1.0)
        del made
        gc.collect()
        far1(u, v, 3)
        assert not u.halo_state.in_graph
        np.testing.assert_array_equal(v.to_numpy(), 2.0)

    for ranks in (1, 2) if make is made_by_dist else (1,):
        run_ranks(ranks, program)


def test_a_dropped_step_holds_no_array_until_the_collector_runs():
    """Nor does a call that was refused while another rank captured."""

    def program() -> list[bool]:
        grid = qp.dist.Grid((16,), periodic=True)
        u, v, w = (grid.ndarray(qp.f32) for _ in range(3))
        far1(w, v, 1)
        made = qp.dist.capture(partial(u.copy_from, w))
        if grid.world.size > 1:
            with pytest.raises(CaptureError):
                far1(w, v, 3)
        kept = [weakref.ref(each) for each in (u, v, w, made)]
        del made, u, v, w
        qp.sync()
        return [each() is None for each in kept]

    for ranks in (1, 2, 3):
        run_ranks(ranks, program)
        gc.collect()
        gc.disable()
        try:
            found = run_ranks(ranks, program)
        finally:
            gc.enable()
        assert found == [[True] * 4] * ranks


def test_an_interrupt_leaves_no_capture_open():
    """Ctrl-C where a captured step ends; its handler reads an array, as one does to save work."""

    def interrupt(frame, event, arg):
        if frame.f_code is captured.CapturedStep._end.__code__:
            raise KeyboardInterrupt

    grid = qp.dist.Grid((16,), periodic=True)
    u, v = (grid.ndarray(qp.f32) for _ in range(2))
    step = partial(far1, u, v, 1)
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt) as kept:  # with its frames
            qp.dist.capture(step)
    finally:
        sys.settrace(before)
    assert (u.to_numpy() == 0).all()
    qp.dist.capture(step).launch()
    assert (v.to_numpy() == 1).all()
    del kept
