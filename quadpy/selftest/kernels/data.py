"""Structs, classes, sparse trees, quantised numbers, parts of arrays."""

from __future__ import annotations

from typing import Final

import quadpy as qp

_F32: Final = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.dataclass
class Body:
    """A struct with members of several types, and a method."""

    at: qp.types.vector(3, qp.f32)
    mass: qp.f64
    kind: qp.u8

    @qp.func
    def energy(self):
        return 0.5 * self.mass * self.at.dot(self.at)


@qp.kernel
def move(bodies: qp.template(), energies: _F32):
    for i in bodies:
        body = bodies[i]
        body.at += qp.Vector([1.0, i, -0.5])
        body.kind += 200
        bodies[i] = body
        bodies[i].mass += body.at[1]
        energies[i] = bodies[i].energy()


@qp.data_oriented
class Smoothing:
    """Fields in blocks of 4 by 4, whose first index is (-3, 2)."""

    def __init__(self, size: int) -> None:
        self.size, self.tree = size, qp.FieldsBuilder()
        self.before, self.after = qp.field(qp.f32), qp.field(qp.f32)
        cells = self.tree.dense(qp.ij, size // 4).dense(qp.ij, 4)
        cells.place(self.before, self.after, offset=(-3, 2))

    @qp.func
    def around(self, i, j):
        return self.before[i - 1, j] + self.before[i + 1, j] + self.before[i, j - 1] + self.before[i, j + 1]

    @qp.kernel
    def step(self):
        for i, j in self.before:
            self.before[i, j] = 0.25 * i - j * j
        for i, j in qp.ndrange((-2, self.size - 4), (3, self.size + 1)):
            self.after[i, j] = 0.25 * self.around(i, j)


@qp.kernel
def grow(x: qp.template(), y: qp.template(), lists: qp.template(), found: _F32):
    for k in range(40):
        x[k * k % 61, k * 5 % 64] = k + 1.0
        y[k * 7 % 64] += 1.0
        if k % 3 == 0:
            lists[k % 4].append(k)
    for i, j in x:
        x[i, j] += i - j
        qp.atomic_add(found[0], 1.0)
    for i in y:
        qp.atomic_add(found[1], y[i])
        if i % 2 == 0:
            qp.deactivate(y, i)
    for i in range(4):
        for n in range(lists[i].length()):
            qp.atomic_add(found[2 + i], lists[i, n])


@qp.kernel
def pack(v: qp.template(), kind: qp.template(), level: qp.template(), bits: qp.template(), x: _F32, out: _F32):
    for i in x:
        v[i] = [x[i], -0.3 * x[i], x[i] * x[i]]
        kind[i] = i
        level[i] = x[i]
        bits[i] = i % 3
    for i in x:
        qp.atomic_add(kind[i // 2], 1)
    for i in x:
        out[i] = v[i].sum() + kind[i] + level[i] + bits[i]


@qp.kernel
def change_parts(x: _F32, start: qp.i32):
    for i in range(4):
        part = x[start + 4 * i : start + 4 * i + 4]
        for k in range(len(part)):
            part[k] = 2 * part[k] + k
