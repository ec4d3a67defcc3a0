"""Races inside parallel loops: what is proved, what is certain, and that neither is ever wrong."""

from __future__ import annotations

import random
import runpy

import pytest
from racy_loops import keeps_last, locks, one_element, scatters, shifts
from random_loops import HEAD, Writer, races, touched

import quadpy as qp
from quadpy.ir.races import Definite, Proved, Unknown, definite_races, races_of
from quadpy.jit.offline import trace_for

I1 = qp.types.ndarray(dtype=qp.i32, ndim=1)


def traced(kernel, **given):
    return trace_for(kernel, given).kernel


EXTENTS = ((1, 1), (1, 3), (2, 2), (2, 5), (3, 2), (5, 3))


@pytest.fixture
def batch(request, tmp_path):
    """Loops at random, with the kernels that they are."""
    rng = random.Random(7)
    loops = [Writer(rng).loop(f"k{number}") for number in range(15 * request.config.getoption("--random-kernels"))]
    path = tmp_path / "loops.py"
    path.write_text(HEAD + "\n\n".join(loop.text for loop in loops))
    kernels = runpy.run_path(str(path))
    return [(loop, kernels[loop.name]) for loop in loops]


def test_definite_and_proved_are_never_wrong(batch):
    seen = {Definite: 0, Proved: 0, Unknown: 0}
    for loop, kernel in batch:
        verdicts = races_of(traced(kernel).tasks[0])
        found = {extents: touched(loop, *extents, seed=1) for extents in EXTENTS}
        for name, verdict in verdicts.items():
            seen[type(verdict)] += 1
            for extents, iterations in found.items():
                collided = races(iterations).get(name, set())
                where = f"{name} with n, m = {extents}: {verdict}\n{loop.text}"
                if isinstance(verdict, Proved):
                    assert not collided, f"{min(collided)} collide on {where}"
                if isinstance(verdict, Definite) and min(extents) >= 2 and len(iterations) >= 2:
                    assert collided, f"no race on {where}"
    assert all(count > 20 for count in seen.values()), seen


def test_the_iterations_of_a_definite_race_collide(batch):
    for loop, kernel in batch:
        for name, verdict in definite_races(traced(kernel).tasks[0]).items():
            for n, m in EXTENTS[2:]:
                values = {"n": n, "m": m}
                pair = tuple(
                    tuple(eval(text.partition("=")[2], {}, values) for text in point.iteration)
                    for point in (verdict.first, verdict.second)
                )
                iterations = touched(loop, n, m, seed=2)
                if len(iterations) >= 2:
                    assert pair in races(iterations).get(name, set()), f"{pair} on {name}: {verdict}\n{loop.text}"


I2 = qp.types.ndarray(dtype=qp.i32, ndim=2)
V1 = qp.types.ndarray(dtype=qp.math.vec2, ndim=1)


def verdict(kernel, array="x", task=0, **given):
    found = races_of(traced(kernel, **given).tasks[task])
    return found[array]


# ------------------------------------------------------------- proved


@qp.kernel
def copies_within_rows(x: I2):
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] += x[i, j - 1]


@qp.kernel
def splits_a_number(x: I2, n: qp.i32):
    for i in range(x.shape[0] * n):
        x[i // n, i % n] = i


@qp.kernel
def splits_a_number_in_three(x: I2, y: qp.types.ndarray(dtype=qp.i32, ndim=3), n: qp.i32, m: qp.i32):
    for i in range(y.shape[0] * n * m):
        y[i // m // n, i // m % n, i % m] = i


@qp.kernel
def joins_numbers(x: I1, n: qp.i32, m: qp.i32):
    for i, j in qp.ndrange(m, n):
        x[i * n + j] = i


@qp.kernel
def fills_blocks(x: I1, n: qp.i32):
    for i in range(x.shape[0] // n):
        for j in range(n):
            x[i * n + j] = j


@qp.kernel
def interleaves(x: I1):
    for i in range(x.shape[0] // 2):
        x[2 * i] = x[2 * i + 1]


@qp.kernel
def reads_the_other_half(x: I1, n: qp.i32):
    for i in range(n):
        x[i] = x[i + n]


@qp.kernel
def reverses(x: I1, y: I1):
    for i in y:
        x[x.shape[0] - 1 - i] = y[i]


@qp.kernel
def counts(x: I1, k: I1):
    for i in k:
        x[k[i]] += 1


@qp.kernel
def once(x: I1):
    for _ in range(1):
        x[0] = x[1]


@qp.kernel
def keeps_other_components(x: V1):
    for i in range(x.shape[0] - 1):
        x[i].x = x[i + 1].y


@qp.kernel
def reads_atomically(x: I1, y: I1):
    for i in y:
        if qp.atomic_or(x[i // 2], 0) < 10:
            x[y[i]] += 1


@pytest.mark.parametrize(
    "kernel",
    [reads_atomically, copies_within_rows, splits_a_number, joins_numbers, fills_blocks, interleaves, reads_the_other_half, reverses,
     counts, once, keeps_other_components],
    ids=lambda kernel: kernel.__name__,
)  # fmt: skip
def test_what_is_proved(kernel):
    assert verdict(kernel) == Proved()


@qp.kernel
def mixes_updates_of_its_own(x: I1):
    for i in x:
        qp.atomic_add(x[i], 1)
        qp.atomic_max(x[i], i)
        x[i] *= 2


def test_updates_that_do_not_commute_are_proved_where_they_are_apart():
    assert verdict(mixes_updates_of_its_own) == Proved()


def test_three_parts_of_a_number_are_proved():
    assert races_of(traced(splits_a_number_in_three).tasks[0])["y"] == Proved()


def test_nothing_is_proved_where_arrays_may_overlap():
    kernel = traced(reverses)
    found = races_of(kernel.tasks[0], noalias=False)
    assert isinstance(found["x"], Unknown)
    assert "overlap" in found["x"].reason


# ------------------------------------------------------------- definite


@qp.kernel
def forgets_an_axis(x: I1, y: I2):
    for i, j in y:
        x[i] = y[i, j]


@qp.kernel
def halves(x: I1):
    for i in range(x.shape[0]):
        x[i // 2] = i


@qp.kernel
def reads_what_is_updated(x: I1, y: I1, k: I1):
    for i in y:
        x[0] += y[i]
        y[i] = x[0]


@qp.kernel
def inner_loop(x: I1):
    for i in range(100):
        for j in range(3):
            x[j] = i


@qp.kernel
def far_in_a_known_loop(x: I1):
    for i in range(10):
        if i > 5:
            x[3] = i


@qp.kernel
def same_index_from_memory(x: I1, k: I1):
    for i in range(x.shape[0]):
        x[k[0]] = i


@pytest.mark.parametrize(
    ("kernel", "first", "second", "element"),
    [
        (shifts, "i=0", "i=1", "1"),
        (one_element, "i=0", "i=1", "0"),
        (forgets_an_axis, "i=0, j=0", "i=0, j=1", "0"),
        (halves, "i=0", "i=1", "0"),
        (reads_what_is_updated, "i=0", "i=1", "0"),
        (inner_loop, "i=0", "i=1", "0"),
        (far_in_a_known_loop, "i=6", "i=7", "3"),
        (same_index_from_memory, "i=0", "i=1", "k[0]"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_definite(kernel, first, second, element):
    found = verdict(kernel)
    assert isinstance(found, Definite)
    assert [", ".join(point.iteration) for point in (found.first, found.second)] == [first, second]
    assert ", ".join(found.element) == element


def test_both_places_are_named():
    found = verdict(shifts)
    assert (found.first.verb, found.second.verb) == ("writes", "reads")
    assert found.first.span.line == found.second.span.line
    assert "x[i + 1] = x[i]" in found.first.span.excerpt()
    assert found.needs == "two or more iterations over i"


def test_a_variable_from_before_the_loop_belongs_to_all_iterations():
    kernel = traced(keeps_last)
    (name,) = [name for name in races_of(kernel.tasks[1]) if name.startswith("$")]
    found = definite_races(kernel.tasks[1])[name]
    assert found.is_slot
    assert "last = y[i]" in found.second.span.excerpt()


# ------------------------------------------------------------- unknown


@qp.kernel
def conditional(x: I1, y: I1):
    for i in y:
        if y[i] > 0:
            x[0] = i


@qp.kernel
def says_the_same(x: I1, y: I1):
    for i in y:
        if y[i] > 0:
            x[0] = 1


@qp.kernel
def far_shift(x: I1):
    for i in range(x.shape[0] - 5):
        x[i + 5] = x[i]


@qp.kernel
def leaves_early(x: I1, y: I1):
    for i in y:
        if y[i] > 0:
            continue
        x[0] = i


@qp.kernel
def mixes_updates(x: I1):
    for i in range(x.shape[0]):
        x[0] += i
        qp.atomic_max(x[0], i)


@qp.kernel
def wraps(x: I1):
    for i in range(x.shape[0]):
        x[qp.i32(qp.i8(i)) & 255] = i


@qp.kernel
def wraps_when_it_is_assigned(x: I1):
    for i in range(x.shape[0]):
        place = qp.i16(0)
        place = i
        x[place] = i


@qp.kernel
def wraps_and_widens(x: I1):
    for i in range(x.shape[0]):
        x[qp.i64(qp.i16(qp.i64(i) * 4))] = i


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (wraps, "not shown to differ"),
        (wraps_when_it_is_assigned, "not shown to differ"),
        (wraps_and_widens, "not shown to differ"),
        (scatters, "not shown to differ"),
        (conditional, "one element in every iteration that comes there"),
        (says_the_same, "one value, the same in every iteration"),
        (far_shift, "not shown to differ"),
        (locks, "one element in every iteration"),
        (leaves_early, "one element in every iteration"),
        (mixes_updates, "add and max do not commute"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_unknown_says_why(kernel, reason):
    found = verdict(kernel)
    assert isinstance(found, Unknown)
    assert reason in found.reason
