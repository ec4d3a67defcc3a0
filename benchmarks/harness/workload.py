"""One row of a table: its name, its sizes, and the title that says what was run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    """`size`, `quick` and `tiny` (0: `quick`) count elements, bodies, or elements along one side, at each scale."""

    name: str
    title: str
    size: int
    quick: int
    tiny: int = 0
    unit: str = "ms"

    def elements(self, scale: str) -> int:
        return {"full": self.size, "quick": self.quick, "tiny": self.tiny or self.quick}[scale]

    def label(self, scale: str) -> str:
        """The title with the size that is run: as a power of two if digits would be hard to read."""
        n = self.elements(scale)
        large_power = n >= 2**17 and n & (n - 1) == 0
        return self.title.format(n=f"2^{n.bit_length() - 1}" if large_power else f"{n:,}")
