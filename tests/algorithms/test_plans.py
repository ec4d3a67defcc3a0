"""Calls whose arrays have the types and shapes of an earlier call: what they launch is known."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import quadpy as qp
from quadpy.algorithms import plans
from quadpy.errors import ArgumentError


@pytest.fixture(autouse=True)
def begin_again(arch):
    yield
    qp.init(arch=arch, cpu_max_num_threads=2)


@qp.func
def larger(a, b):
    return qp.max(a, b)


def array(numbers) -> qp.NDArray:
    found = np.asarray(numbers)
    made = qp.ndarray({"f": qp.f32, "i": qp.i32, "u": qp.u32, "b": qp.u1}[found.dtype.kind], found.shape)
    made.from_numpy(found.astype({"f": np.float32, "i": np.int32, "u": np.uint32, "b": np.bool_}[found.dtype.kind]))
    return made


def numbers_of(found) -> list[np.ndarray]:
    return [part.to_numpy() for part in (found if isinstance(found, tuple) else (found,))]


N = 1000
CALLS = {
    "reduce": lambda x, k, f: qp.algorithms.reduce(x),
    "largest": lambda x, k, f: qp.algorithms.reduce(x, "max"),
    "reduce by a function": lambda x, k, f: qp.algorithms.reduce(x, larger, identity=0.0),
    "reduce integers": lambda x, k, f: qp.algorithms.reduce(k),
    "reduce into one of several": lambda x, k, f: qp.algorithms.reduce(x, out=qp.ndarray(qp.f32, 1)),
    "argmin": lambda x, k, f: qp.algorithms.argmin(x),
    "argmax": lambda x, k, f: qp.algorithms.argmax(x),
    "inclusive_scan": lambda x, k, f: qp.algorithms.inclusive_scan(x),
    "exclusive_scan": lambda x, k, f: qp.algorithms.exclusive_scan(x, initial=2.0),
    "sort": lambda x, k, f: qp.algorithms.sort(x),
    "sort downwards": lambda x, k, f: qp.algorithms.sort(k, descending=True),
    "argsort": lambda x, k, f: qp.algorithms.argsort(x),
    "sort_pairs": lambda x, k, f: qp.algorithms.sort_pairs(k, x),
    "select": lambda x, k, f: qp.algorithms.partition(x, f),
    "histogram": lambda x, k, f: qp.algorithms.histogram(x, 8),
    "histogram of a range": lambda x, k, f: qp.algorithms.histogram(x, 8, (0.25, 0.5)),
    "bincount": lambda x, k, f: qp.algorithms.bincount(k, 16),
    "permutation": lambda x, k, f: qp.algorithms.permutation(100, seed=3),
    "shuffle": lambda x, k, f: qp.algorithms.shuffle(x, seed=3),
    "scan by key": lambda x, k, f: qp.algorithms.inclusive_scan_by_key(k, x),
}


def arguments(seed: int) -> tuple[qp.NDArray, qp.NDArray, qp.NDArray]:
    random = np.random.default_rng(seed)
    return array(random.random(N)), array(random.integers(0, 16, N)), array(random.random(N) > 0.5)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_later_calls_launch_what_the_first_one_did(call, monkeypatch):
    kept = [call(*arguments(0))]
    expected = []
    with monkeypatch.context() as patched:
        patched.setattr(plans, "_signed", _unknown)
        expected = [numbers_of(call(*arguments(seed))) for seed in (0, 1, 2)]
    monkeypatch.setattr(plans.Run, "launch", None)  # neither checked nor prepared again
    monkeypatch.setattr(plans, "_Recorder", None)
    kept += [call(*arguments(1)), call(*arguments(2))]
    for found, wanted in zip(kept, expected, strict=True):  # each call has results of its own
        for one, other in zip(numbers_of(found), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def _unknown(*_: object) -> None:
    raise plans._Unknown


def test_results_have_the_type_that_the_first_call_gave():
    x, _, flags = arguments(0)
    for _ in range(2):
        assert qp.algorithms.select(x, flags).count.shape == ()
        assert type(qp.algorithms.histogram(x, 4)) is tuple
        out = qp.ndarray(qp.f32, N)
        assert qp.algorithms.sort(x, out=out) is out
        assert qp.algorithms.reduce(x, out=qp.ndarray(qp.f32, 1)).shape == ()


@pytest.mark.parametrize(("first", "second"), [(0.0, -0.0), (1, 1.0), (1, True), (float("nan"), 2.0)])
def test_numbers_that_are_equal_or_are_not_equal_to_themselves_are_told_apart(first, second):
    x = array(np.array([-0.0], np.float32))

    def bits(initial) -> int:
        return canonical(qp.algorithms.exclusive_scan(x, initial=initial).to_numpy())

    def canonical(found: np.ndarray) -> int:
        """NaNs are one, as on a GPU."""
        return int(np.where(np.isnan(found), np.float32(np.nan), found).view(np.uint32)[0])

    wanted = [canonical(np.array([number], np.float32)) for number in (first, second)]
    assert [bits(first), bits(second), bits(first), bits(second)] == [*wanted, *wanted]


def test_shapes_types_operators_and_configurations_are_told_apart(arch):
    for _ in range(2):
        for dtype in (np.float32, np.int32):
            for count in (3, 4):
                x = array(np.arange(1, 1 + count).astype(dtype))
                assert qp.algorithms.reduce(x).to_numpy() == count * (count + 1) // 2
                assert qp.algorithms.reduce(x, "mul").to_numpy() == np.prod(np.arange(1, 1 + count))
                assert qp.algorithms.reduce(x, larger, identity=0).to_numpy() == count
        qp.init(arch=arch, debug=True)


def test_in_place_and_beside_each_other():
    for seed in (0, 1):
        x, _, _ = arguments(seed)
        wanted = np.sort(x.to_numpy())
        np.testing.assert_array_equal(qp.algorithms.sort(x).to_numpy(), wanted)
        assert qp.algorithms.sort(x, out=x) is x
        np.testing.assert_array_equal(x.to_numpy(), wanted)


def test_arrays_that_share_memory_are_refused_after_others_that_do_not():
    x, _, flags = arguments(0)
    qp.algorithms.select(x, flags, out=qp.ndarray(qp.f32, N))
    with pytest.raises(ArgumentError, match="overlap"):
        qp.algorithms.select(x, flags, out=x)


def test_what_depends_on_numbers_is_looked_at_in_each_call(arch):
    if arch != "cpu":
        pytest.skip("the values of an array on a GPU are not read")
    x = array(np.arange(6.0)[::-1])
    segments = array(np.array([0, 3, 6]))
    for _ in range(2):
        assert qp.algorithms.sort(x, segments=segments).to_numpy().tolist() == [3, 4, 5, 0, 1, 2]
    segments.from_numpy(np.array([0, 5, 4], np.int32))
    with pytest.raises(ArgumentError, match="do not decrease"):
        qp.algorithms.sort(x, segments=segments)


def test_errors_come_again():
    x = array(np.arange(6.0))
    for _ in range(2):
        with pytest.raises(ArgumentError, match="not an operator"):
            qp.algorithms.reduce(x, "median")


def test_calls_that_are_watched_are_seen():
    x, _, _ = arguments(0)
    qp.algorithms.sort(x)
    with qp.profile() as profile:
        qp.algorithms.sort(x)
    assert profile.records
    with qp.graph.capture():
        qp.algorithms.sort(x, out=x)  # runs when the graph does
    np.testing.assert_array_equal(x.to_numpy(), arguments(0)[0].to_numpy())


def test_threads_have_scratch_memory_of_their_own():
    x, _, _ = arguments(0)
    wanted = np.sort(x.to_numpy()).tolist()
    wrong = []

    def work() -> None:
        for _ in range(200):
            if qp.algorithms.sort(x).to_numpy().tolist() != wanted:
                wrong.append(x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_kept_calls_are_bounded(monkeypatch):
    monkeypatch.setattr(plans, "_MOST", 4)
    for count in range(1, 12):
        qp.algorithms.reduce(qp.ndarray(qp.f32, count))
        assert len(plans._Known.plans) <= 5


def test_nothing_of_the_callers_is_kept():
    x, _, _ = arguments(0)
    known = weakref.ref(x)
    qp.algorithms.sort(x)
    qp.algorithms.sort(x)
    del x
    gc.collect()
    assert known() is None
