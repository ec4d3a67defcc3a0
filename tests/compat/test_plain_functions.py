"""Plain Python functions in kernels of Taichi's: Taichi runs them while it compiles."""

import numpy as np
import pytest

import quadpy as qp
import quadpy.compat.taichi as ti


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request):
    ti.init(arch=qp.python if request.param == "python" else ti.cpu, debug=request.param == "checked")


def plain(x, y):
    return x * y + 1


@ti.data_oriented
class Holder:
    def __init__(self):
        self.k = 3
        self.f = ti.field(ti.f32, 4)

    def times(self, x):
        return x * self.k

    def at(self, i):
        return self.f[i] + 1

    @staticmethod
    def more(x):
        return x + 7

    @ti.kernel
    def run(self, n: ti.i32) -> ti.i32:
        return self.times(n) + self.more(n)

    @ti.kernel
    def read(self, n: ti.i32) -> ti.f32:
        self.f[1] = 5
        return self.at(n)


@ti.data_oriented
class Ray:
    def __init__(self, origin, direction):
        self.origin = origin
        self.direction = direction

    def at(self, t):
        return self.origin + t * self.direction


def test_functions():
    @ti.kernel
    def k(n: ti.i32) -> (ti.i32, ti.i32):
        return plain(n, 3), plain(2, 3)

    assert k(4) == (13, 7)


def test_methods():
    h = Holder()
    assert h.run(4) == 23
    assert h.read(1) == 6


def test_methods_of_objects_that_a_kernel_makes():
    @ti.kernel
    def k(t: ti.f32) -> ti.types.vector(2, ti.f32):
        return Ray(ti.Vector([1.0, 2.0]), ti.Vector([3.0, 4.0])).at(t)

    assert tuple(k(2.0)) == (7, 10)


def looping(x):
    for i in range(4):
        x = x + i
    return x


@pytest.mark.parametrize("fn", [looping, np.hypot, np.dot])
def test_functions_with_loops_and_of_libraries_are_refused(fn):
    # a kernel would run the loop in parallel, Python unrolls it
    @ti.kernel
    def k(x: ti.f32) -> ti.f32:
        return fn(x, x) if ti.static(fn is not looping) else fn(x)

    with pytest.raises(qp.CompilationError, match=r"plain Python function|cannot be called"):
        k(1.0)


def test_kernels_of_quadpy_take_functions_of_the_language_only():
    @qp.kernel
    def k(n: qp.i32) -> qp.i32:
        return plain(n, 3)

    with pytest.raises(qp.KernelSyntaxError, match="plain is a plain Python function"):
        k(4)
