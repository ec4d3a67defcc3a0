"""``qp.algorithms`` over arrays of a grid: the bits and the errors of one device, on any number of ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy import algorithms
from quadpy.dist import world
from quadpy.errors import ArgumentError, CaptureError, QuadpyError, RanksDisagreeError

SHAPES: list[tuple[int, ...]] = [(5000,), (97, 31), (13, 9, 17)]


@qp.func
def larger(a: Any, b: Any) -> Any:
    return qp.max(a, b)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "reduce": lambda x, _: algorithms.reduce(x),
    "reduce by a function": lambda x, _: algorithms.reduce(x, larger, identity=-1e30),
    "reduce along an axis": lambda x, _: algorithms.reduce(x, "max", axis=-1),
    "reduce of integers": lambda _, n: algorithms.reduce(n, "mul"),
    "argmin": lambda x, _: algorithms.argmin(x),
    "argmax": lambda x, _: algorithms.argmax(x, axis=0),
    "inclusive_scan": lambda x, _: algorithms.inclusive_scan(x),
    "exclusive_scan": lambda _, n: algorithms.exclusive_scan(n, axis=-1),
    "sort": lambda x, _: algorithms.sort(x),
    "sort down": lambda _, n: algorithms.sort(n, axis=0, descending=True),
    "argsort": lambda _, n: algorithms.argsort(n),
    "sort_pairs": lambda x, n: algorithms.sort_pairs(n, x),
    "histogram": lambda x, _: algorithms.histogram(x, 17),
    "bincount": lambda _, n: algorithms.bincount(n, minlength=12),
    "unique": lambda _, n: algorithms.unique(n),
    "with scratch": lambda x, _: algorithms.sort(x, scratch=qp.ndarray(qp.u8, algorithms.scratch_size(algorithms.sort, x))),
    "with out": lambda x, _: algorithms.sort(x, out=qp.ndarray(qp.f32, x.shape)),
}  # fmt: skip


def bytes_of(found: Any) -> Any:
    return [bytes_of(each) for each in found] if isinstance(found, tuple) else found.to_numpy().tobytes()


def answer(call: Callable[[Any, Any], Any], x: Any, n: Any) -> Any:
    """The bits that ``call`` returns, or its error."""
    try:
        return bytes_of(call(x, n))
    except QuadpyError as error:
        return type(error)  # the message names the iteration that failed first


def filled(make: Any, shape: tuple[int, ...], seed: int) -> tuple[Any, Any]:
    x, n = make(qp.f32), make(qp.i32)
    rng = np.random.default_rng(seed)
    x.from_numpy(rng.standard_normal(shape).astype(np.float32))
    n.from_numpy(rng.integers(0, 10, shape).astype(np.int32))
    return x, n


def same_as_alone(name: str, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    call = CALLS[name]
    alone = [answer(call, *filled(lambda dtype: qp.ndarray(dtype, shape), shape, seed)) for seed in (1, 2)]

    def program() -> list[Any]:
        grid = qp.dist.Grid(shape)
        return [answer(call, *filled(grid.ndarray, shape, seed)) for seed in (1, 2)]

    for size in sizes:
        for found in run_ranks(size, program):
            assert found == alone


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_the_bits_and_the_errors_of_one_device(name: str, shape: tuple[int, ...]):
    same_as_alone(name, shape, (1, 3, 4))


@pytest.mark.usefixtures("debug")
@pytest.mark.parametrize("name", ["reduce", "reduce of integers", "exclusive_scan", "sort", "histogram"])
def test_under_debug(name: str):
    same_as_alone(name, (97, 31), (3,))


@qp.kernel
def halved(u: qp.types.ndarray(qp.f32, ndim=2), v: qp.types.ndarray(qp.f32, ndim=2)):
    for i, j in u:
        v[i, j] = 0.5 * (u[i, j] + u[(i + 1) % u.shape[0], (j + 2) % u.shape[1]])


def test_fields_faces_and_arrays_with_halos():
    def program(plain: bool) -> list[Any]:
        grid = qp.dist.Grid((30, 14), periodic=(True, True))
        u, f = (
            (qp.ndarray(qp.f32, (30, 14)), qp.field(qp.f32, (30, 14)))
            if plain
            else (grid.ndarray(qp.f32), grid.field(qp.f32))
        )
        g = qp.dist.Grid((30, 14))
        faces = qp.ndarray(qp.f32, (31, 14)) if plain else g.ndarray(qp.f32, staggered=(True, False))
        rng = np.random.default_rng(3)
        for each in (u, f, faces):
            each.from_numpy(rng.random(each.shape, np.float32))
        v = qp.ndarray(qp.f32, (30, 14)) if plain else grid.ndarray(qp.f32)
        halved(u, v)  # u has a halo from now on
        return [bytes_of(algorithms.inclusive_scan(each)) for each in (u, v, f, faces)]

    alone = program(True)
    for size in (1, 2, 4):
        assert run_ranks(size, lambda: program(False)) == [alone] * size


def test_what_is_refused():
    grid = qp.dist.Grid((30,))
    x, v = grid.ndarray(qp.f32), grid.ndarray(qp.math.vec3)
    for call in (
        lambda: algorithms.sort(x, out=x),
        lambda: algorithms.shuffle(x, out=x),
        lambda: algorithms.parallel_sort(x),
    ):
        with pytest.raises(ArgumentError, match=r"is divided among ranks, and each rank gets the whole result"):
            call()
    with pytest.raises(ArgumentError, match="x takes an array of numbers, not distributed ndarray"):
        algorithms.reduce(v)
    with pytest.raises(CaptureError, match="an algorithm over distributed ndarray"), qp.graph.capture():
        algorithms.reduce(x)
    with pytest.raises(CaptureError, match="an algorithm over distributed ndarray"):
        qp.dist.capture(lambda: algorithms.reduce(x))


def test_a_call_of_one_rank_alone():
    def program() -> None:
        x = qp.dist.Grid((30,)).ndarray(qp.f32)
        if world().rank == 0:
            algorithms.sort(x)
        else:
            x.to_numpy()

    with pytest.raises(
        RanksDisagreeError, match=r"an algorithm over all elements of .* on rank 0; to_numpy of .* on rank 1"
    ):
        run_ranks(2, program)
