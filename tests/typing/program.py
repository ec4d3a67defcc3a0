"""A program as users write it, which type checkers must accept whole."""

from __future__ import annotations

from typing import Annotated, TypeAlias, TypeVar

import numpy as np

import quadpy as qp

qp.init(arch=qp.cpu)

temperature = qp.field(qp.f32, shape=(4, 4))
velocity = qp.Vector.field(3, qp.f32, shape=4)


Pixel: TypeAlias = Annotated[qp.Vector, qp.types.vector(3, qp.u8)]
Value = TypeVar("Value", float, qp.Vector)


@qp.func
def nearest(image: qp.Array1D[Value], x: qp.f32) -> Value:
    return image[qp.cast(x, qp.i32)]


@qp.kernel
def brighten(image: qp.Array1D[Pixel], light: qp.Array1D[qp.f32]) -> None:
    for i in image:
        image[i] += qp.cast(nearest(light, 0.5) + qp.math.length(qp.math.vec3(0.0)), qp.u8)
    for i in image:
        light[i] = nearest(image, qp.cast(i, qp.f32)).norm()


@qp.func
def twice(value: qp.f32) -> qp.f32:
    return value * 2.0


@qp.kernel
def saxpy(a: qp.f32, x: qp.Array1D[qp.f32], y: qp.Array1D[qp.f32]) -> None:
    for i in x:
        y[i] = a * x[i] + qp.sin(twice(y[i]))


@qp.kernel
def step(old: qp.Array2D[qp.f32], new: qp.Array2D[qp.f32], rate: qp.f32) -> qp.f32:
    total = 0.0
    for i, j in old:
        if 0 < i < old.shape[0] - 1 and 0 < j < old.shape[1] - 1:
            new[i, j] = rate * old[i - 1, j]
        total += new[i, j]
    return total


@qp.kernel(debug=True)
def spin(n: qp.i32) -> qp.f32:
    total = 0.0
    for i, j in temperature:
        temperature[i, j] = qp.cast(i, qp.f32)
        total += temperature[i, j]
    for i in velocity:
        velocity[i] = [1.0, 2.0, float(n)]
    return total


@qp.data_oriented
class Gas:
    def __init__(self, n: int) -> None:
        self.energy = qp.field(qp.f32, shape=n)

    @qp.kernel
    def heat(self, dt: qp.f32) -> None:
        for i in self.energy:
            self.energy[i] += dt * self.source(1.0)

    @qp.func
    def source(self, value: qp.f32) -> qp.f32:
        return value


@qp.kernel
def scale(values: qp.Field[qp.f32], weights: qp.NDArray[qp.f32], by: qp.f32) -> None:
    for i in values:
        values[i] *= by * weights[i]


def warmest(image: qp.Field[qp.f32]) -> float:
    return max(image[i, j] for i in range(4) for j in range(4))


def names(fields: list[qp.Field], array: qp.NDArray) -> str:
    return f"{[each.name for each in fields]} {array.shape}"


x, y = np.arange(8, dtype=np.float32), np.ones(8, dtype=np.float32)
stream = qp.create_stream()
grid = qp.ndarray(qp.f32, (4, 4))
gas = Gas(4)

pixels = np.ones((8, 3), np.uint8)
brighten(pixels, y)
assert pixels.tolist() == [[2, 2, 2]] * 8
saxpy(2.0, x, y)
saxpy(2.0, x, y, stream=stream)
total: float = step(grid, grid, 0.5) + step(temperature, grid, 0.5)
spin(3)
gas.heat(0.5)
gas.heat(0.5, stream=stream)

line = qp.field(qp.f32, shape=3)
scale(line, qp.ndarray(qp.f32, 3), 2.0)
first: float = line[0] + line[np.int64(1)]
block: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = temperature[1:, 0]
count: int = qp.ndarray(qp.i32, (2, 3))[1, 2].bit_count()
on: bool = qp.field(qp.u1, ())[None]
length: float = qp.field(qp.types.vector(3, qp.f32), 4)[0].norm()
placed = qp.field(qp.i64)
qp.root.dense(qp.ij, (2, 2)).place(placed)
number: int = placed[1, 1]
warmest(temperature)
names([temperature, velocity, line], grid)
