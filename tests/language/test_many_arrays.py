"""Kernels of hundreds of arrays."""

from __future__ import annotations

import time

import numpy as np
import pytest

import quadpy as qp


@pytest.fixture
def kernel_of(load):
    """``kernel_of(count)``: adds multiples of the first array, one element further, to all others."""

    def make(count):
        names = [f"a{k}" for k in range(count)]
        text = "F = qp.types.ndarray(dtype=qp.f32, ndim=1)\n@qp.kernel\n"
        text += f"def k({', '.join(f'{name}: F' for name in names)}):\n    for i in range(a0.shape[0] - 1):\n"
        text += "".join(f"        {name}[i] += a0[i + 1] * {k}.0\n" for k, name in enumerate(names) if k)
        return load(text).k

    return make


def test_a_kernel_of_512_arrays(kernel_of):
    count, size = 512, 5
    arrays = [qp.ndarray(qp.f32, size) for _ in range(count)]
    for k, array in enumerate(arrays):
        array.fill(k)
    kernel = kernel_of(count)
    kernel(*arrays)
    kernel(*arrays)
    assert [array.to_numpy().tolist() for array in arrays] == [[k] * size for k in range(count)]  # a0 is 0
    arrays[0].fill(1.0)
    qp.sync()
    began = time.perf_counter()
    kernel(*arrays)
    qp.sync()
    assert time.perf_counter() - began < 0.2  # 1 to 5 ms; it took 20 to 100 when each pair of arrays was compared
    assert arrays[100].to_numpy().tolist() == [200.0] * (size - 1) + [100.0]


def test_one_of_many_arrays_overlaps_another(kernel_of, arch):
    if arch != "cpu":
        pytest.skip("arrays of NumPy, which a GPU copies")
    memory, others = np.ones(8, np.float32), [np.zeros(7, np.float32) for _ in range(98)]
    kernel_of(100)(memory[1:], *others, memory[:7])  # the last one lies over the first
    expected = np.ones(8, np.float32)
    for i in range(6):
        expected[i] += np.float32(99) * expected[i + 2]
    assert memory.tolist() == expected.tolist()
