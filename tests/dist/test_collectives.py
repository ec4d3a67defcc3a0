"""``qp.dist.barrier``, ``allreduce``, ``broadcast`` and ``gather``: on any number of ranks, of every kind of value."""

from __future__ import annotations

import functools
import operator
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.dist import allreduce, barrier, broadcast, gather, world
from quadpy.errors import ArgumentError, CaptureError, RanksDisagreeError
from ranks import lines_of, run_program

SIZES = (1, 2, 3, 5)
FOLDS: dict[str, Callable[..., Any]] = {"sum": np.add, "prod": np.multiply, "min": np.fmin, "max": np.fmax}


def array_of(values: Any, dtype: Any) -> Any:
    values = np.asarray(values)
    element = 0 if isinstance(dtype, type(qp.f32)) else len(dtype.element_shape)
    made = qp.ndarray(dtype, values.shape[: values.ndim - element])
    made.from_numpy(values)
    return made


def numbers_of(rank: int, shape: tuple[int, ...]) -> Any:
    found = np.random.default_rng(rank).standard_normal(shape).astype(np.float32)
    if found.size > 2:
        found.reshape(-1)[rank % found.size] = np.nan
    return found


@pytest.mark.usefixtures("any_debug")
@pytest.mark.parametrize("size", SIZES)
def test_python_numbers(size: int):
    def program() -> list[Any]:
        rank = world().rank
        found = [allreduce(10**30 + rank), allreduce(rank + 1, "prod"), allreduce(rank, "max"), allreduce(rank == 0)]
        found += [allreduce(0.1 * (rank + 1)), allreduce(float("nan") if rank else 2.5, "min")]
        found += [
            broadcast("x" and rank * 1.5, size - 1),
            broadcast(7 if rank == 0 else None),
            gather(rank * 2, size - 1),
        ]
        barrier()
        return found

    for rank, found in enumerate(run_ranks(size, program)):
        total = functools.reduce(operator.add, [0.1 * (n + 1) for n in range(size)])
        expected = [size * 10**30 + sum(range(size)), functools.reduce(operator.mul, range(1, size + 1)), size - 1, 1]
        expected += [total, 2.5, (size - 1) * 1.5, 7, [2 * n for n in range(size)] if rank == size - 1 else None]
        assert found == expected
        assert [type(each) for each in found[4:8]] == [float, float, float, int]


@pytest.mark.usefixtures("any_debug")
@pytest.mark.parametrize("op", FOLDS)
@pytest.mark.parametrize("size", SIZES)
def test_arrays_are_combined_in_the_order_of_ranks(size: int, op: str):
    """The same bits from NumPy arrays, ndarrays and fields."""
    shapes: list[tuple[int, ...]] = [(), (1,), (7,), (3, 4), (2, 1, 5, 3)]

    def program() -> list[Any]:
        found: list[Any] = []
        for shape in shapes:
            mine = numbers_of(world().rank, shape)
            f = qp.field(qp.f32, shape)
            f.from_numpy(mine)
            a = array_of(mine, qp.f32)
            found.append([np.asarray(allreduce(mine, op)), allreduce(a, op).to_numpy(), allreduce(f, op).to_numpy()])
            np.testing.assert_array_equal(a.to_numpy(), mine)  # what is passed stays
        return found

    for every in run_ranks(size, program):
        for shape, found in zip(shapes, every, strict=True):
            with np.errstate(all="ignore"):
                wanted = functools.reduce(FOLDS[op], [numbers_of(rank, shape) for rank in range(size)])
            for each in found:
                assert each.dtype == np.float32
                np.testing.assert_array_equal(each, wanted)


@pytest.mark.parametrize(
    "dtype", [qp.i8, qp.u64, qp.i32, qp.f16, qp.bf16, qp.f64, qp.math.vec3, qp.types.matrix(2, 3, qp.i32)]
)
def test_types_of_elements(dtype: Any):
    element = () if isinstance(dtype, type(qp.f32)) else dtype.element_shape

    def program() -> Any:
        mine = array_of((np.arange(np.prod((4, *element))) % 5 + world().rank).reshape(4, *element), dtype)
        gathered = gather(mine, 1)
        return allreduce(mine), broadcast(mine if world().rank == 2 else None, 2), gathered

    base = (np.arange(np.prod((4, *element))) % 5).reshape(4, *element)
    every = run_ranks(3, program)
    for total, spread, _ in every:
        assert (total.dtype, total.element_shape) == (spread.dtype, spread.element_shape)
        np.testing.assert_array_equal(total.to_numpy(), 3 * base + 3)
        np.testing.assert_array_equal(spread.to_numpy(), base + 2)
    assert [gathered is None for _, _, gathered in every] == [True, False, True]
    for rank, each in enumerate(every[1][2]):
        np.testing.assert_array_equal(each.to_numpy(), base + rank)


@pytest.mark.parametrize("size", [*SIZES, 8])
def test_broadcast_from_any_root(size: int):
    def program() -> None:
        for root in range(size):
            mine = array_of(np.arange(5) + 10 * world().rank, qp.i32)
            assert broadcast(mine, root).to_numpy().tolist() == [10 * root + k for k in range(5)]
            assert broadcast(mine.to_numpy(), root).tolist() == [10 * root + k for k in range(5)]

    run_ranks(size, program)


def test_integers_wrap_around_and_do_not_depend_on_the_number_of_ranks():
    numbers = np.random.default_rng(1).integers(-100, 100, (12, 5)).astype(np.int8)
    low = np.random.default_rng(2).standard_normal((12, 5))

    def program() -> Any:
        ranks = world()
        mine = numbers[ranks.rank * 12 // ranks.size : (ranks.rank + 1) * 12 // ranks.size]
        own = low[ranks.rank * 12 // ranks.size : (ranks.rank + 1) * 12 // ranks.size]
        part = mine.sum(0, dtype=np.int8)
        return [allreduce(part), allreduce(array_of(part, qp.i8)).to_numpy(), allreduce(own.min(0), "min")]

    wanted = [numbers.sum(0, dtype=np.int8)] * 2 + [low.min(0)]
    for size in (1, 2, 3, 4, 6, 12):
        for found in run_ranks(size, program):
            np.testing.assert_array_equal(found, wanted)


def test_a_barrier_waits():
    done = []

    def program() -> None:
        if world().rank == 0:
            time.sleep(0.3)
            done.append(1)
        barrier()
        assert done

    run_ranks(3, program)


A = np.zeros(3)
DISAGREE: dict[str, tuple[Callable[[bool], Any], str]] = {
    "operator": (lambda first: allreduce(1, "sum" if first else "max"), r"allreduce \(sum\) of int on rank 0; allreduce \(max\)"),
    "kind": (lambda first: allreduce(1 if first else 1.0), r"of int on rank 0; allreduce \(sum\) of float on rank 1"),
    "shape": (lambda first: allreduce(A if first else A[:2]), r"numpy <f8 \(3,\) on rank 0; .* numpy <f8 \(2,\) on rank 1"),
    "dtype": (lambda first: allreduce(A if first else A.astype("f4")), r"numpy <f8 \(3,\) on rank 0; .* numpy <f4 \(3,\)"),
    "call": (lambda first: barrier() if first else gather(1), r"barrier on rank 0; gather at rank 0 of int on rank 1"),
    "root": (lambda first: broadcast(1, 0 if first else 1), r"broadcast from rank 0 on rank 0; broadcast from rank 1 on"),
    "what they broadcast": (lambda first: broadcast(1 if first else A), r"broadcast: int on rank 0; numpy <f8 \(3,\) on rank 1"),
    "ndarrays": (lambda first: allreduce(qp.ndarray(qp.f32, 3 if first else 4)), r"ndarray f32 \(3,\) on rank 0; .* \(4,\)"),
}  # fmt: skip


@pytest.mark.usefixtures("any_debug")
@pytest.mark.parametrize("name", DISAGREE)
def test_ranks_that_disagree(name: str):
    call, message = DISAGREE[name]
    caught: list[str] = [""] * 2

    def program() -> None:
        try:
            call(world().rank == 0)
        except RanksDisagreeError as error:
            caught[world().rank] = error.message
            raise

    with pytest.raises(RanksDisagreeError, match=message):
        run_ranks(2, program, timeout=20)
    assert caught[0] == caught[1] != ""


cells = qp.types.ndarray(qp.f32, ndim=1)


@qp.kernel
def shift(u: cells, v: cells):
    for i in u:
        v[i] = u[(i + 1) % u.shape[0]]


def test_a_kernel_call_that_one_rank_omits_is_found():
    def program() -> None:
        grid = qp.dist.Grid((8,), periodic=True)
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        if world().rank:
            shift(u, v)
        allreduce(1)

    with pytest.raises(RanksDisagreeError, match="different calls"):
        run_ranks(2, program, timeout=20)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: allreduce("x"), "allreduce takes a number, a NumPy array of numbers, an ndarray or a field, not 'x'"),
        (lambda: allreduce(1, "mean"), "'mean' is not an operator"),
        (lambda: allreduce(np.array(["a"])), "takes a number"),
        (lambda: gather(None), "broadcast of None is for the ranks that receive"),
        (lambda: broadcast(1, 1), "there is no rank 1: the program has 1, from 0 to 0"),
        (lambda: gather(1, -1), "there is no rank -1"),
        (lambda: allreduce(qp.dist.Grid((4,)).ndarray(qp.f32)), "already belongs to all ranks"),
        (lambda: allreduce(qp.ndarray(qp.types.struct(a=qp.f32), 3)), "takes a number"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], message: str):
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize(
    "call", [barrier, lambda: allreduce(1), lambda: broadcast(1), lambda: gather(qp.ndarray(qp.f32, 3))]
)
def test_captures_are_refused(call: Callable[[], Any]):
    u = qp.dist.Grid((4,)).ndarray(qp.f32)
    with pytest.raises(CaptureError, match=r"qp\.dist\.\w+"):
        qp.dist.capture(lambda: (u.fill(1), call()))
    with pytest.raises(CaptureError, match=r"qp\.dist\.\w+"), qp.graph.capture():
        call()


ON_GPUS = """
import quadpy as qp
from quadpy.dist import allreduce, broadcast, gather, world
from running_gpu import running
from thread_ranks import run_ranks

def program():
    rank, size = world().rank, world().size
    a = qp.ndarray(qp.f32, (3, 3))
    a.fill(rank + 1.0)
    total = allreduce(a)
    a.fill(-1)
    assert (total.to_numpy() == size * (size + 1) / 2).all(), total
    assert (broadcast(total if rank == 0 else None).to_numpy() == size * (size + 1) / 2).all()
    gathered = gather(total, size - 1)
    assert rank != size - 1 or len(gathered or ()) == size
    assert allreduce(rank + 0.5, "max") == size - 0.5

with running():
    for size in (1, 2, 3):
        run_ranks(size, program, timeout=30)
print("done")
"""


def test_arrays_of_gpus(tmp_path: Path):
    """Through pinned memory."""
    program = tmp_path / "program.py"
    program.write_text(ON_GPUS, encoding="utf-8")
    paths = os.pathsep.join([*sys.path, str(Path(__file__).parents[1] / "support")])
    environ = {**os.environ, "PYTHONPATH": paths, "QUADPY_CACHE": "0"}
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, env=environ)
    assert done.stdout == "done\n", done.stderr


PROGRAM = """
    import numpy as np
    import quadpy as qp

    qp.init(arch=qp.cpu)
    rank = qp.dist.world().rank
    numbers = np.random.default_rng(rank).random(1000, np.float32)
    a = qp.ndarray(qp.f32, 1000)
    a.from_numpy(numbers)
    total, same = qp.dist.allreduce(a).to_numpy(), qp.dist.allreduce(numbers)
    everything = qp.dist.gather(numbers)
    qp.dist.barrier()
    print(total.tobytes() == same.tobytes(), same.sum(), qp.dist.broadcast("x" and 5 * rank + 1, 1))
    if rank == 0:
        print(np.array_equal(((everything[0] + everything[1]) + everything[2]) + everything[3], total))
"""


def test_over_mpi(tmp_path: Path):
    done = run_program(tmp_path, PROGRAM, 4)
    assert done.returncode == 0, done.stderr
    first, last = lines_of(done.stdout, 0)
    assert first.startswith("True ")
    assert first.endswith(" 6")
    assert last == "True"
    assert all(lines_of(done.stdout, rank) == [first] for rank in (1, 2, 3))
