"""Parts of variables and of elements of arrays and fields: by letters, rows, columns and slices, read, written and updated."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

vec3 = qp.types.vector(3, qp.f32)
mat23 = qp.types.matrix(2, 3, qp.i32)
VECTORS = qp.types.ndarray(vec3, 1)
MATRICES = qp.types.ndarray(mat23, 1)
points = qp.Vector.field(3, qp.f32, shape=4)


@qp.kernel
def letters(v: VECTORS, old: VECTORS):
    for i in v:
        v[i] = points[i] = [1, 2, 3]
        v[i].xy = v[i].yx
        v[i].bgr += [10, 20, 30]
        points[i].zx = points[i].xz
        points[i].yz *= 2.0
        old[i].xy = qp.atomic_add(v[i].zy, 1.0)
        old[i].z = v[i].xyz[1:][1]


def test_several_components_by_letters():
    v, old = np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float32)
    letters(v, old)
    assert v.tolist() == [[32, 22, 14]] * 4
    assert points.to_numpy().tolist() == [[3, 4, 2]] * 4
    assert old.tolist() == [[13, 21, 14]] * 4


@qp.kernel
def rows(m: MATRICES, out: qp.types.ndarray(qp.i32, 2), k: qp.i32):
    for i in m:
        m[i] = [[1, 2, 3], [4, 5, 6]]
        m[i][0] = [7, 8, 9]
        m[i][1, :] += m[i][0]
        m[i][:, 2] = [0, i]
        m[i][1][0] -= 1
        m[i][-1][1:] = m[i][0, :2]
        out[i, 0] = m[i][0][1] * 100 + m[i][1][0]
        out[i, 1] = m[i][k][2] + m[i][k].sum()


def test_rows_columns_and_slices_of_matrices():
    m, out = np.zeros((3, 2, 3), np.int32), np.zeros((3, 2), np.int32)
    rows(m, out, 1)
    assert m.tolist() == [[[7, 8, 0], [10, 7, 8]]] * 3
    assert out.tolist() == [[810, 33]] * 3


@qp.kernel
def shared(x: qp.types.ndarray(qp.i32, 1), total: qp.types.ndarray(qp.types.vector(3, qp.i32), 0)):
    for i in x:
        total[None].zx += [i, 1]
        qp.atomic_max(total[None].yz, [i, -1])


@pytest.mark.parametrize("threads", [1, 2])
def test_updates_of_parts_are_atomic(threads):
    qp.init(arch=qp.cpu, cpu_max_num_threads=threads)
    total = np.zeros(3, np.int32)
    shared(np.zeros(5000, np.int32), total)
    assert total.tolist() == [5000, 4999, 4999 * 2500]


@qp.kernel
def of_variables(out: qp.types.ndarray(qp.i32, 2)):
    outside = qp.Vector([0, 0, 0])
    for i in range(out.shape[0]):
        v, m = qp.Vector([1, 2, 3]), mat23([[1, 2, 3], [4, 5, 6]])
        v[:2] = v[1:]
        v[::2] += [10, i]
        m[:, 1] *= 2
        m[0, :] = m[1, :]
        m[1, 1:] = [7, qp.atomic_add(m[:, 0], 1)[1]]
        m[1][1:][1] += 3
        m[0][:2] = m[1][::-1][1:]
        qp.atomic_sub(m[-1][2], m[0][2])
        outside[1:][0] += 1
        outside[1:][1:] += [i]
        for k in qp.static(range(3)):
            out[i, k], out[i, 3 + k], out[i, 6 + k] = v[k], m[0, k], m[1, k]
    out[0, 9] = outside.x
    out[0, 10] = outside.y * 1000 + outside.z


def test_rows_columns_and_slices_of_variables():
    out = np.zeros((3, 11), np.int32)
    of_variables(out)
    assert out[:, :9].tolist() == [[12, 3, 3 + i, 7, 5, 6, 5, 7, 1] for i in range(3)]
    assert out[0, 9:].tolist() == [0, 3003]


@pytest.mark.parametrize("target", ["gfx942", "gfx1201", "sm_90"])
@pytest.mark.parametrize("kernel", [letters, rows, shared, of_variables], ids=lambda kernel: kernel.source.name)
def test_parts_compile_for(kernel, target):
    assert kernel.compile(target).image


WRONG = {
    "v[i].xx = [1.0, 2.0]": "names the same component twice",
    "v[i].yzy += 1.0": "names the same component twice",
    "w = v[i]\nw.xx = [1.0, 2.0]": "names the same component twice",
    "w = v[i]\nw[1:] = [1.0, 2.0, 3.0]": "f32x3 where f32x2 is needed",
    "total[:k, 0] = 1": "the ends of a slice must be known at compile time",
    "total[0, 0, 0] = 1": "3 indices for an i32x2x3",
    "total[0][1][0] = 1": "a number has no parts",
    "total[k][1] = 1": "an item chosen at run time has no parts",
    "v[i].norm().x = 1.0": "this cannot be assigned to",
    "v[i].xw = [1.0, 2.0]": "no component 'xw'",
    "v[i][1][2] = 1.0": "is a scalar and has no components",
    "v[i].y.x = 1.0": "is a scalar and has no components",
    "y = v[i][k][0]": "is a scalar and has no components",
    "v[i][3] = 1.0": "out of range",
    "v[i][k, 0] += 1.0": "2 indices for a",
    "v[i][k] += [1.0, 2.0]": "f32x2 where one f32 is needed",
    "m[i][k][0] = 1": "that is written must be known at compile time",
    # What is stored has the shape of its place: as many numbers in another shape are another thing.
    "m[i] = qp.Matrix([[1, 2], [3, 4], [5, 6]])": "i32x3x2 where i32x2x3 is needed",
    "m[i] += qp.Matrix([[1, 2], [3, 4], [5, 6]])": "i32x3x2 where i32x2x3 is needed",
    "m[i] = [1, 2, 3, 4, 5, 6]": "i32x6 where i32x2x3 is needed",
    "m[i][0] = [[1, 2, 3]]": "i32x1x3 where i32x3 is needed",
    "qp.atomic_max(m[i], qp.Matrix([[1, 2], [3, 4], [5, 6]]))": "i32x3x2 where i32x2x3 is needed",
    "total += qp.Matrix([[1, 2], [3, 4], [5, 6]])": "i32x3x2 where i32x2x3 is needed",
    "x[i] = x.shape": "i32x1 where one f32 is needed",
    "x[i] += qp.Vector([1.0])": "f32x1 where one f32 is needed",
    "v[i].x = [1.0]": "f32x1 where one f32 is needed",
    "number += [1.0]": "f32x1 where one f32 is needed",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_names_no_such_part_is_an_error(load, line):
    body = "\n".join(f"        {part}" for part in line.split("\n"))
    kernel = load(f"""
vec3, mat23 = qp.types.vector(3, qp.f32), qp.types.matrix(2, 3, qp.i32)

@qp.kernel
def kernel(v: qp.types.ndarray(vec3, 1), m: qp.types.ndarray(mat23, 1), x: qp.types.ndarray(qp.f32, 1), k: qp.i32):
    total, number = mat23(0), 0.0
    for i in v:
{body}
""").kernel
    with pytest.raises(qp.CompilationError, match=WRONG[line]) as caught:
        kernel(np.zeros((4, 3), np.float32), np.zeros((4, 2, 3), np.int32), np.zeros(4, np.float32), 1)
    assert line.split("\n")[-1] in str(caught.value)
