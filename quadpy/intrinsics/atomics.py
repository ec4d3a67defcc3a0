"""Atomic operations."""

from __future__ import annotations

from typing import Final

from quadpy.intrinsics.rows import Effect, Row, Update

__all__ = ["GROUPS"]


def _row(op: str, doc: str, parameters: str = "x, y", condition: str = "") -> Row:
    return Row(
        f"atomic_{op}",
        parameters,
        f"Performs ``{doc}`` atomically{condition} and returns the old x.",
        Update(op),
        effects=Effect.UPDATES,
    )


GROUPS: Final = {
    "Atomics": (
        _row("add", "x += y"),
        _row("sub", "x -= y"),
        _row("mul", "x *= y"),
        _row("min", "x = min(x, y)"),
        _row("max", "x = max(x, y)"),
        _row("and", "x &= y"),
        _row("or", "x |= y"),
        _row("xor", "x ^= y"),
        _row("exchange", "x = y"),
        _row("cas", "x = desired", "x, expected, desired", " if x equals ``expected`` bit for bit,"),
    )
}
