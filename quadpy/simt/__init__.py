"""``qp.simt``: what the iterations of a loop do together, by blocks."""

from __future__ import annotations

from quadpy.simt import block

__all__ = ["block"]
