"""Positions in the user's source."""

from __future__ import annotations

import linecache
from dataclasses import dataclass

__all__ = ["NOWHERE", "Span"]


@dataclass(frozen=True, slots=True)
class Span:
    """A range of one file: lines from 1, columns from 0, ``end_col`` exclusive, on the first line.

    One without columns means its line, and is shown at the first character that is no space.
    """

    file: str
    line: int
    col: int = 0
    end_col: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col + 1}"

    def excerpt(self) -> str:
        """The line with a caret under the range; empty where the file cannot be read."""
        text = linecache.getline(self.file, self.line).rstrip("\n")
        if not text:
            return ""
        col = self.col or len(text) - len(text.lstrip())
        width = max(1, min(self.end_col, len(text)) - col)
        return f"    {text}\n    {' ' * col}{'^' * width}"


NOWHERE = Span("<quadpy>", 0)
"""For nodes that quadpy itself makes."""
