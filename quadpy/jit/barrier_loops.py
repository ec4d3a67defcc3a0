"""Loops whose iterations wait for each other run in whole blocks.  Owns: BarrierLoop, ``barrier_loops``.

Imports: leaves and ``artifact``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quadpy.artifact import CodeObject
from quadpy.errors import ArgumentError
from quadpy.jit.formula import Evaluator, compile_formula
from quadpy.source import Span

__all__ = ["BarrierLoop", "barrier_loops"]


@dataclass(frozen=True, slots=True)
class BarrierLoop:
    """One such loop: how many iterations it has, and how many of them a block."""

    extent: Evaluator
    block_dim: int
    span: Span | None

    def require_whole(self, values: Sequence[Any]) -> None:
        """ArgumentError where a block would lack iterations: the others would wait for them at a barrier."""
        count = self.extent(values)
        if count % self.block_dim:
            line = f" on line {self.span.line}" if self.span else ""
            raise ArgumentError(
                f"the loop{line} has {count} iterations, and with block.sync() in it runs in whole blocks of "
                f"{self.block_dim}", self.span,
                hint=f"round its range up to {-(-count // self.block_dim) * self.block_dim}, and guard with an if what "
                "is not to happen in the iterations that this adds",
            )  # fmt: skip


def barrier_loops(code: CodeObject, spans: Sequence[Span | None]) -> Iterator[BarrierLoop]:
    """The loops of ``code`` that run in whole blocks; ``spans`` are the places of its tasks, none for none known."""
    for task, span in zip(code.tasks, spans or [None] * len(code.tasks), strict=True):
        if task.has_barrier and task.extent is not None:
            yield BarrierLoop(compile_formula(task.extent), task.block_dim, span)
