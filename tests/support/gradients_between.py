"""Gradients whose numbers have others between them in memory: members of structs, and fields in one tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import quadpy as qp

N = 300


def _struct(**options: Any) -> Any:
    inner = qp.types.struct(p=qp.types.vector(2, qp.f32), w=qp.f64)
    made = qp.types.struct(inner=inner, m=qp.f32, a=qp.types.matrix(2, 2, qp.f32), count=qp.i32)
    return made.field(shape=N, needs_grad=True, **options)


def _placed(node: Any) -> tuple[Any, Any]:
    p, m = qp.Vector.field(2, qp.f32, needs_grad=True), qp.field(qp.f32, needs_grad=True)
    node.place(p, m, p.grad, m.grad)
    return p, m


LAYOUTS: dict[str, Callable[[], Any]] = {
    "structs": _struct,
    "structs, member by member": lambda: _struct(layout=qp.Layout.SOA),
    "structs with an offset": lambda: _struct(offset=-7),
    "dense": lambda: _placed(qp.root.dense(qp.i, N)),
    "blocks": lambda: _placed(qp.root.dense(qp.i, N // 4).dense(qp.i, 4)),
    "pointer": lambda: _placed(qp.root.pointer(qp.i, N // 4).dense(qp.i, 4)),
    "bitmasked": lambda: _placed(qp.root.bitmasked(qp.i, N // 4).dense(qp.i, 4)),
}


class Program:
    """``run`` sums squares, moves, and sums again: a tape copies what moves, and clears gradients."""

    def __init__(self, layout: str) -> None:
        self.loss = qp.field(qp.f32, (), needs_grad=True)
        made, loss = LAYOUTS[layout](), self.loss
        if isinstance(made, tuple):
            p, m = made

            @qp.kernel
            def add():
                for i in m:
                    loss[None] += p[i].norm_sqr() + 2.0 * m[i] ** 2

            @qp.kernel
            def move():
                for i in m:
                    p[i].x += 1.0
                    m[i] *= 0.5
        else:
            f, p, m = made, made.inner.p, made.m

            @qp.kernel
            def add():
                for i in f:
                    loss[None] += f[i].inner.p.norm_sqr() + 2.0 * f[i].m ** 2 + 0.0 * qp.f32(f[i].inner.w)

            @qp.kernel
            def move():
                for i in f:
                    f[i].inner.p.x += 1.0
                    f[i].m *= 0.5
                    f[i].count += 1

        self.p, self.m, self.add, self.move = p, m, add, move

    def reset(self) -> None:
        """The numbers from which gradients are those of ``expected``, and gradients that must be cleared."""
        numbers = np.arange(N, dtype=np.float32) % 5
        self.p.from_numpy(np.stack([numbers, numbers + 1], 1))
        self.m.from_numpy(numbers)
        self.p.grad.fill(9.0)
        self.m.grad.fill(9.0)
        self.loss[None] = 0

    def run(self) -> None:
        with qp.ad.Tape(self.loss):
            self.add()
            self.move()
            self.add()

    def check(self) -> None:
        numbers = np.arange(N, dtype=np.float32) % 5
        np.testing.assert_array_equal(self.p.grad.to_numpy(), np.stack([4 * numbers + 2, 4 * numbers + 4], 1))
        np.testing.assert_array_equal(self.m.grad.to_numpy(), 5 * numbers)
        np.testing.assert_array_equal(self.p.to_numpy(), np.stack([numbers + 1, numbers + 1], 1))
        np.testing.assert_array_equal(self.m.to_numpy(), numbers / 2)


def on_simulated_gpu() -> None:
    """The same on a GPU whose kernels the CPU runs."""
    from running_gpu import running

    for layout in LAYOUTS:
        with running():
            check_everything(layout)


def check_everything(layout: str) -> None:
    """Called, on another stream, captured, and replayed."""
    program = Program(layout)

    def check(run: Callable[[], object]) -> None:
        program.reset()
        run()
        qp.sync()
        program.check()

    check(program.run)
    stream = qp.create_stream()

    def on_stream() -> None:
        qp.sync()
        with qp.use_stream(stream):
            program.run()

    check(on_stream)
    with qp.graph.capture() as graph:
        program.run()
    runnable = graph.instantiate()
    check(runnable.launch)
    check(runnable.launch)
    replayed = qp.graph.replay(program.run)
    for _ in range(3):
        check(replayed)
    with qp.graph.capture() as clearing:
        qp.ad.clear_all_gradients()
    program.reset()
    clearing.instantiate().launch()
    assert not program.p.grad.to_numpy().any()
    assert not program.m.grad.to_numpy().any()
    assert program.m.to_numpy().any()
