"""Atomic operations."""

from __future__ import annotations

from typing import Final

from quadpy.intrinsics.rows import Effect, Row, Update

__all__ = ["GROUPS"]


def _row(op: str, doc: str, parameters: str = "x, y") -> Row:
    return Row(f"atomic_{op}", parameters, f"{doc}; returns the old x.", Update(op), effects=Effect.UPDATES)


GROUPS: Final = {
    "Atomics": (
        _row("add", "x += y in one step"),
        _row("sub", "x -= y in one step"),
        _row("mul", "x *= y in one step"),
        _row("min", "x = min(x, y) in one step"),
        _row("max", "x = max(x, y) in one step"),
        _row("and", "x &= y in one step"),
        _row("or", "x |= y in one step"),
        _row("xor", "x ^= y in one step"),
        _row("exchange", "x = y in one step"),
        _row("cas", "x = desired in one step if x is expected, to the bit", "x, expected, desired"),
    )
}
