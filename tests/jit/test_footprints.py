"""Plans hand out what their launches touch."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys

import numpy as np
import pytest
from touches import touches_of

import quadpy as qp
from quadpy.ir.nodes import Access


@qp.kernel
def shift(x: qp.types.ndarray(qp.f32, ndim=1), y: qp.types.ndarray(qp.f32, ndim=1)):
    for i in range(1, x.shape[0]):
        y[i] = x[i - 1]
    for i in y:
        y[i] += 1.0


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


def test_each_launch_has_what_it_touches():
    x = np.zeros(8, np.float32)
    first, second = touches_of(shift, x, x.copy())
    assert {(t.footprint.array, t.footprint.access) for t in first} == {("x", Access.READ), ("y", Access.WRITE)}
    assert {(t.footprint.array, t.footprint.access) for t in second} == {("y", Access.READ), ("y", Access.WRITE)}
    lines = {t.footprint.location.line for t in first}
    assert lines == {shift.source.span.line + 3}


def boxes_of(kernel, *args):
    return [touch.box for launch in touches_of(kernel, *args) for touch in launch]


def test_they_are_those_of_the_code_that_runs_though_the_world_has_changed():
    bound = 3

    @qp.kernel
    def put(x: qp.types.ndarray(qp.f32, ndim=1)):
        for i in range(bound):
            x[i] = 1.0

    x = np.zeros(8, np.float32)
    put(x)
    bound = 5
    assert boxes_of(put, x) == [((range(3),), True, True)]


@pytest.mark.quadpy_hazards(off="with the checker on, the first call traces the kernel again")
def test_what_nobody_can_trace_again_may_touch_all():
    class Sizes:
        size = 1

        def __len__(self):
            return self.size

    @qp.kernel
    def put(x: qp.types.ndarray(qp.f32, ndim=1)):
        for i in range(len(sizes)):
            x[i] = 1.0

    sizes, x = Sizes(), np.zeros(8, np.float32)
    put(x)
    sizes.size = 5
    assert boxes_of(put, x) == [(None, False, False)]


def test_arrays_that_overlap_have_boxes_too():
    x = np.zeros(9, np.float32)
    first, _ = touches_of(shift, x[:8], x[1:])
    assert {(touch.footprint.array, touch.box.axes) for touch in first} == {("x", (range(7),)), ("y", (range(1, 8),))}


def test_a_strided_view_counts_its_own_elements():
    x = np.zeros((6, 4), np.float32)

    @qp.kernel
    def clear(y: qp.types.ndarray(qp.f32, ndim=2)):
        for i, j in y:
            y[i, j] = 0.0

    assert boxes_of(clear, x[::2, 1:3]) == [((range(3), range(2)), True, True)]


def test_checks_and_their_memory_are_not_the_programs():
    @qp.kernel(debug=True)
    def spread(x: qp.types.ndarray(qp.f32, ndim=1), at: qp.types.ndarray(qp.i32, ndim=1), n: qp.i32):
        for i in range(n):
            x[at[i]] = 1.0

    x, at = np.zeros(8, np.float32), np.arange(8, dtype=np.int32)
    touched = [(touch.footprint.array, touch.box.axes) for launch in touches_of(spread, x, at, 8) for touch in launch]
    assert ("at", (range(8),)) in touched
    assert {name for name, _ in touched} == {"x", "at"}


PROGRAM = """
import sys
import numpy as np
import quadpy as qp

qp.init(arch=qp.cpu)

@qp.kernel
def put(x: qp.types.ndarray(qp.f32, ndim=1)):
    for i in range(1, x.shape[0]):
        x[i] = 1.0

x = np.zeros(8, np.float32)
put(x)
loaded = [name for name in sys.modules if "footprints" in name]
assert not loaded, loaded
plan = put.planned((x,), {}, lambda plan, values, views: plan)
(touch,) = plan.footprints().at([0, 8])[0]
print(touch.box.axes, touch.footprint.location.line)
"""


def test_code_from_the_disk_has_them_and_pays_nothing_until_it_is_asked(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    for _ in range(2):
        done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "(range(1, 8),) 11", done.stderr


@qp.func
def wrapped(i, n, first, extent):
    at = i % n - first
    return at + n if at < 0 else (at - n if at >= extent else at)


@qp.kernel
def far_away(
    x: qp.types.ndarray(qp.f32, ndim=2), y: qp.types.ndarray(qp.f32, ndim=2), n: qp.i32, first: qp.i32, low: qp.i32,
    high: qp.i32,
):  # fmt: skip
    """A part of a periodic array, where indices are those of the whole."""
    for i, j in qp.ndrange((max(0, low), min(n, high)), (max(0, low), min(n, high))):
        at = wrapped(i + n - 2, n, first, x.shape[0]), wrapped(j + 1, n, first, x.shape[1])
        y[i - first, j - first] = x[at[0], at[1]]


def test_boxes_of_long_formulas_are_found_with_the_numbers_of_a_launch(monkeypatch):
    monkeypatch.setattr("quadpy.ir.index.numbers.MOST_TEXT", 200)
    x, y = np.zeros((16, 16), np.float32), np.zeros((10, 10), np.float32)

    def boxes(low, high):
        (touches,) = touches_of(far_away, x, y, 40, 10, low, high)
        return {(t.footprint.array, *t.box.axes, t.box.exact) for t in touches}

    assert boxes(14, 18) == {("x", range(2, 6), range(5, 9), True), ("y", range(4, 8), range(4, 8), True)}
    assert boxes(13, 18) == {("x", range(1, 6), range(4, 9), True), ("y", range(3, 8), range(3, 8), True)}


@qp.kernel
def parts(x: qp.types.ndarray(qp.f32, ndim=2), y: qp.types.ndarray(qp.f32, ndim=1), a: qp.i32, b: qp.i32, step: qp.i32):
    for i in range(a, b):
        for j in range(1, x.shape[1], 2):
            x[i, j] = y[i % 7] + y[(i + a) // 2]
        if a > 3:
            y[b - i] = 1.0
    for i in range(a, b, step):
        y[i] = x[0, i % 5]


def test_boxes_of_many_calls_contain_those_of_each():
    chance = random.Random(5)
    x, y = np.zeros((9, 8), np.float32), np.zeros(12, np.float32)
    calls, boxes = [], {}

    def note(plan, values, views):
        calls.append(list(values))
        for touch in itertools.chain(*plan.footprints().at(values)):
            boxes.setdefault(touch.footprint, []).append(touch.box)
        return plan.footprints()

    for _ in range(300):
        found = parts.planned((x, y, *(chance.randint(-3, 14) for _ in range(2)), chance.randint(1, 4)), {}, note)
    together = {touch.footprint: touch.box for touch in found.together(calls)}
    assert together.keys() >= boxes.keys()
    shapes = {"x": x.shape, "y": y.shape}
    for footprint, each in boxes.items():
        hull = together[footprint]
        assert not hull.exact
        assert not hull.always
        for box in each:
            for axis, inner, extent in zip(hull.axes, box.axes or (), shapes[footprint.array], strict=True):
                assert axis.step == 1
                assert 0 <= axis.start <= inner[0] <= inner[-1] < axis.stop <= extent
    one = {touch.footprint: touch.box.axes for touch in found.together([calls[0], calls[0]])}
    for touch in itertools.chain(*found.at(calls[0])):
        assert [range(axis[0], axis[-1] + 1) for axis in touch.box.axes] == [*one[touch.footprint]]
