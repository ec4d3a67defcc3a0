"""Loops with barriers: their iterations wait for each other, so every block must be complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quadpy.artifact import CodeObject
from quadpy.errors import ArgumentError
from quadpy.jit.formula import Evaluator, compile_formula
from quadpy.jit.plan import ArgumentValue
from quadpy.source import Span

__all__ = ["BarrierLoop", "barrier_loops"]


@dataclass(frozen=True, slots=True)
class BarrierLoop:
    """One such loop: how many iterations it has, and how many of them make a block."""

    extent: Evaluator
    block_dim: int
    span: Span | None

    def require_complete(self, values: Sequence[ArgumentValue]) -> None:
        """ArgumentError where a block would lack iterations: the others would wait for them at a barrier."""
        count = self.extent(values)
        if count % self.block_dim:
            line = f" on line {self.span.line}" if self.span else ""
            raise ArgumentError(
                f"the loop{line} has {count} iterations, and with block.sync() in it, it runs in whole blocks of "
                f"{self.block_dim}", self.span,
                hint=f"round its range up to {-(-count // self.block_dim) * self.block_dim}, and guard the body with an if "
                "for the iterations that this adds",
            )  # fmt: skip


def barrier_loops(code: CodeObject, spans: Sequence[Span | None]) -> Iterator[BarrierLoop]:
    """The loops of ``code`` with barriers; ``spans`` says where its tasks begin, and is empty where that is unknown."""
    for task, span in zip(code.tasks, spans or [None] * len(code.tasks), strict=True):
        if task.has_barrier and task.extent is not None:
            yield BarrierLoop(compile_formula(task.extent), task.block_dim, span)
