"""Fast calls of kernels with compile-time arguments: methods, dataclasses, templates."""

import dataclasses
import gc
import weakref

import pytest
from simulated import gpu, launched

import quadpy as qp

pytestmark = pytest.mark.quadpy_hazards(off="the checker turns fast calls off")

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@pytest.fixture
def device():
    with gpu() as found:
        yield found


@dataclasses.dataclass
class Args:
    x: F32
    k: qp.f32
    unused: F32 = None


@qp.kernel
def scale(a: Args, n: qp.template()):
    for i in a.x:
        a.x[i] *= a.k * n


class Solver:
    def __init__(self):
        self.x, self.f, self.dt = qp.ndarray(qp.f32, 300), qp.field(qp.f32, 300), 0.5

    @qp.kernel
    def step(self, k: qp.f32):
        for i in self.x:
            self.x[i] += k * self.dt * self.f[i]


def test_a_method_is_called_fast_until_its_object_changes(device):
    solver = Solver()
    bound = solver.step
    bound(1.0)
    assert bound._fast_call(None, 1.0)
    first, second = launched(device)[-2:]
    assert first == second
    solver.x = qp.ndarray(qp.f32, 300)
    assert bound._fast_call(None, 1.0)  # another array of the same type
    assert launched(device)[-1] != first
    solver.dt = 0.25
    assert not bound._fast_call(None, 1.0)
    bound(1.0)
    assert bound._fast_call(None, 1.0)
    solver.x = qp.ndarray(qp.f64, 300)
    assert not bound._fast_call(None, 1.0)
    assert not bound._fast_call(None)
    assert not bound._fast_call(None, 1.0, 2.0)
    del solver.dt
    assert not bound._fast_call(None, 1.0)


def test_dataclasses_and_templates(device):
    p = Args(qp.ndarray(qp.f32, 300), 2.0)
    scale(p, 3)
    fast = scale._fast_call
    assert fast(None, Args(p.x, 2.0), 3)
    first, second = launched(device)[-2:]
    assert first == second
    p.k = 4.0
    assert fast(None, p, 3)
    assert launched(device)[-1] != first
    assert not fast(None, p, 4)
    assert not fast(None, None, 3)
    p.k = "no number"
    assert not fast(None, p, 3)
    with pytest.raises(qp.ArgumentError, match=r"scale: a\.k takes a number"):
        scale(p, 3)
    p.k, p.x = 1.0, None
    assert not fast(None, p, 3)
    with pytest.raises(qp.ArgumentError, match=r"scale: a\.x takes an array"):
        scale(p, 3)


def test_what_a_call_passed_is_not_kept_alive(device):
    p = Args(qp.ndarray(qp.f32, 300), 2.0)
    scale(p, 5)
    scale(p, 5)
    seen = weakref.ref(p.x)
    p = Args(qp.ndarray(qp.f32, 300), 2.0)
    scale(p, 5)
    gc.collect()
    assert seen() is None


def test_an_object_ends_with_its_code(device):
    solver = Solver()
    solver.step(1.0)
    solver.step(1.0)
    seen = weakref.ref(solver), weakref.ref(solver.f)
    del solver
    gc.collect()
    assert [ref() for ref in seen] == [None, None]
