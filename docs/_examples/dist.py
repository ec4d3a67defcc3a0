"""Examples of ranks and grids."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_world() -> None:
    world = qp.dist.world()
    assert isinstance(world, qp.dist.World)
    print(world.rank, world.size)  # 0 1


def example_Grid() -> None:
    @qp.kernel
    def smooth(u: qp.Array1D[qp.f32], v: qp.Array1D[qp.f32]) -> None:
        for i in u:
            v[i] = 0.5 * (u[i] + u[(i + 1) % u.shape[0]])

    grid = qp.dist.Grid((6,), periodic=True)
    u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
    assert isinstance(u, qp.dist.DistributedArray)
    u.from_numpy(np.arange(6, dtype=np.float32))
    smooth(u, v)
    print(v.to_numpy())  # [0.5 1.5 2.5 3.5 4.5 2.5]


def example_DistributedField() -> None:
    grid = qp.dist.Grid((4, 4))
    f = grid.field(qp.f32, name="f")
    assert isinstance(f, qp.dist.DistributedField)

    @qp.kernel
    def rows() -> None:
        for i, j in f:  # by name, with global indices
            f[i, j] = i

    rows()
    print(f.to_numpy()[:, 0])  # [0. 1. 2. 3.]


def example_capture() -> None:
    @qp.kernel
    def add_one(u: qp.Array1D[qp.f32]) -> None:
        for i in u:
            u[i] += 1.0

    u = qp.dist.Grid((8,)).ndarray(qp.f32)
    step = qp.dist.capture(lambda: add_one(u))  # runs it once
    assert isinstance(step, qp.dist.CapturedStep)
    for _ in range(3):
        step.launch()
    print(u[0])  # 4.0


def example_explain() -> None:
    @qp.kernel
    def double(u: qp.Array1D[qp.f32]) -> None:
        for i in u:
            u[i] *= 2.0

    u = qp.dist.Grid((8,)).ndarray(qp.f32)
    qp.dist.explain(double, u)


def example_allreduce() -> None:
    print(qp.dist.allreduce(2.5), qp.dist.allreduce(np.arange(3), "max"))  # 2.5 [0 1 2]


def example_broadcast() -> None:
    rank = qp.dist.world().rank
    print(qp.dist.broadcast(1234 if rank == 0 else None))  # 1234


def example_gather() -> None:
    print(qp.dist.gather(qp.dist.world().rank))  # [0]


def example_barrier() -> None:
    qp.dist.barrier()  # returns when all ranks have made the call


def example_Checkpoint() -> None:
    grid = qp.dist.Grid((4,))
    u = grid.ndarray(qp.f32)
    u.fill(3.0)
    saved = grid.save("state", u=u, step=12)
    assert isinstance(saved, qp.dist.Checkpoint)
    u.fill(0.0)  # the checkpoint has the values before
    saved.wait()
    state = grid.load("state")
    print(state["step"], state["u"].to_numpy())  # 12 [3. 3. 3. 3.]
