"""Kernels of objects: what ``obj.kernel`` is, and what objects that change mean."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import quadpy as qp


@qp.data_oriented
class Counter:
    """Adds ``by`` to a field, and to an array."""

    def __init__(self, n, by):
        self.by = by
        self.x = qp.field(qp.i32, shape=n)
        self.a = qp.ndarray(qp.i32, n)
        self.a.fill(0)

    @qp.kernel
    def count(self, times: qp.i32 = 1):
        for i in self.x:
            self.x[i] += self.by * times

    @qp.kernel
    def count_array(self):
        for i in range(self.a.shape[0]):
            self.a[i] += self.by

    @qp.kernel
    def total(self) -> qp.i32:
        t = 0
        for i in self.x:
            t += self.x[i]
        return t

    @qp.kernel(graph=True)
    def twice(self):
        for i in self.x:
            self.x[i] += 1
        for i in self.x:
            self.x[i] *= 2


class Doubled(Counter):
    @qp.kernel
    def count(self, times: qp.i32 = 1):
        for i in self.x:
            self.x[i] += 2 * self.by * times

    def both(self):
        super().count()
        self.count()


@pytest.fixture
def counter(init):
    return Counter(3, 2)


def test_a_bound_kernel_is_a_kernel(counter):
    bound = counter.count
    assert isinstance(bound, qp.Kernel)
    assert bound is counter.count
    assert bound is not Counter(3, 2).count
    assert bound.__name__ == "count"
    assert bound.__self__ is counter
    assert bound.__func__ is Counter.count
    assert repr(bound).startswith("<quadpy kernel count of <")
    bound()
    bound(2)
    bound(times=3)
    assert counter.x.to_numpy().tolist() == [12, 12, 12]
    assert counter.total() == 36


def test_the_public_surface_of_kernels(counter):
    for name in (name for name in dir(qp.Kernel) if not name.startswith("_")):
        assert hasattr(counter.count, name)
    assert counter.count.compile("gfx942").image
    assert counter.count.compile("sm_80").image
    assert counter.count_array.compile("gfx1100").image
    assert counter.count.graph_stats().launches == 0
    assert not counter.count.fusion().fused
    assert counter.twice.graph
    counter.twice()
    assert counter.x.to_numpy().tolist() == [2, 2, 2]
    prepared = counter.count.prepare(5)
    graph = qp.graph.Graph()
    graph.add_kernel(prepared)
    graph.add_kernel(counter.count, 1)
    graph.instantiate().launch()
    qp.sync()
    assert counter.x.to_numpy().tolist() == [14, 14, 14]


def test_streams(counter):
    with qp.create_stream() as stream:
        counter.count(1, stream=stream)
        stream.synchronize()
    assert counter.total() == 6


def test_wrong_calls(counter):
    with pytest.raises(qp.ArgumentError, match=r"count: too many positional arguments"):
        counter.count(1, 2)
    with pytest.raises(qp.ArgumentError, match=r"count: there is no parameter 'tims'; did you mean 'times'"):
        counter.count(tims=1)
    with pytest.raises(qp.ArgumentError, match=r"count: times takes an integer \(i32\), not 0.5"):
        counter.count(0.5)
    with pytest.raises(qp.ArgumentError, match=r"there is no parameter 'speed'"):
        counter.count.compile("cpu", speed=1)


def test_a_kernel_does_not_call_a_kernel(init):
    @qp.data_oriented
    class Wrong:
        @qp.kernel
        def inner(self):
            pass

        @qp.kernel
        def outer(self):
            self.inner()

    with pytest.raises(qp.KernelSyntaxError, match="a kernel cannot call another kernel") as raised:
        Wrong().outer()
    assert "self.inner()" in str(raised.value)
    assert "@qp.func" in raised.value.hint


def test_overridden_kernels_and_super(init):
    counter = Doubled(2, 1)
    counter.count()
    assert counter.total() == 4
    counter.both()
    assert counter.total() == 4 + 2 + 4
    Counter.count(counter, 10)
    assert counter.total() == 30


def test_attributes_that_change_have_code_of_their_own(counter):
    counter.count()
    counter.by = 100
    counter.count()
    counter.by = 2
    counter.count()
    assert counter.x.to_numpy().tolist() == [104, 104, 104]
    assert len(counter.count._dispatcher.specialisations) == 2
    old, counter.x = counter.x, qp.field(qp.i32, shape=2)
    counter.count()
    assert counter.x.to_numpy().tolist() == [2, 2]
    assert old.to_numpy().tolist() == [104, 104, 104]
    old, counter.x = counter.x, old
    counter.count()
    assert counter.x.to_numpy().tolist() == [106, 106, 106]


def test_swapped_fields_and_arrays(init):
    @qp.data_oriented
    class Pair:
        def __init__(self):
            self.a, self.b = (qp.field(qp.i32, shape=1) for _ in range(2))
            self.c, self.d = (qp.ndarray(qp.i32, 1) for _ in range(2))
            self.c.fill(0)
            self.d.fill(0)

        @qp.kernel
        def step(self):
            self.a[0] = self.b[0] + 1
            self.c[0] = self.d[0] + 1

    pair = Pair()
    for _ in range(5):
        pair.step()
        pair.a, pair.b = pair.b, pair.a
        pair.c, pair.d = pair.d, pair.c
    assert pair.b[0] == 5
    assert pair.d[0] == 5
    assert len(pair.step._dispatcher.specialisations) == 2


def test_arrays_of_other_types_and_sizes(counter):
    counter.count_array()
    counter.a = qp.ndarray(qp.i32, 5)
    counter.a.fill(1)
    counter.count_array()
    assert counter.a.to_numpy().tolist() == [3] * 5
    assert len(counter.count_array._dispatcher.specialisations) == 1
    counter.a = qp.ndarray(qp.f32, 2)
    counter.a.fill(0.5)
    counter.count_array()
    assert counter.a.to_numpy().tolist() == [2.5] * 2
    counter.a = None
    with pytest.raises(qp.CompilationError, match="NoneType has no attribute 'shape'"):
        counter.count_array()


def test_members_of_members_and_lists(init):
    class Level:
        def __init__(self, n, scale):
            self.x, self.scale = qp.ndarray(qp.f32, n), scale
            self.x.fill(1.0)

    @qp.data_oriented
    class Multigrid:
        def __init__(self):
            self.levels = [Level(4 >> k, float(k)) for k in range(3)]
            self.arrays = {"first": self.levels[0].x, "last": self.levels[-1].x}

        @qp.kernel
        def smooth(self, k: qp.template()):
            for i in self.levels[k].x:
                self.levels[k].x[i] += self.levels[k].scale

        @qp.kernel
        def ends(self) -> qp.f32:
            return self.arrays["first"][0] + self.arrays["last"][0]

    grid = Multigrid()
    for k in range(3):
        grid.smooth(k)
        grid.smooth(k)
    assert [level.x.to_numpy()[0] for level in grid.levels] == [1.0, 3.0, 5.0]
    assert grid.ends() == 6.0
    grid.levels[1] = Level(8, 10.0)
    grid.smooth(1)
    assert grid.levels[1].x.to_numpy().tolist() == [11.0] * 8


def test_numbers_as_arguments(init):
    @qp.data_oriented(template_primitives=False)
    class Particle:
        def __init__(self):
            self.n, self.dt, self.active, self.x = 2, 0.5, True, qp.field(qp.f32, shape=4)
            self.inner = Inner()

        @qp.kernel
        def step(self):
            for i in range(self.n):
                if self.active:
                    self.x[i] += self.dt * self.inner.k

        @qp.kernel
        def unrolled(self):
            for _ in qp.static(range(self.n)):
                pass

    class Inner:
        k = 2

    particle = Particle()
    expected = np.zeros(4, np.float32)
    for n, dt, active, k in ((2, 0.5, True, 2), (3, 1.5, True, 3), (4, 2, False, 1), (4, 0.25, True, 8)):
        particle.n, particle.dt, particle.active, particle.inner.k = n, dt, active, k
        particle.step()
        expected[:n] += dt * k * active
    np.testing.assert_array_equal(particle.x.to_numpy(), expected)
    assert len(particle.step._dispatcher.specialisations) == 2  # dt was an int once
    with pytest.raises(qp.CompilationError, match="a run-time range"):
        particle.unrolled()


def test_functions_of_classes(init):
    @qp.data_oriented
    class Maths:
        factor = 3

        def __init__(self):
            self.side = 4

        @staticmethod
        @qp.func
        def square(a):
            return a * a

        @classmethod
        @qp.func
        def scaled(cls, a):
            return cls.factor * a

        @property
        def area(self):
            return self.side * self.side

        @staticmethod
        @qp.kernel
        def plain(a: qp.i32) -> qp.i32:
            return a + 1

        @qp.kernel
        def run(self, a: qp.i32) -> qp.i32:
            return self.square(a) + self.scaled(a) + Maths.square(1) + self.area

    class More(Maths):
        factor = 5

        @qp.func
        def grown(self, a):
            return super().scaled(a) + 1

        @qp.kernel
        def more(self, a: qp.i32) -> qp.i32:
            return self.grown(a)

    maths = Maths()
    assert maths.run(2) == 4 + 6 + 1 + 16
    maths.side = 5
    assert maths.run(2) == 4 + 6 + 1 + 25
    assert maths.plain(1) == Maths.plain(1) == 2
    assert More().run(2) == 4 + 10 + 1 + 16
    assert More().more(2) == 11


def test_super_in_methods(init):
    @qp.data_oriented
    class A:
        @qp.func
        def f(self, x):
            return x + 1

    class B(A):
        @qp.func
        def f(self, x):
            return super().f(x) * 10

    class C(B):
        @qp.func
        def f(self, x):
            return super().f(x) + 5

        @qp.kernel
        def run(self, x: qp.i32) -> qp.i32:
            return self.f(x)

        @qp.kernel
        def wrong(self, x: qp.i32) -> qp.i32:
            return super().g(x)

    assert C().run(1) == 25
    with pytest.raises(qp.KernelTypeError, match=r"super.* has no attribute 'g'"):
        C().wrong(1)


def test_objects_without_a_dict(init):
    @qp.data_oriented
    class Slotted:
        __slots__ = ("k",)

        @qp.kernel
        def run(self) -> qp.i32:
            return self.k

    a, b = Slotted(), Slotted()
    a.k, b.k = 1, 2
    assert (a.run(), b.run(), a.run()) == (1, 2, 1)
    assert a.run is a.run
    a.k = 3
    assert a.run() == 3


def test_copies_have_kernels_of_their_own(counter):
    counter.count()
    for made in (copy.copy(counter), copy.deepcopy(counter)):
        made.x, made.by = qp.field(qp.i32, shape=1), 5
        made.count()
        assert made.total() == 5
        assert counter.total() == 6


class Plain:
    k = 7

    @qp.kernel
    def run(self) -> qp.i32:
        return self.k


def test_pickled_objects(init):
    plain = Plain()
    assert plain.run() == 7
    assert pickle.loads(pickle.dumps(plain)).run() == 7
    assert pickle.loads(pickle.dumps(plain.run))() == 7
    assert [*vars(pickle.loads(pickle.dumps(Plain())))] == []


def test_an_object_ends_with_its_kernels(init):
    counter = Counter(2, 1)
    counter.count()
    counter.count_array()
    seen = weakref.ref(counter), weakref.ref(counter.x)
    del counter
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


def test_a_replay_sees_attributes_that_change(counter):
    @qp.graph.replay
    def run():
        counter.count()
        counter.count_array()

    for by in (1, 1, 1, 10, 10, 1):
        counter.by = by
        run()
    qp.sync()
    assert counter.x.to_numpy().tolist() == [24] * 3
    assert counter.a.to_numpy().tolist() == [24] * 3
    counter.a = qp.ndarray(qp.i32, 1)
    counter.a.fill(0)
    run()
    assert counter.a.to_numpy().tolist() == [1]


def test_threads(counter):
    from threading import Thread

    threads = [Thread(target=lambda: [counter.total() for _ in range(20)]) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert counter.total() == 0


def test_an_attribute_that_changes_all_the_time_is_told_once(init):
    @qp.data_oriented
    class Clock:
        def __init__(self):
            self.time = 0

        @qp.kernel
        def now(self) -> qp.i32:
            return self.time

    clock = Clock()

    def run():
        for clock.time in range(20):
            assert clock.now() == clock.time

    with pytest.warns(RuntimeWarning, match=r"now was compiled for 16 values of self.time, which are") as seen:
        run()
    assert len(seen) == 1
    assert seen[0].filename == __file__


def test_private_names(init):
    class _Private:
        def __init__(self):
            self.__k = 3

        @qp.func
        def __twice(self, x):
            return 2 * x

        @qp.kernel
        def run(self) -> qp.i32:
            return self.__twice(self.__k)

    assert _Private().run() == 6


def test_kernels_of_a_class(init):
    class Counted:
        k = 4

        @classmethod
        @qp.kernel
        def run(cls, x: qp.i32) -> qp.i32:
            return cls.k * x

    class Derived(Counted):
        k = 5

    assert Counted.run(2) == 8
    assert Derived().run(2) == 10
    assert Counted().run(3) == 12
    Counted.k = 1
    assert Counted.run(2) == 2


def test_a_kernel_does_not_set_attributes(counter, load):
    module = load(
        """
        class A:
            k = 1

            @qp.kernel
            def run(self):
                self.k = 2
        """
    )
    with pytest.raises(qp.KernelTypeError, match=r"a kernel cannot set attributes of an object: self.k") as raised:
        module.A().run()
    assert "set it in Python" in raised.value.hint


@qp.data_oriented
class Adder:
    def __init__(self, step):
        self.step, self.total = step, qp.field(qp.f64, shape=())

    @qp.kernel
    def add(self, factor: qp.f32, count: qp.i32) -> qp.f64:
        self.total[None] += self.step * factor * count
        return self.total[None]

    @qp.kernel
    def reset(self):
        self.total[None] = 0.0


def test_repeated_calls_see_what_changes():
    one, other = Adder(1.0), Adder(10.0)
    for expected in (2.0, 4.0, 6.0):
        assert one.add(0.5, 4) == expected
    one.step = 3.0  # code of its own
    assert one.add(0.5, 4) == 12.0
    one.step = 1.0
    for number in (2, np.float32(2), np.int64(2), True + 1):
        one.reset()
        assert one.add(number, 1) == 2.0
    assert other.add(1.0, 1) == 10.0
    other.total = qp.field(qp.f64, shape=())
    assert [other.add(1.0, 1), other.add(count=1, factor=2.0)] == [10.0, 30.0]
    for wrong in ((), (1.0,), (1.0, 2, 3), ("x", 1), (1.0, 2**40)):
        with pytest.raises(qp.ArgumentError):
            other.add(*wrong)
    assert other.add(0.0, 0) == 30.0
