"""Races that ``debug=True`` finds, on every backend: whichever of the two iterations comes first."""

from __future__ import annotations

import random

import numpy as np
import pytest
from random_loops import HEAD, SIZE, Writer, races, touched

import quadpy as qp
from quadpy.errors import KernelRaceError

I1 = qp.types.ndarray(dtype=qp.i32, ndim=1)
COUNT = 4096


@pytest.fixture(autouse=True)
def checked(init):
    init(debug=True)


def indices(**but):
    """Each iteration's own, but for some."""
    found = np.random.default_rng(5).permutation(COUNT).astype(np.int32)
    for number, value in but.items():
        found[int(number[1:])] = found[value]
    array = qp.ndarray(qp.i32, COUNT)
    array.from_numpy(found)
    return array


@qp.kernel
def scatter(x: I1, k: I1):
    for i in k:
        x[k[i]] = i


@qp.kernel
def shift(x: I1, k: I1, y: I1):
    for i in k:
        y[i] = x[k[i]]
        x[i] = y[i]


@qp.kernel
def count(x: I1, k: I1, limit: qp.i32):
    for i in k:
        x[k[i]] += 1
        if i == limit:
            x[k[0]] = 0


def run_and_wait(kernel, *arguments):
    kernel(*arguments)
    qp.sync()  # on a GPU, the exception comes here


def pair_of(error):
    return {side.iteration for side in (error.hazard.first, error.hazard.second)}


def test_two_stores():
    x = qp.ndarray(qp.i32, COUNT)
    run_and_wait(scatter, x, indices())
    x.fill(-1)  # a store of what is there is no race
    with pytest.raises(KernelRaceError, match=r"race: iteration i=\d+ writes x\[") as found:
        run_and_wait(scatter, x, indices(_4000=17))
    assert pair_of(found.value) == {"i=17", "i=4000"}


def test_a_load_and_a_store():
    x, y = qp.ndarray(qp.i32, COUNT), qp.ndarray(qp.i32, COUNT)
    same = qp.ndarray(qp.i32, COUNT)
    same.from_numpy(np.arange(COUNT, dtype=np.int32))
    run_and_wait(shift, x, same, y)
    other = np.arange(COUNT, dtype=np.int32)
    other[100] = 3000
    same.from_numpy(other)
    x.from_numpy(np.arange(COUNT, dtype=np.int32))
    with pytest.raises(KernelRaceError) as found:
        run_and_wait(shift, x, same, y)
    assert pair_of(found.value) <= {"i=100", "i=3000", "another one"}, "3000 may be the first to read its element"


def test_updates_and_a_store():
    x, k = qp.ndarray(qp.i32, COUNT), indices(_7=0, _9=0)
    run_and_wait(count, x, k, -1)
    with pytest.raises(KernelRaceError) as found:
        run_and_wait(count, x, k, 3000)
    assert "i=3000" in pair_of(found.value)


V = qp.types.ndarray(dtype=qp.types.vector(3, qp.f32), ndim=1)


@qp.kernel
def components(y: V, n: qp.i32):
    for i, j in qp.ndrange(4, 3):
        y[i][j] = 1.0
        y[i][j] = y[i + n][j] + i


@qp.kernel
def chosen_after_a_change(x: I1, c: qp.i32):
    for i in range(4):
        k = i
        a = x[k]
        k = 3 - i
        x[i] = qp.select(c > 0, a, 0) + k


@pytest.mark.filterwarnings("error::quadpy.errors.RaceWarning")
def test_components_that_a_number_chooses():
    """All components of the vector are loaded, and one is read."""
    y = qp.ndarray(qp.types.vector(3, qp.f32), 6)
    y.fill(0)
    run_and_wait(components, y, 0)
    assert y.to_numpy()[:4].tolist() == [[i + 1.0] * 3 for i in range(4)]
    with pytest.raises(KernelRaceError, match=r"y\[\d\]"):
        run_and_wait(components, y, 1)


@pytest.mark.parametrize("c", [0, 1])
def test_an_index_that_changes_before_its_value_is_chosen(c):
    x = qp.ndarray(qp.i32, 4)
    x.fill(7)
    run_and_wait(chosen_after_a_change, x, c)
    assert x.to_numpy().tolist() == [7 * c + 3 - i for i in range(4)]


@pytest.mark.filterwarnings("ignore::quadpy.errors.RaceWarning")
def test_loops_at_random_race_where_the_oracle_says(load, request):
    """The oracle runs iterations one after another.  Without a race this is what happens in every order."""
    rng = random.Random(29)
    loops = [Writer(rng, runs=True).loop(f"k{n}") for n in range(request.config.getoption("--random-kernels") // 2)]
    module, seen = load(HEAD + "\n\n".join(loop.text for loop in loops)), []
    for loop in loops:
        for n, m in ((2, 3), (3, 1)):
            given = {name: np.array([rng.randint(0, 4) for _ in range(SIZE)], np.int32) for name in "xyk"}
            given["z"] = np.array([[rng.randint(0, 4) for _ in range(SIZE)] for _ in range(SIZE)], np.int32)
            expected, found = bool(races(touched(loop, n, m, 0, given))), False
            try:
                run_and_wait(getattr(module, loop.name), *(given[name].copy() for name in "xyzk"), n, m)
            except KernelRaceError:
                found = True
            assert found == expected, loop.text
            seen.append(found)
    assert {True, False} == set(seen)


@qp.kernel
def flag(x: I1, k: I1, late: qp.i32):
    for i in k:
        x[i % 3] = 7
        if i == late:
            x[2] = 8


def test_iterations_that_run_at_once_may_store_one_value():
    """Each may come between the mark of another and its store."""
    x, k = qp.ndarray(qp.i32, 3), indices()
    for _ in range(3):
        x.fill(0)
        run_and_wait(flag, x, k, -1)
    assert x.to_numpy().tolist() == [7, 7, 7]
    with pytest.raises(KernelRaceError, match=r"writes x\[2\]"):
        run_and_wait(flag, x, k, COUNT - 2)
