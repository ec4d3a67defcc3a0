"""Compile-time parameters in all their uses, and annotations of arrays that leave things open."""

import enum

import numpy as np
import pytest

import quadpy as qp


class Mode(enum.Enum):
    ADD = "add"
    MUL = "mul"


@qp.func
def doubled(x):
    return 2 * x


@qp.func
def halved(x):
    return x / 2


class Config:
    scale = 4.0

    @qp.func
    def scaled(self, x):
        return x * self.scale


@pytest.fixture
def make(arch):
    def kernel():
        @qp.kernel
        def run(value: qp.template(), mode: qp.template() = Mode.ADD) -> qp.f32:
            result = 10.0
            if qp.static(value is None):
                result = -1.0
            elif qp.static(isinstance(value, str)):
                result = qp.static(float(len(value)))
            elif qp.static(isinstance(value, (int, float))):
                result = result + value if qp.static(mode is Mode.ADD) else result * value
            elif qp.static(isinstance(value, tuple)):
                for part in qp.static(value):
                    result += part
            else:
                result = value(result)
            return result

        return kernel_and_count(run)

    def kernel_and_count(run):
        return run, lambda: len(run._dispatcher.specialisations)

    return kernel


def test_values_of_every_kind(make):
    run, count = make()
    assert run(None) == -1.0
    assert run("abc") == 3.0
    assert run(2) == 12.0
    assert run(2.5) == 12.5
    assert run(2, Mode.MUL) == 20.0
    assert run((1, 2.0)) == 13.0
    assert run(doubled) == 20.0
    assert run(halved) == 5.0
    assert run(Config().scaled) == 40.0
    assert count() == 9


def test_one_specialisation_for_each_value(make):
    run, count = make()
    config = Config()
    for _ in range(2):
        for value in (1, 1.0, True, 0.0, -0.0, "a", "b", None, doubled, np.float32(2.0)):
            run(value)
    assert count() == 10
    for value in (1, "abc"[0], (1, 2.0), config.scaled):
        run(value)
    before, numbers = count(), [1, 2.0]
    for value in (int("1"), "cba"[2], tuple(numbers), config.scaled):
        run(value)
    assert count() == before


def test_fields_arrays_and_none(arch):
    @qp.kernel
    def total(x: qp.template()) -> qp.f32:
        t = 0.0
        if qp.static(x is not None):
            for i in x:
                t += x[i]
        return t

    f, a = qp.field(qp.f32, 3), qp.ndarray(qp.f32, 4)
    f.fill(1.0)
    a.fill(2.0)
    assert total(f) == 3.0
    assert total(a) == 8.0
    other = qp.ndarray(qp.f32, 2)
    other.fill(5.0)
    assert total(other) == 10.0
    assert total(None) == 0.0
    assert len(total._dispatcher.specialisations) == 3


def test_tensors(arch):
    @qp.kernel
    def add(x: qp.Tensor, y: qp.Tensor[qp.f32, 1], bias: qp.Tensor):
        for i in x:
            x[i] += y[i]
            if qp.static(bias is not None):
                x[i] += bias[i]

    def filled(kind, value):
        made = qp.field(qp.f32, 2) if kind == "field" else qp.ndarray(qp.f32, 2)
        made.fill(value)
        return made

    for first in ("field", "array"):
        for second in ("field", "array"):
            x, y = filled(first, 1.0), filled(second, 2.0)
            add(x, y, None)
            assert x.to_numpy().tolist() == [3.0, 3.0]
            add(x, y, y)
            assert x.to_numpy().tolist() == [7.0, 7.0]
    z = np.ones(2, np.float32)
    add(z, z.copy(), None)
    assert z.tolist() == [2.0, 2.0]
    with pytest.raises(qp.ArgumentError, match=r"add: y takes elements of f32, not i32"):
        add(z, np.ones(2, np.int32), None)
    with pytest.raises(qp.ArgumentError, match=r"add: y takes a field f32 of 1 dimension, not one of i32"):
        add(z, qp.field(qp.i32, 2), None)
    with pytest.raises(qp.ArgumentError, match=r"add: x takes an array, not int"):
        add(3, z, None)


def test_templates_of_fields(arch):
    @qp.kernel
    def clear(x: qp.Template[qp.f32, 2]):
        for I in qp.grouped(x):
            x[I] = 0.0

    @qp.kernel
    def clear_any(x: qp.Template):
        for I in qp.grouped(x):
            x[I] = 0.0

    plane = qp.field(qp.f32, (2, 2))
    plane.fill(1.0)
    clear(plane)
    assert not plane.to_numpy().any()
    clear_any(qp.field(qp.f32, 3))
    for given, message in (
        (qp.field(qp.f64, (2, 2)), r"clear: x takes a field f32 of 2 dimensions, not one of f64"),
        (qp.field(qp.f32, 2), r"not one of 1 dimension"),
        (3, r"x takes a field f32 of 2 dimensions, not int"),
        (None, r"x takes a field f32 of 2 dimensions, not NoneType"),
        (qp.Vector.field(2, qp.f32, shape=(2, 2)), r"not one of f32x2"),
        (np.ones((2, 2), np.float32), r"x takes a field f32 of 2 dimensions, not ndarray"),
        (np.float32(1), r"x takes a field f32 of 2 dimensions, not float32"),
    ):
        with pytest.raises(qp.ArgumentError, match=message):
            clear(given)


def test_bad_annotations():
    with pytest.raises(qp.ArgumentError, match="ndim=-1 is not a number of axes"):
        qp.Template[qp.f32, -1]
    with pytest.raises(qp.ArgumentError, match="ndim='x' is not a number of axes"):
        qp.Tensor[qp.f32, "x"]

    @qp.kernel
    def run(x: qp.Template["f32", 1]):  # noqa: F821
        pass

    with pytest.raises(qp.QuadpyError, match="'f32' is not a scalar type"):
        run(qp.field(qp.f32, 1))


def test_arrays_that_leave_things_open(arch):
    @qp.kernel
    def double(x: qp.types.NDArray):
        for I in qp.grouped(x):
            x[I] *= 2

    @qp.kernel
    def flat(x: qp.types.NDArray[qp.f32], y: qp.types.ndarray(ndim=1), z: np.ndarray, w: qp.NDArray):
        for i in range(y.shape[0]):
            x[i, 0] = y[i] + z[i] + w[i]

    for dtype in (np.float32, np.int64, np.uint8):
        for shape in ((3,), (2, 2), (2, 1, 2)):
            x = np.ones(shape, dtype)
            double(x)
            assert (x == 2).all()
    assert len(double._dispatcher.specialisations) == 9
    x, ones = np.zeros((2, 1), np.float32), np.ones(2, np.int32)
    flat(x, ones, ones, ones)
    assert x.ravel().tolist() == [3.0, 3.0]
    with pytest.raises(qp.ArgumentError, match="flat: y takes 1 dimension, not 2"):
        flat(x, x, ones, ones)
    with pytest.raises(qp.ArgumentError, match="flat: x takes elements of f32, not i32"):
        flat(ones, ones, ones, ones)


def test_keywords_and_defaults(arch):
    @qp.kernel
    def run(a: qp.i32, b: qp.i32 = 10, *, c: qp.template() = 100, d: qp.f32 = 0.5) -> qp.f32:
        return a + b + c + d

    assert run(1) == 111.5
    assert run(1, 2) == 103.5
    assert run(1, b=3) == 104.5
    assert run(a=1, d=0.0, c=1000) == 1011.0
    assert run(d=1.0, a=1) == 112.0
    for call, message in (
        (run, "missing a required argument: 'a'"),
        (lambda: run(1, 2, 3), "too many positional arguments"),
        (lambda: run(1, a=2), "multiple values for argument 'a'"),
        (lambda: run(1, e=2), "there is no parameter 'e'"),
    ):
        with pytest.raises(qp.ArgumentError, match=message) as raised:
            call()
        assert raised.value.span.line > 0
        assert "it takes a, b, c=..., d=..." in raised.value.hint


def test_templates_of_functions(arch):
    @qp.func
    def apply(f: qp.template(), x: qp.f32, n: qp.Template):
        for _ in qp.static(range(n)):
            x = f(x)
        return x

    @qp.kernel
    def run(f: qp.template(), n: qp.template()) -> qp.f32:
        return apply(f, 1.0, n) + apply(halved, 8.0, 2)

    assert run(doubled, 3) == 10.0
    assert run(halved, 1) == 2.5

    @qp.kernel
    def runtime(n: qp.i32) -> qp.f32:
        return apply(doubled, 1.0, n)

    with pytest.raises(qp.CompilationError, match="a run-time range"):
        runtime(3)


def test_an_object_whose_attributes_change(arch):
    @qp.kernel
    def run(c: qp.template(), x: qp.f32) -> qp.f32:
        return c.scaled(x)

    config = Config()
    assert run(config, 1.0) == 4.0
    config.scale = 5.0
    assert run(config, 1.0) == 5.0
    other = Config()
    assert run(other, 1.0) == 4.0
    assert run(config, 2.0) == 10.0


def test_what_a_wrong_annotation_says(arch):
    @qp.kernel
    def run(x: list):
        pass

    @qp.kernel
    def without(x, y: qp.f32):
        pass

    with pytest.raises(qp.KernelTypeError, match=r"the parameter 'x' is annotated with list") as raised:
        run([1])
    assert "qp.template()" in raised.value.hint
    with pytest.raises(qp.KernelTypeError, match=r"the parameter 'x' has no annotation"):
        without(1, 1.0)


def test_lambdas_from_python(arch):
    @qp.func
    def twice(f: qp.template(), x):
        return f(f(x))

    @qp.kernel
    def run(f: qp.template(), x: qp.f32) -> qp.f32:
        return f(x) + twice(f, x)

    k = 3.0
    assert run(lambda x: 2 * x, 1.0) == 6.0
    assert run(lambda y: y + k, 1.0) == 4.0 + 7.0
    for factor in (1.0, 2.0):
        assert run(lambda x: x * factor if x > 0 else -x, -4.0) == 4.0 + 4.0 * factor  # noqa: B023
    pair = (lambda x: x, lambda x: x + 1)
    assert [run(f, 1.0) for f in pair] == [2.0, 5.0]
    same = (lambda x: x, lambda x: x)
    assert run(same[1], 2.0) == 4.0
    with pytest.raises(qp.KernelSourceError, match="the source of this lambda cannot be found"):
        run(eval("lambda x: x"), 1.0)
    with pytest.raises(qp.CompilationError, match="missing a required argument: 'z'"):
        run(lambda x, z: x + z, 1.0)


def test_containers_that_change(arch):
    @qp.kernel
    def total(values: qp.template()) -> qp.f32:
        result = 0.0
        for each in qp.static(values):
            result += each
        return result

    values = [1, 2]
    assert total(values) == 3
    values.append(4)
    assert total(values) == 7
    values[0] = 1.5
    assert total(values) == 7.5
    values[:] = [1, 2]
    assert total(values) == 3


@pytest.mark.parametrize(
    "container", [list, tuple, lambda items: dict(enumerate(items))], ids=["list", "tuple", "dict"]
)
def test_containers_in_containers_that_change(arch, container):
    @qp.kernel
    def first(values: qp.template()) -> qp.f32:
        return values[0][0]

    inner, vector = [1], qp.Vector([4.0, 5.0])
    nested, vectors = container([inner]), container([vector])
    assert (first(nested), first(vectors)) == (1, 4)
    inner[0], vector[0] = 2, 6.0
    assert (first(nested), first(vectors)) == (2, 6)


def test_a_list_that_contains_itself(arch):
    @qp.kernel
    def first(values: qp.template()) -> qp.f32:
        return values[0]

    values = [1]
    values.append(values)
    assert first(values) == 1
