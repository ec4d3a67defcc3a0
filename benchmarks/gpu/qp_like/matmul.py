"""Products of square matrices by tiles in shared memory: one element per thread, and 8 x 8 elements per thread."""

import numpy as np

from harness.bench import Arrays, Bench
from harness.language import array_of, qp

matrices = qp.types.ndarray(dtype=qp.f32, ndim=2)

TILE = 16
WIDE = 32
EDGE = 128  # of the tile of C that a block of 16 x 16 threads makes
DEPTH = 8
PART = 8  # each thread's part of it, PART x PART elements


@qp.kernel
def matmul_16(a: matrices, b: matrices, c: matrices):
    qp.loop_config(block_dim=TILE * TILE)
    for t in range(c.shape[0] * c.shape[1]):
        a_tile = qp.simt.block.SharedArray((TILE, TILE), qp.f32)
        b_tile = qp.simt.block.SharedArray((TILE, TILE), qp.f32)
        lane = t % (TILE * TILE)
        block = t // (TILE * TILE)
        across = c.shape[1] // TILE
        i = lane // TILE
        j = lane % TILE
        row = block // across * TILE + i
        column = block % across * TILE + j
        total = 0.0
        for step in range(a.shape[1] // TILE):
            a_tile[i, j] = a[row, step * TILE + j]
            b_tile[i, j] = b[step * TILE + i, column]
            qp.simt.block.sync()
            for k in qp.static(range(TILE)):
                total += a_tile[i, k] * b_tile[k, j]
            qp.simt.block.sync()
        c[row, column] = total


@qp.kernel
def matmul_32(a: matrices, b: matrices, c: matrices):
    qp.loop_config(block_dim=WIDE * WIDE)
    for t in range(c.shape[0] * c.shape[1]):
        a_tile = qp.simt.block.SharedArray((WIDE, WIDE), qp.f32)
        b_tile = qp.simt.block.SharedArray((WIDE, WIDE), qp.f32)
        lane = t % (WIDE * WIDE)
        block = t // (WIDE * WIDE)
        across = c.shape[1] // WIDE
        i = lane // WIDE
        j = lane % WIDE
        row = block // across * WIDE + i
        column = block % across * WIDE + j
        total = 0.0
        for step in range(a.shape[1] // WIDE):
            a_tile[i, j] = a[row, step * WIDE + j]
            b_tile[i, j] = b[step * WIDE + i, column]
            qp.simt.block.sync()
            for k in qp.static(range(WIDE)):
                total += a_tile[i, k] * b_tile[k, j]
            qp.simt.block.sync()
        c[row, column] = total


@qp.kernel
def matmul_registers(a: matrices, b: matrices, c: matrices):
    qp.loop_config(block_dim=256)
    for t in range(c.shape[0] // PART * (c.shape[1] // PART)):
        a_tile = qp.simt.block.SharedArray((DEPTH, EDGE), qp.f32)  # transposed
        b_tile = qp.simt.block.SharedArray((DEPTH, EDGE), qp.f32)
        lane = t % 256
        block = t // 256
        across = c.shape[1] // EDGE
        top = block // across * EDGE
        left = block % across * EDGE
        a_row = lane // 2
        a_column = lane % 2 * 4
        b_row = lane // 32
        b_column = lane % 32 * 4
        i = lane // 16 * 4  # each thread has rows i to i + 3 and 64 below these, and columns j likewise
        j = lane % 16 * 4
        total = qp.Matrix.zero(qp.f32, PART, PART)
        for step in range(a.shape[1] // DEPTH):
            for k in qp.static(range(4)):
                a_tile[a_column + k, a_row] = a[top + a_row, step * DEPTH + a_column + k]
                b_tile[b_row, b_column + k] = b[step * DEPTH + b_row, left + b_column + k]
            qp.simt.block.sync()
            for k in qp.static(range(DEPTH)):
                u = qp.Vector([a_tile[k, i + m % 4 + m // 4 * 64] for m in range(PART)])
                v = qp.Vector([b_tile[k, j + m % 4 + m // 4 * 64] for m in range(PART)])
                for m, n in qp.static(qp.ndrange(PART, PART)):
                    total[m, n] += u[m] * v[n]
            qp.simt.block.sync()
        for m, n in qp.static(qp.ndrange(PART, PART)):
            c[top + i + m % 4 + m // 4 * 64, left + j + n % 4 + n // 4 * 64] = total[m, n]


def _builder(*kernels):
    def build(data: Arrays) -> Bench:
        a, b = array_of(data["a"]), array_of(data["b"])
        c = array_of(np.full_like(data["a"], np.nan))
        names = [kernel.__name__ for kernel in kernels]
        variants = {n: lambda k=k: k(a, b, c) for n, k in zip(names, kernels, strict=True)}
        return Bench(variants, lambda: {"c": c.to_numpy()}, reset=lambda: c.fill(np.nan))

    return build


BUILDERS = {"matmul": _builder(matmul_16, matmul_32), "matmul_registers": _builder(matmul_registers)}
