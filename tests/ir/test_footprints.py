"""The boxes of kernels as users write them: as text, and against what the kernels touch when they run."""

from __future__ import annotations

import random

import pytest
from checking import check_kernel, footprints_for, values_for

import quadpy as qp
from quadpy.ir.footprints.text import print_footprints
from quadpy.jit.offline import trace_for

vec = qp.types.ndarray(qp.f32, ndim=1)
mat = qp.types.ndarray(qp.f32, ndim=2)
ints = qp.types.ndarray(qp.i32, ndim=1)


@pytest.fixture(autouse=True, scope="module")
def cpu():
    qp.init(arch=qp.cpu)


@qp.kernel
def whole(x: vec, y: vec):
    for i in x:
        y[i] = x[i]


@qp.kernel
def halo(x: vec, y: vec):
    for i in range(1, x.shape[0] - 1):
        y[i] = x[i - 1] + x[i + 1]


@qp.kernel
def half(x: vec, n: qp.i32):
    for i in range(0, n, 2):
        x[i] = 1.0
    for i in range(n, 0, -3):
        x[i - 1] = 2.0


@qp.kernel
def strided(x: vec, n: qp.i32):
    for i in range(n):
        x[3 * i + 1] = 1.0


@qp.kernel
def rows(a: mat, x: vec):
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(a.shape[1]):
            total += a[i, j] * x[j]
        a[i, 0] = total


@qp.kernel
def flat(a: mat, x: vec):
    for i, j in a:
        x[i * a.shape[1] + j] = a[i, j]


@qp.kernel
def unflat(a: mat, x: vec):
    for k in range(a.shape[0] * a.shape[1]):
        a[k // a.shape[1], k % a.shape[1]] = x[k]


@qp.kernel
def digits(x: vec, n: qp.i32):
    for k in range(n):
        x[k // 4 * 4 + k % 4] = 1.0


@qp.kernel
def least(x: vec, y: vec, n: qp.i32):
    for i in y:
        best, lowest = 0, x[0]
        for k in range(1, n):
            if x[k] < lowest:
                best, lowest = k, x[k]
            y[best] = lowest
        nearest = -1
        for k in range(3, 8):
            if x[k] > lowest:
                nearest = k + 1
                break
        if nearest >= 0:
            x[nearest] = 0.0
        y[i] = x[best + 1]


@qp.kernel
def raised(x: vec):
    for _ in range(1):
        k = 2
        while x[k] < 10.0 and k < x.shape[0] - 3:
            x[k] += 1.0
            if x[k] > 9.0:
                k += 1


@qp.kernel
def turned(x: vec, n: qp.i32):
    for k in range(n):
        x[k % 4 + 4 * (k // 4 % 2)] = 1.0


@qp.kernel
def packed(x: vec, y: mat):
    for i in range(y.shape[0]):
        k = 2 * i
        for j in range(y.shape[1]):
            x[k] = y[i, j]
            k += 3
        x[k] = 0.0


@qp.kernel
def sought(x: vec, y: mat):
    for i in range(y.shape[0]):
        k = i
        while k < x.shape[0] and y[i, 0] > 0.0:
            x[k] += 1.0
            if x[k] > 2.0:
                k += 2


@qp.kernel
def guarded(x: vec, y: vec):
    for i in x:
        if i > 0:
            y[i - 1] = x[i]
        if i == 0:
            y[i] = 0.0
        if i != 0 and i < x.shape[0] - 2:
            y[i + 2] = 1.0


@qp.kernel
def skipped(x: vec, n: qp.i32):
    for i in x:
        if i >= n:
            continue
        x[i] = 1.0


@qp.kernel
def neighbours(a: mat, b: mat):
    for i, j in a:
        for d in range(-1, 2):
            if 0 <= i + d < a.shape[0]:
                b[i, j] += a[i + d, j]


@qp.kernel
def clamped(x: vec, y: vec):
    for i in x:
        y[i] = x[min(i + 1, x.shape[0] - 1)] + x[max(i - 1, 0)] + x[qp.math.clamp(i - 2, 0, 5)]


@qp.kernel
def periodic(x: vec, y: vec):
    for i in x:
        left = (i - 1) % x.shape[0]
        right = i + 1 if i + 1 < x.shape[0] else 0
        y[i] = x[left] + x[right]


@qp.kernel
def gathered(x: vec, at: ints, y: vec):
    for i in y:
        k = at[i]
        y[i] = x[k]
        if 0 <= k < 10:
            x[k] = 1.0


@qp.kernel
def conditional(x: vec, y: vec, flag: qp.i32):
    for i in x:
        if x[i] > 0.0:
            y[i] = 1.0
        if flag > 2:
            y[i] = 3.0


@qp.kernel
def triangle(a: mat):
    for i in range(a.shape[0]):
        for j in range(i + 1):
            a[i, j] = 0.0


@qp.kernel
def chunks(x: vec, n: qp.i32):
    for b in range(n):
        for i in range(b * 8, (b + 1) * 8):
            x[i] = 1.0


@qp.kernel
def overhang(x: vec, n: qp.i32):
    for b, t in qp.ndrange((n + 63) // 64, 64):
        i = b * 64 + t
        if i < n:
            x[i] = 1.0


@qp.kernel
def searched(x: vec, n: qp.i32):
    for _ in range(n):
        j = 0
        while x[j] > 0.0:
            j += 1
        for k in range(4):
            if x[k] > 2.0:
                break
            x[k + 4] = 1.0


@qp.kernel
def counted(x: vec, bins: ints, total: vec):
    for i in x:
        bins[int(x[i])] += 1
        qp.atomic_max(bins[0], i)
        qp.atomic_add(total[2], x[i])
        total[0] += x[i]
        if x[i] > 3.0:
            total[1] += 1.0


@qp.kernel
def reached(x: vec, y: vec):
    for i in x:
        y[i] = early(x, i)


@qp.func
def early(x: qp.template(), i):
    if i < 3:
        return x[0]
    return x[i]


@qp.kernel
def diagonal(a: mat):
    for i in range(a.shape[0]):
        a[i, i] = 1.0


@qp.kernel
def blocked(x: vec):
    qp.loop_config(block_dim=64)
    for i in x:
        pad = qp.simt.block.SharedArray((64,), qp.f32)
        pad[qp.simt.block.thread_idx()] = x[i]
        qp.simt.block.sync()
        x[qp.simt.block.block_idx() * 64 + qp.simt.block.thread_idx()] = pad[0]


@qp.kernel
def shifted(x: vec, n: qp.i32):
    for i in range(n):
        x[i << 1] = 1.0
        x[i >> 1] = 2.0
        x[i & 3] = 3.0


@qp.kernel
def serial(x: vec, n: qp.i32):
    x[n] = 1.0
    qp.loop_config(serialize=True)
    for i in range(3):
        x[i] = 2.0


TEXTS = {
    whole: ["writes y[0 : x.shape[0]]", "reads x[:]"],
    halo: ["writes y[1 : x.shape[0] - 1]", "reads x[0 : x.shape[0] - 2]", "reads x[2 :]"],
    half: ["writes x[0 : 2 * ((n + 1) // 2) - 1 : 2]", "writes x[n + 2 - 3 * ((n + 2) // 3) : n : 3]"],
    strided: ["writes x[1 : 3 * n - 1 : 3]"],
    rows: ["reads a[:, :]", "reads x[0 : a.shape[1]]", "writes a[:, 0]"],
    flat: ["writes x[0 : a.shape[0] * a.shape[1]]", "reads a[:, :]"],
    unflat: ["writes a[0 : ((a.shape[0] * a.shape[1] - 1) // a.shape[1]) + 1, "],
    digits: ["writes x[0 : n]"],
    packed: [
        "writes x[0 : 2 * y.shape[0] + 3 * y.shape[1] - 4]",
        "writes x[3 * y.shape[1] : 2 * y.shape[0] + 3 * y.shape[1] - 1 : 2]",
    ],
    sought: ["may read x[:]", "may write x[:]"],
    least: [
        "reads some of x[1 : max(0, n - 1) + 2]",
        "may write x[0 : 9]",
        "writes some of y[0 : max(0, n - 1) + 1]",
    ],
    raised: ["reads some of x[2 : max(2, x.shape[0] - 3) + 1]", "may read x[2 : x.shape[0] - 3]"],
    turned: ["writes x[0 : "],
    guarded: ["writes y[0 : x.shape[0] - 1]", "reads x[1 :]", "writes y[0]", "writes y[3 : x.shape[0]]"],
    skipped: ["writes x[0 : min(n - 1, x.shape[0] - 1) + 1]"],
    neighbours: ["reads a[:, :]"],
    clamped: ["reads x[min(1, x.shape[0] - 1) :]", "reads x[0 : max(0, x.shape[0] - 2) + 1]", "reads x[0 : "],
    periodic: ["reads x[:]", "reads some of x[0 : "],
    gathered: ["reads some of x[:]", "may write x[0 : 10]", "reads at[0 : y.shape[0]]"],
    conditional: ["may write y[0 : x.shape[0]]", "writes y[0 : x.shape[0]]"],
    triangle: ["may write a[:, 0 : a.shape[0]]"],
    chunks: ["writes x[0 : 8 * n]"],
    overhang: ["writes x[0 : min("],
    searched: ["reads some of x[:]", "may write x[4 : 8]", "may read x[0 : 4]"],
    counted: [
        "reads some of bins[:]",
        "writes some of bins[:]",
        "updates bins[0] by max",
        "updates total[2] by add",
        "reads total[0]",
        "may write total[1]",
    ],
    reached: ["reads x[0]", "reads x[3 :]"],
    diagonal: ["writes some of a[:, 0 : a.shape[0]]"],
    blocked: ["reads x[:]", "writes x[:]"],
    shifted: ["writes x[0 : 2 * n - 1 : 2]", "writes x[0 : ((n - 1) // 2) + 1]", "writes x[0 : min(3, n - 1) + 1]"],
    serial: ["writes x[n]", "writes x[0 : 3]"],
}


@pytest.mark.parametrize("kernel", TEXTS, ids=lambda kernel: kernel.__name__)
def test_the_text_says_what_is_touched(kernel):
    shown = print_footprints(trace_for(kernel, {}).kernel, {})
    assert [text for text in TEXTS[kernel] if text not in shown] == [], shown


@pytest.mark.parametrize("kernel", [each for each in TEXTS if each is not blocked], ids=lambda kernel: kernel.__name__)
def test_boxes_are_what_the_kernel_touches(kernel):
    found = check_kernel(trace_for(kernel, {}).kernel, random.Random(1), launches=12)
    assert found[0] > 0


def boxes(kernel, numbers=None, **shapes):
    traced = trace_for(kernel, {}).kernel
    touches = footprints_for(traced).at(values_for(traced, numbers or {}, shapes))
    return [(touch.footprint.array, touch.footprint.access.name, touch.box) for launch in touches for touch in launch]


def test_a_launch_without_iterations_touches_nothing():
    assert boxes(halo, x=(2,), y=(9,)) == []


def test_boxes_end_where_the_array_does():
    assert boxes(whole, x=(9,), y=(4,))[1] == ("y", "WRITE", ((range(4),), True, True))


def test_what_an_argument_decides_is_known_at_the_launch():
    assert [name for name, _, box in boxes(conditional, {"flag": 2}, x=(4,), y=(4,)) if box.always] == ["x"]
    found = boxes(conditional, {"flag": 3}, x=(4,), y=(4,))
    assert ("y", "WRITE", ((range(4),), True, True)) in found


def test_digits_are_exact_where_whole_rows_are_covered():
    writes = [box for name, access, box in boxes(unflat, a=(3, 5), x=(15,)) if access == "WRITE"]
    assert writes == [((range(3), range(5)), True, True)]
    writes = [box for _, _, box in boxes(turned, {"n": 7}, x=(9,))]
    assert writes == [((range(8),), False, True)]
    writes = [box for _, _, box in boxes(turned, {"n": 8}, x=(9,))]
    assert writes == [((range(8),), True, True)]


def test_an_index_that_wraps_may_be_anywhere():
    found = boxes(strided, {"n": 1 << 30}, x=(1 << 31,))
    assert found == [("x", "WRITE", (None, False, False))]
    found = boxes(strided, {"n": 1 << 29}, x=(1 << 31,))
    assert found == [("x", "WRITE", ((range(1, 3 * (1 << 29) - 1, 3),), True, True))]


def test_bounds_of_a_loop_that_wrap_may_be_any():
    @qp.kernel
    def far(x: vec, n: qp.i32):
        for i in range(n + 1):
            x[i] = 1.0

    assert boxes(far, {"n": (1 << 31) - 1}, x=(8,)) == [("x", "WRITE", (None, False, False))]
    assert boxes(far, {"n": 3}, x=(8,)) == [("x", "WRITE", ((range(4),), True, True))]


def test_a_guard_that_wraps_is_no_guard():
    @qp.kernel
    def near(x: vec, n: qp.i32):
        for i in range(n, n + 4):
            if i + 3 < 8:
                x[i] = 1.0

    last = (1 << 31) - 6
    assert boxes(near, {"n": last}, x=(8,)) == [("x", "WRITE", (None, False, False))]
    assert boxes(near, {"n": 3}, x=(8,)) == [("x", "WRITE", ((range(3, 5),), True, True))]


def test_a_running_index_that_wraps_may_be_anywhere():
    @qp.kernel
    def narrow(x: vec, n: qp.i32):
        for _ in range(1):
            k = qp.u8(0)
            for _ in range(n):
                x[k] = 1.0
                k += qp.u8(1)

    assert boxes(narrow, {"n": 300}, x=(400,)) == [("x", "WRITE", (None, False, False))]
    assert boxes(narrow, {"n": 200}, x=(400,)) == [("x", "WRITE", ((range(200),), True, True))]


def test_what_a_while_loop_adds_to_begins_where_it_began():
    @qp.kernel
    def walked(x: vec, n: qp.i32, end: qp.i32):
        for _ in range(1):
            k = n
            while k < end and x[0] > 0.0:
                x[k] = 1.0
                k += 1

    writes = [box for _, access, box in boxes(walked, {"n": 3, "end": 6}, x=(9,)) if access == "WRITE"]
    assert writes == [((range(3, 6),), False, False)]
    writes = [box for _, access, box in boxes(walked, {"n": 3, "end": (1 << 31) - 1}, x=(9,)) if access == "WRITE"]
    assert writes == [((range(3, 9),), False, False)]


def test_fields_and_members_have_their_offsets_and_parts():
    x = qp.Vector.field(3, qp.f32, shape=6, offset=-2)
    point = qp.types.struct(a=qp.f32, b=qp.types.vector(2, qp.f32)).field(shape=5)

    @qp.kernel
    def put():
        for i in x:
            x[i].y = 1.0
        for i in range(1, 4):
            point[i].b[1] = point[i].a

    first, second = footprints_for(traced := trace_for(put, {}).kernel).at(values_for(traced, {}, {}))
    assert [(touch.footprint.components, touch.box.axes) for touch in first] == [((1,), (range(6),))]
    assert {(touch.footprint.components, touch.box.axes) for touch in second} == {
        ((0,), (range(1, 4),)),
        ((2,), (range(1, 4),)),
    }


def test_a_place_is_the_line_of_the_access():
    traced = trace_for(halo, {}).kernel
    (launch,) = footprints_for(traced).tasks
    assert {each.location.line for each in launch} == {halo.source.span.line + 3}


def test_equal_numbers_give_the_same_boxes():
    traced = trace_for(halo, {}).kernel
    found = footprints_for(traced)
    one = found.at(values_for(traced, {}, {"x": (8,), "y": (8,)}))
    assert found.at(values_for(traced, {}, {"x": (8,), "y": (8,)})) is one
    assert found.at(values_for(traced, {}, {"x": (9,), "y": (8,)})) != one


def test_guards_that_exclude_each_other_leave_nothing_certain():
    @qp.kernel
    def nothing(x: vec):
        for i in x:
            if i != 2 and i == 2:
                x[i] = 1.0
            if i != 4 and i != 3 and i != 5 and 3 <= i <= 5:  # noqa: PLR1714 - three guards, as users write them
                x[i] = 2.0

    assert [box for _, _, box in boxes(nothing, x=(8,)) if box.always or box.exact] == []
