"""Kernels of a module, which programs of several processes import."""

import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.func
def squared(x):
    return x * x


@qp.kernel
def square(x: F32):
    for i in x:
        x[i] = squared(x[i])


@qp.graph.replay
def square_twice(x):
    square(x)
    square(x)


@qp.kernel
def scale_into(x: F32, y: F32, by: qp.f32 = 2.0):
    for i in x:
        y[i] += by * x[i]


LEVELS = qp.field(qp.f32, 4)


@qp.kernel
def raise_levels(x: F32):
    for i in x:
        LEVELS[i] += x[i]


@qp.data_oriented
class Tank:
    def __init__(self):
        self.level = qp.field(qp.f32, 4)

    @qp.kernel
    def fill(self, x: F32):
        for i in x:
            self.level[i] += x[i]


def take_down(log):
    """A function of the host."""
    log.append(len(log))
