"""Limits of code with 32-bit offsets, which arrays know without the rest of the compiler."""

from __future__ import annotations

from typing import Final

NARROW_SLACK: Final = 1 << 16
"""How far the offset of an address may exceed its element's, in bytes."""
MOST_NARROW_BYTES: Final = (1 << 32) - NARROW_SLACK
"""The largest arrays for such code, in bytes."""
