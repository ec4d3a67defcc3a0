"""Races that depend on data, found under ``debug=True`` while a kernel runs."""

from __future__ import annotations

import random
import runpy
import warnings

import numpy as np
import pytest
from racy_loops import line_of, locks, scatters
from random_loops import HEAD, SIZE, Writer, races, touched

import quadpy as qp
from quadpy.errors import KernelRaceError, RaceWarning

I1 = qp.types.ndarray(dtype=qp.i32, ndim=1)
I2 = qp.types.ndarray(dtype=qp.i32, ndim=2)
F1 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@pytest.fixture(autouse=True)
def debug():
    qp.init(arch=qp.cpu, debug=True, cpu_max_num_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RaceWarning)
        yield
    qp.init(arch=qp.cpu, cpu_max_num_threads=2)


def numbers(*values):
    return np.array(values, np.int32)


# ------------------------------------------------------------- what is reported


def test_a_race_is_reported_with_both_iterations_lines_and_the_element():
    x = np.zeros(8, np.int32)
    scatters(x, numbers(0, 3, 1, 2))
    with pytest.raises(
        KernelRaceError, match=r"race: iteration i=3 writes x\[7\], and iteration i=1 writes it"
    ) as found:
        scatters(x, numbers(0, 7, 1, 7))
    error, file, line = found.value, scatters.source.span.file, line_of(scatters, 2)
    assert (error.iteration, error.values, error.span.line) == ({"i": 3}, (7,), line)
    race = error.hazard
    assert (race.kind, race.certain) == ("write after write", True)
    assert race.first.location == race.second.location == f"{file}:{line}"
    assert (race.first.iteration, race.second.iteration) == ("i=1", "i=3")
    assert "qp.atomic_add(x[7], value)" in error.hint
    scatters(x, numbers(0, 3, 1, 2))


@qp.kernel
def counts_down(x: I2, k: I1):
    for i in range(7, 1, -2):
        for j in range(2):
            x[k[i] % 2, j] = i


@qp.kernel
def two_axes(x: I2, k: I1):
    for i, j in qp.ndrange((2, 5), (1, 4)):
        x[k[i], k[j]] = 10 * i + j


def test_iterations_have_the_values_of_their_variables():
    x, k = np.zeros((8, 8), np.int32), np.arange(8, dtype=np.int32)
    two_axes(x, k)
    k[3] = 1
    with pytest.raises(KernelRaceError, match=r"iteration i=2, j=3 writes x\[2, 1\], and iteration i=2, j=1 writes it"):
        two_axes(x, k)
    with pytest.raises(KernelRaceError, match=r"iteration i=3 writes x\[1, 0\], and iteration i=7 writes it"):
        counts_down(x, numbers(0, 0, 0, 3, 0, 0, 0, 1))


@qp.kernel
def reads_and_writes(x: I1, y: I1, k: I1, at: qp.i32):
    for i in k:
        if i == at:
            x[0] = 5
        y[i] = x[k[i]]


@pytest.mark.parametrize(
    ("at", "said"),
    [(0, r"iteration i=2 reads x\[0\], and iteration i=0 writes it"), (3, r"iteration i=3 writes x\[0\], and iteration i=2 reads it")],
)  # fmt: skip
def test_reads_race_with_writes_before_and_after(at, said):
    x, y = np.zeros(4, np.int32), np.zeros(4, np.int32)
    reads_and_writes(x, y, numbers(1, 2, 3, 1), at)
    with pytest.raises(KernelRaceError, match=said):
        reads_and_writes(x, y, numbers(1, 2, 0, 1), at)


def test_the_earlier_access_is_named_by_its_line():
    x, y = np.zeros(4, np.int32), np.zeros(4, np.int32)
    with pytest.raises(KernelRaceError) as found:
        reads_and_writes(x, y, numbers(1, 2, 0, 1), 0)
    first, line = found.value.hazard.first, reads_and_writes.source.span.line
    assert (first.line, found.value.hazard.second.line) == (line + 4, line + 5)


@qp.kernel
def updates(x: I1, k: I1, y: I1, mode: qp.i32):
    for i in k:
        x[k[i]] += 1
        if i == 3 and mode == 1:
            x[0] = 7
        if i == 3 and mode == 2:
            y[0] = x[0]


def test_updates_race_with_plain_accesses_only():
    x, k, y = np.zeros(4, np.int32), numbers(0, 0, 0, 1), np.zeros(4, np.int32)
    updates(x, k, y, 0)
    assert x[0] == 3
    for mode, verb in ((1, "writes"), (2, "reads")):
        with pytest.raises(KernelRaceError, match=rf"iteration i=3 {verb} x\[0\], and iteration i=0 updates it"):
            updates(x, k, y, mode)


@qp.kernel
def flags(x: I1, y: F1, z: F1):
    for i in y:
        if y[i] > 0:
            x[0] = 1
            z[0] = y[i]


def test_storing_one_value_is_no_race():
    x, z = np.zeros(1, np.int32), np.zeros(1, np.float32)
    nan = np.float32("nan")
    flags(x, np.array([1, 1, 0, 1], np.float32), z)
    flags(x, np.array([nan, 1, 0, 1], np.float32), z)
    with pytest.raises(KernelRaceError, match=r"iteration i=3 writes z\[0\], and iteration i=1 writes it"):
        flags(x, np.array([0, 1, 0, 2], np.float32), z)
    with pytest.raises(KernelRaceError, match=r"z\[0\]"):
        flags(x, np.array([0, 1, 0, -0.0, 3], np.float32), z)


@qp.kernel
def values(x: I1, k: I1, first: I1, second: I1):
    for i in k:
        x[k[i]] = first[i]
        x[k[i]] = second[i]


@qp.kernel
def stores_and_updates(x: I1, k: I1, before: qp.i32, after: qp.i32):
    for i in k:
        if before == 1:
            x[k[i]] = 0
        if i == 0:
            qp.atomic_add(x[k[i]], 0)
        if after == 1:
            x[k[i]] = 0


@qp.kernel
def stores_and_reads(x: I1, k: I1, y: I1):
    for i in k:
        x[k[i]] = 5
        if y[i] == 1:
            y[i] = x[k[i]]


def test_one_value_and_another_are_a_race_whichever_iteration_is_last():
    x, k = np.zeros(2, np.int32), numbers(1, 1)
    values(x, k, numbers(4, 4), numbers(4, 4))
    values(x, numbers(0, 1), numbers(4, 4), numbers(3, 2))
    for first, second in (
        (numbers(1, 0), numbers(0, 0)),
        (numbers(0, 0), numbers(0, 1)),
        (numbers(1, 1), numbers(0, 0)),
    ):
        with pytest.raises(KernelRaceError, match=r"iteration i=1 writes x\[1\], and iteration i=0 writes it"):
            values(x, k, first, second)


@pytest.mark.parametrize(("before", "after"), [(1, 0), (0, 1), (1, 1)])
def test_stores_of_one_value_race_with_updates(before, after):
    x = np.zeros(2, np.int32)
    stores_and_updates(x, numbers(0, 1), before, after)
    with pytest.raises(KernelRaceError, match=r"iteration i=1 writes x\[0\]"):
        stores_and_updates(x, numbers(0, 0), before, after)


@pytest.mark.parametrize("reads", [(1, 0), (0, 1)])
def test_stores_of_one_value_race_with_reads_by_the_first_and_by_the_last(reads):
    stores_and_reads(np.zeros(1, np.int32), numbers(0, 0), numbers(0, 0))
    with pytest.raises(KernelRaceError, match=r"x\[0\]"):
        stores_and_reads(np.zeros(1, np.int32), numbers(0, 0), numbers(*reads))


best = qp.field(qp.f32, shape=())


@qp.kernel
def keeps_best(y: F1):
    for i in y:
        if y[i] > best[None]:  # noqa: PLR1730 - the race
            best[None] = y[i]


@qp.kernel
def keeps_last(y: F1) -> qp.f32:
    last = 0.0
    for i in y:
        if y[i] > 2.0:
            last = y[i]
    return last


def test_fields_and_variables_have_the_names_of_the_source():
    best[None] = 0
    with pytest.raises(KernelRaceError, match=r"iteration i=1 writes best\[None\], and iteration i=0 reads it"):
        keeps_best(np.array([0, 5], np.float32))
    assert keeps_last(np.array([1, 5, 1], np.float32)) == 5
    with pytest.raises(KernelRaceError, match="iteration i=2 writes last, and iteration i=1 writes it") as found:
        keeps_last(np.array([1, 5, 6], np.float32))
    assert "qp.atomic_max(last, value)" in found.value.hint


@qp.kernel
def keeps_components(x: qp.types.ndarray(dtype=qp.math.vec2, ndim=1), k: I1):
    for i in k:
        x[k[i]].x = i
        x[(k[i] + 1) % 4].y = x[k[i]].x


def test_components_are_apart():
    keeps_components(np.zeros((4, 2), np.float32), np.arange(4, dtype=np.int32))


# ------------------------------------------------------------- what is not


@qp.kernel(graph=True)
def turns(x: I1, k: I1, go: I1):
    while qp.graph.do_while(go):
        for i in k:
            x[(k[i] + go[0]) % 4] = i
        for _ in range(1):
            go[0] = go[0] - 1


@qp.kernel(graph=True)
def at_once(x: I1, y: I1, k: I1):
    with qp.stream_parallel():
        for i in k:
            x[k[i]] = i
    with qp.stream_parallel():
        for i in k:
            y[(k[i] + 1) % 4] = i


@qp.kernel
def two_loops(x: I1, k: I1):
    for i in k:
        x[k[i]] = i
    for i in k:
        x[k[k.shape[0] - 1 - i]] = 2 * i


def test_each_loop_begins_anew():
    x = np.zeros(4, np.int32)
    two_loops(x, numbers(3, 1, 0, 2))
    two_loops(x, numbers(3, 1, 0, 2))
    turns(x, numbers(3, 1, 0, 2), numbers(3))


def test_loops_that_run_at_once_have_memory_of_their_own():
    x, y = np.zeros(4, np.int32), np.zeros(4, np.int32)
    at_once(x, y, numbers(3, 1, 0, 2))
    assert (x.tolist(), y.tolist()) == ([2, 1, 3, 0], [0, 2, 1, 3])
    with pytest.raises(KernelRaceError):
        at_once(x, y, numbers(3, 1, 3, 2))


@qp.kernel
def serial(x: I1):
    qp.loop_config(serialize=True)
    for i in range(x.shape[0] - 1):
        x[i + 1] = x[i]


@qp.kernel
def red_black(x: I1, colour: qp.i32):
    for i in range(1, x.shape[0] - 1):
        if i % 2 == colour:
            x[i] = x[i - 1] + x[i + 1]


def test_loops_without_races_run():
    x = np.ones(6, np.int32)
    locks(x, numbers(0))
    serial(x)
    red_black(x, 0)
    red_black(x, 1)


@qp.kernel(debug=False)
def unchecked(x: I1, k: I1):
    for i in k:
        x[k[i]] = i


def test_a_kernel_may_be_left_out():
    unchecked(np.zeros(2, np.int32), numbers(0, 0))


# ------------------------------------------------------------- with other things


@qp.kernel
def prints(x: I1, k: I1) -> qp.i32:
    for i in k:
        print(i)
        x[k[i]] = i
    return x[0]


def test_a_kernel_that_prints_and_returns_is_checked(capfd):
    x = np.zeros(3, np.int32)
    assert prints(x, numbers(0, 1)) == 0
    assert capfd.readouterr().out == "0\n1\n"
    with pytest.raises(KernelRaceError):
        prints(x, numbers(1, 1))


def test_graphs_are_checked_at_every_launch():
    x, k = qp.ndarray(qp.i32, 4), qp.ndarray(qp.i32, 4)
    k.from_numpy(numbers(0, 1, 2, 3))
    graph = qp.graph.Graph()
    graph.add_kernel(scatters, x, k)
    ready = graph.instantiate()
    ready.launch()
    ready.launch()
    k.from_numpy(numbers(0, 1, 1, 3))
    with pytest.raises(KernelRaceError, match=r"iteration i=2 writes x\[1\]"):
        ready.launch()


# ------------------------------------------------------------- at random


def error_of(kernel, *arguments):
    try:
        kernel(*arguments)
    except KernelRaceError as error:
        return error
    return None


def test_what_is_reported_is_what_happens(request, tmp_path):
    rng = random.Random(11)
    loops = [Writer(rng, runs=True).loop(f"k{n}") for n in range(request.config.getoption("--random-kernels"))]
    path = tmp_path / "loops.py"
    path.write_text(HEAD + "\n\n".join(loop.text for loop in loops))
    kernels, seen = runpy.run_path(str(path)), [0, 0]
    for loop in loops:
        for n, m in ((2, 3), (3, 1)):
            given = {name: np.array([rng.randint(0, 4) for _ in range(SIZE)], np.int32) for name in "xyk"}
            given["z"] = np.array([[rng.randint(0, 4) for _ in range(SIZE)] for _ in range(SIZE)], np.int32)
            collided = races(touched(loop, n, m, 0, given))
            error = error_of(kernels[loop.name], *(given[name].copy() for name in "xyzk"), n, m)
            seen[error is not None] += 1
            if error is None:
                assert not collided, f"{collided}\n{loop.text}"
                continue
            sides = error.hazard.first, error.hazard.second
            pair = tuple(tuple(int(part.partition("=")[2]) for part in side.iteration.split(", ")) for side in sides)
            assert pair in collided.get(sides[1].array, set()), f"{error}\n{loop.text}"
    assert min(seen) > 5, seen


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_the_checks_compile_for_gpus(target):
    for kernel in (scatters, two_axes, updates, keeps_last):
        code = kernel.compile(target)
        assert "KernelRaceError" in {site.error for site in code.sites}
        assert "shadow" in {hidden.name for hidden in code.hidden}


def test_the_hazard_checker_sees_the_arrays_of_the_call_only():
    x, k = qp.ndarray(qp.i32, 4), qp.ndarray(qp.i32, 4)
    k.from_numpy(numbers(0, 1, 2, 3))
    first, second = qp.create_stream(), qp.create_stream()
    with qp.hazards.check(collect=True) as found:
        scatters(x, k, stream=first)
        scatters(x, k, stream=second)
    assert {hazard.second.array for hazard in [*found.certain, *found.possible]} == {"x"}


shifted = qp.field(qp.i32, shape=(4, 6), offset=(-2, 1))
tiles = qp.field(qp.i32)
qp.root.dense(qp.ij, (2, 3)).dense(qp.ij, (4, 2)).place(tiles)


@qp.kernel
def in_fields(k: I1, into: qp.template()):
    for i in k:
        into[k[i], 4] = i


@pytest.mark.parametrize("into", [shifted, tiles], ids=["offset", "blocks"])
def test_indices_are_those_of_the_source(into):
    in_fields(numbers(0, 1), into)
    with pytest.raises(
        KernelRaceError, match=r"iteration i=2 writes into\[1, 4\], and iteration i=1 writes it"
    ) as found:
        in_fields(numbers(0, 1, 1), into)
    assert found.value.values == (1, 4)


@pytest.mark.parametrize("into", [shifted, tiles], ids=["offset", "blocks"])
def test_indices_of_definite_races_are_those_of_the_source(into):
    @qp.kernel
    def one(k: I1):
        for i in k:
            into[1, 4] = i

    (race,) = qp.hazards.lint(one).races
    assert f"{race.second.array}{race.second.range}" == "into[1, 4]"
