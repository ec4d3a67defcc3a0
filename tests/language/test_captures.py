"""What kernels see of the module and the functions around them, and compile-time parameters."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
COUNT, FACTOR, FLAG = 3, 0.5, True
SIZES = (2, 3, 5)
TABLE = {"a": 7, "b": (1, 2)}
VECTOR = qp.Vector([1.5, 2.5])
MATRIX = qp.Matrix([[1, 2], [3, 4]])
NUMBER = np.float32(0.25)
config = SimpleNamespace(n=4, inner=SimpleNamespace(scale=2.5), kind=qp.i16)


@qp.kernel
def constants(y: A(qp.f64, 1)):
    y[0] = COUNT * FACTOR + FLAG
    y[1] = SIZES[1] + len(SIZES)
    y[2] = TABLE["a"] + TABLE["b"][1]
    y[3] = (VECTOR * 2).y
    y[4] = (MATRIX @ MATRIX)[1, 0]
    y[5] = NUMBER
    y[6] = config.n + config.inner.scale
    y[7] = math.e
    y[8] = config.kind(70000)
    for size in qp.static(SIZES):
        y[9] += size


def test_globals_are_constants(monkeypatch):
    y = np.zeros(10)
    with pytest.raises(qp.KernelValueError, match="70000 does not fit i16"):
        constants(y)
    monkeypatch.setattr(config, "kind", qp.i32)
    constants(y)
    assert y.tolist() == [2.5, 6, 9, 5, 15, 0.25, 6.5, float(np.float32(math.e)), 70000, 10] or y[7] == math.e


def make(n, f):
    offset = n * 10

    @qp.kernel
    def kernel(x: A(qp.i32, 1)):
        for i in x:
            x[i] = f(i) + offset + n

    return kernel


def test_closures_belong_to_their_kernel():
    @qp.func
    def double(i):
        return 2 * i

    @qp.func
    def negate(i):
        return -i

    for n, f, g in ((1, double, lambda i: 2 * i), (2, negate, lambda i: -i), (3, double, lambda i: 2 * i)):
        x = np.zeros(10, np.int32)
        make(n, f)(x)
        assert x.tolist() == [g(i) + 11 * n for i in range(10)]


@qp.kernel
def templated(n: qp.template(), x: A(qp.f64, 1), f: qp.template()):
    for i in x:
        v = qp.Vector([1.0 * k for k in range(n)])
        x[i] = f(v.sum()) + i


@qp.func
def same(x):
    return x


@qp.func
def half(x):
    return x / 2


def test_one_kernel_with_many_specialisations():
    for n in (1, 2, 5, 1):
        for f, factor in ((same, 1.0), (half, 0.5)):
            x = np.zeros(3)
            templated(n, x, f)
            assert x.tolist() == [factor * sum(range(n)) + i for i in range(3)]


@qp.kernel
def anything(x: A(), y: A(), key: qp.template()) -> qp.i32:
    for i in qp.grouped(x):
        y[i] = x[i] + x[i]
    return 1 if qp.static(key == "yes") else 2


def test_specialisations_by_type_dimension_and_key():
    for dtype in (np.int8, np.int64, np.float32, np.uint16):
        for shape in ((6,), (2, 3), (1, 2, 3)):
            for key, want in (("yes", 1), ("no", 2), (None, 2), (1, 2)):
                x, y = np.full(shape, 100, dtype), np.zeros(shape, dtype)
                assert anything(x, y, key) == want
                np.testing.assert_array_equal(y, x + x)


@qp.kernel
def reciprocal(zero: qp.template()) -> qp.f64:
    return 1.0 / zero


def test_templates_that_are_equal_but_not_the_same():
    assert reciprocal(0.0) == math.inf
    assert reciprocal(-0.0) == -math.inf
    assert reciprocal(1) == 1.0
    assert reciprocal(True) == 1.0


@qp.kernel
def optional(x: A(qp.i32, 1), extra: qp.template()):
    for i in x:
        x[i] = i
        if qp.static(extra is not None):
            x[i] += extra[i]


def test_an_optional_field():
    field, x = qp.field(qp.i32, shape=4), np.zeros(4, np.int32)
    field.fill(10)
    optional(x, None)
    assert x.tolist() == [0, 1, 2, 3]
    optional(x, field)
    assert x.tolist() == [10, 11, 12, 13]


FIELDS = [qp.field(qp.i32, shape=3) for _ in range(4)]


@qp.kernel
def over_fields():
    for k, field in qp.static(enumerate(FIELDS)):
        for i in field:
            field[i] = 10 * k + i


def test_fields_in_a_list():
    over_fields()
    assert [f.to_numpy().tolist() for f in FIELDS] == [[10 * k, 10 * k + 1, 10 * k + 2] for k in range(4)]


@qp.kernel
def from_containers(k: qp.template()):
    for i in range(3):
        FIELDS[2][i] = 5 * i
        HOLDER["fields"][k][i] += i
        qp.atomic_max(FIELDS[k + 1][i], 1)


HOLDER = {"fields": (FIELDS[0], FIELDS[1])}


def test_fields_picked_from_containers():
    for field in FIELDS:
        field.fill(0)
    from_containers(0)
    assert [f.to_numpy().tolist() for f in FIELDS] == [[0, 1, 2], [1, 1, 1], [0, 5, 10], [0, 0, 0]]


@qp.kernel
def swap(a: qp.template(), b: qp.template()):
    for i in a:
        a[i], b[i] = b[i], a[i]


def test_fields_as_parameters():
    first, second = FIELDS[0], FIELDS[1]
    first.fill(1)
    second.fill(2)
    swap(first, second)
    assert first.to_numpy().tolist() == [2] * 3
    assert second.to_numpy().tolist() == [1] * 3
    swap(first, first)
    assert first.to_numpy().tolist() == [2] * 3
