"""Calls on the CPU: the arrays of the last two calls are known again, and all else is a new call."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import numpy as np
import pytest

import quadpy as qp
from quadpy.jit.dispatcher import Dispatcher
from quadpy.jit.fast_call import repeated
from quadpy.jit.fast_call.arguments import define
from quadpy.jit.fast_call.repeated import RepeatedCalls

COUNT = 20
NAMES = [f"x{k}" for k in range(COUNT)]


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


@pytest.fixture
def resolved(monkeypatch):
    """Counts the calls that were resolved step by step."""
    count, original = [], Dispatcher.resolve
    monkeypatch.setattr(Dispatcher, "resolve", lambda *args: count.append(1) or original(*args))
    return count


@pytest.fixture
def add(load):
    """Adds ``scale`` to the first element of each array, and returns the sum of these."""
    adds = "".join(f"            s.x{k}[0] += scale\n            total += s.x{k}[0]\n" for k in range(COUNT))
    return load(f"""
        import dataclasses

        @dataclasses.dataclass(frozen=True)
        class Many:
{"".join(f"            {name}: qp.Tensor{chr(10)}" for name in NAMES)}

        @qp.kernel
        def add(s: Many, scale: qp.f32, extra: qp.Array1D[qp.f32]) -> qp.f32:
            total = extra[0]
{adds}
            return total
    """)


def made(cls, start=0.0):
    arrays = [qp.ndarray(qp.f32, 1) for _ in NAMES]
    for array in arrays:
        array.fill(start)
    return cls(*arrays)


def test_the_same_arrays_are_known_again(add, resolved):
    many, extra = made(add.Many), qp.ndarray(qp.f32, 1)
    assert add.add(many, 1.0, extra) == 20.0
    resolved.clear()
    results = [add.add(many, scale, extra) for scale in (1.0, 2, np.float32(0.5))]
    assert results == [40.0, 80.0, 90.0]
    assert add.add(extra=extra, s=many, scale=1.0) == 110.0
    assert not resolved
    assert many.x3[0] == 5.5


def test_other_arrays_are_another_call(add, resolved):
    first, second, extra = made(add.Many), made(add.Many, 100.0), qp.ndarray(qp.f32, 1)
    add.add(first, 0.0, extra)
    resolved.clear()
    for step in range(1, 4):
        assert add.add(first, 1.0, extra) == 20.0 * step
        assert add.add(second, 1.0, extra) == 20.0 * (100 + step)
    mixed = dataclasses.replace(first, x7=second.x7)
    assert add.add(mixed, 0.0, extra) == 19 * 3 + 103
    view = np.full(1, 5, np.float32)  # another library's array is described each time
    for step in range(1, 3):
        assert add.add(dataclasses.replace(first, x7=view), 1.0, extra) == 19 * (3 + step) + 5 + step
    assert len(resolved) == 4


def test_arrays_that_overlap_have_their_own_code(add):
    many, extra = made(add.Many), qp.ndarray(qp.f32, 1)
    twice = dataclasses.replace(many, x1=many.x0)
    for step in (1, 2, 3):
        total = add.add(twice, 1.0, extra)
        assert total == 18 * step + (2 * step - 1) + 2 * step
    assert add.add(many, 0.0, extra) == 18 * 3 + 6


def test_no_array_is_kept_alive(add):
    many, extra = made(add.Many), qp.ndarray(qp.f32, 1)
    add.add(many, 1.0, extra)
    add.add(many, 1.0, extra)
    gone = weakref.ref(many.x5)
    del many
    gc.collect()
    assert gone() is None
    assert add.add(made(add.Many), 1.0, extra) == 20.0


def test_wrong_numbers_are_reported(add):
    many, extra = made(add.Many), qp.ndarray(qp.f32, 1)
    add.add(many, 1.0, extra)
    with pytest.raises(qp.ArgumentError, match="scale takes a number"):
        add.add(many, "one", extra)
    with pytest.raises(qp.ArgumentError, match="extra"):
        add.add(many, 1.0)
    assert add.add(many, 1.0, extra) == 40.0


def test_another_configuration_is_another_call(add, init):
    many, extra = made(add.Many), qp.ndarray(qp.f32, 1)
    add.add(many, 1.0, extra)
    add.add(many, 1.0, extra)
    init(arch=qp.python)
    assert add.add(many, 1.0, extra) == 60.0
    init(arch=qp.cpu, debug=True)
    assert add.add(many, 1.0, extra) == 80.0


def test_captured_calls_are_recorded(load):
    arrays = "".join(f"x{k}: qp.Array1D[qp.i32], " for k in range(COUNT))
    kernel = load(f"""
        @qp.kernel
        def count({arrays}):
            for i in x0:
                {"; ".join(f"x{k}[i] += 1" for k in range(COUNT))}
    """).count
    xs = [qp.ndarray(qp.i32, 4) for _ in range(COUNT)]
    kernel(*xs)
    kernel(*xs)
    with qp.graph.capture() as graph:
        kernel(*xs)
    assert xs[3][0] == 2
    run = graph.instantiate()
    run.launch()
    qp.sync()
    kernel(*xs)
    assert [x.to_numpy().tolist() for x in (xs[0], xs[-1])] == [[4] * 4] * 2


@pytest.fixture
def plain(load):
    return load("""
        x = qp.field(qp.f32, 4)

        @qp.kernel
        def grow():
            for i in x:
                x[i] += 1

        @qp.kernel
        def saxpy(a: qp.f32, x: qp.Array1D[qp.f32], y: qp.Array1D[qp.f32]):
            for i in x:
                y[i] += a * x[i]

        @qp.kernel
        def take(flag: qp.u1, half: qp.f16, n: qp.i32, v: qp.types.vector(3, qp.f32)) -> qp.f32:
            return x[0] + n + half + v.sum() if flag else 0.0

        @qp.kernel
        def draw(y: qp.Array1D[qp.f32]):
            for i in y:
                y[i] = qp.random(qp.f32) + x[0]
    """)


def test_kernels_with_few_arrays_or_none(plain, resolved):
    x, y = (qp.ndarray(qp.f32, 4) for _ in range(2))
    x.fill(1.0)
    plain.grow()
    plain.saxpy(1.0, x, y)
    plain.take(True, 0.5, 1, qp.Vector([1.0, 2.0, 3.0]))
    resolved.clear()
    for step in range(2, 5):
        plain.grow()
        assert plain.x[3] == step
        assert plain.take(True, 0.5, step, qp.Vector([1.0, 2.0, 3.0])) == 2 * step + 6.5
    assert plain.take(np.bool_(False), np.float16(1), np.int32(1), [1, 2, 3]) == 0.0
    for scale in (2, np.float64(3.0), True):
        plain.saxpy(scale, x, y)
    assert not resolved
    assert y.to_numpy().tolist() == [7.0] * 4
    for args, name in (
        ((1.0, 0.5, 1.5, [1, 2, 3]), "n takes"),
        ((True, 0.5, 1, [1, 2]), "v takes"),
        ((True, 0.5, 2**40, [1, 2, 3]), "n: "),
    ):
        with pytest.raises(qp.ArgumentError, match=name):
            plain.take(*args)
    for wrong in (None, 1.0, np.zeros(3, np.float64)):
        with pytest.raises(qp.QuadpyError):
            plain.saxpy(1.0, wrong, y)


def test_an_array_in_the_place_of_a_dead_one_is_another(plain):
    y = qp.ndarray(qp.f32, 4)
    for size in range(1, 40):
        x = qp.ndarray(qp.f32, 4 if size % 2 else 2)
        x.fill(size)
        plain.saxpy(1.0, x, y)
        with pytest.raises(qp.ArgumentError):
            plain.saxpy(1.0, None, y)
    assert y[0] == sum(range(1, 40))
    assert y[3] == sum(range(1, 40, 2))


def test_random_numbers_are_those_of_resolved_calls(plain, monkeypatch):
    def drawn():
        qp.init(arch=qp.cpu, random_seed=7)
        y, found = qp.ndarray(qp.f32, 5), []
        for _ in range(4):
            plain.draw(y)
            found.append(y.to_numpy().tolist())
        return found

    known = drawn()
    assert len({*map(tuple, known)}) == 4
    monkeypatch.setattr(RepeatedCalls, "fast_call", lambda *_: None)
    assert drawn() == known


def test_prints_with_many_arrays(load, capfd):
    arrays = "".join(f"x{k}: qp.Array1D[qp.i32], " for k in range(COUNT))
    show = load(f"""
        @qp.kernel
        def show({arrays}):
            for i in range(1):
                x0[i] += 1
                print("value", x0[i] + x19[i])
    """).show
    xs = [qp.ndarray(qp.i32, 1) for _ in range(COUNT)]
    for _ in range(3):
        show(*xs)
    assert capfd.readouterr().out == "value 1\nvalue 2\nvalue 3\n"


def test_a_call_that_fails_ran_once(load, init):
    init(arch=qp.cpu, debug=True)
    count = load("""
        @qp.kernel
        def count(x: qp.Array1D[qp.i32]):
            for _ in range(1):
                x[0] += 1
                assert x[0] < 3, "enough"
    """).count
    xs = [qp.ndarray(qp.i32, 1) for _ in range(2)]
    for x in (*xs, *xs):
        count(x)
    for x in xs:
        with pytest.raises(AssertionError, match="enough"):
            count(x)
        assert x[0] == 3


def test_a_destroyed_field_is_refused(load):
    qp.init(arch=qp.cpu)
    builder, x = qp.FieldsBuilder(), qp.field(qp.f32)
    builder.dense(qp.i, 4).place(x)
    tree = builder.finalize()
    module = load("""
        x = None

        @qp.kernel
        def grow():
            for i in x:
                x[i] += 1
    """)
    module.x = x
    for _ in range(3):
        module.grow()
    tree.destroy()
    with pytest.raises(qp.QuadpyError, match="destroyed"):
        module.grow()


def test_two_sets_of_arrays_take_turns(add, resolved):
    extra, pair = qp.ndarray(qp.f32, 1), (made(add.Many), made(add.Many))
    for many in pair:
        add.add(many, 0.0, extra)
    resolved.clear()
    for step in range(30):
        assert add.add(pair[step % 2], 1.0, extra) == 20.0 * (step // 2 + 1)
    assert not resolved


def test_arrays_that_change_with_each_call_are_not_remembered_for_ever(add, resolved, monkeypatch):
    described = []
    monkeypatch.setattr(repeated, "define", lambda *args: described.append(1) or define(*args))
    extra, sets = qp.ndarray(qp.f32, 1), [made(add.Many) for _ in range(3)]
    add.add(sets[2], 0.0, extra)
    resolved.clear()
    for step in range(60):
        assert add.add(sets[step % 3], 1.0, extra) == 20.0 * (step // 3 + 1)
    assert len(resolved) == 60
    assert len(described) < 10
