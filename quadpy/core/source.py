"""Positions in the user's source."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A range in one line of a file: lines count from 1, columns from 0, ``end_col`` is exclusive.

    Without columns it means the whole line, and its excerpt points to the first character that is not a space.
    """

    file: str
    line: int
    col: int = 0
    end_col: int = 0

    def __str__(self) -> str:
        return f"{_cell_name(self.file) or self.file}:{self.line}:{self.col + 1}"

    def excerpt(self) -> str:
        """The line with carets under the range; empty if the file cannot be read."""
        text = linecache.getline(self.file, self.line).rstrip("\n")
        if not text:
            return ""
        col = self.col or len(text) - len(text.lstrip())
        width = max(1, min(self.end_col, len(text)) - col)
        return f"    {text}\n    {' ' * col}{'^' * width}"


def _cell_name(file: str) -> str:
    """What IPython calls the notebook cell that it keeps in ``file``, such as ``Cell In[3]``; empty for other files."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = name_of(file) if name_of is not None else None
    return " ".join(found) if found else ""


NOWHERE = Span("<quadpy>", 0)
"""For nodes that quadpy itself creates."""
