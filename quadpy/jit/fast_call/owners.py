"""Expressions that read attributes of the same objects, as few reads as possible."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

_PATH: Final = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.(?!__)\w+)+(?!\w)")
"""An object and attributes of it."""

_LITERAL: Final = re.compile("['\"]")
"""Begins a string, which may contain anything: texts with one stay as they are."""


def read_once(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Assignments, and ``texts`` in which a variable stands for each attribute that they read more than once."""
    paths = [path for text in texts if not _LITERAL.search(text) for path in _PATH.findall(text)]
    uses = Counter(prefix for path in paths for prefix in _prefixes(path))
    names: dict[str, str] = {}

    def short(path: str) -> str:
        known = next((prefix for prefix in reversed([*_prefixes(path)]) if prefix in names), None)
        return path if known is None else names[known] + path[len(known) :]

    lines = []
    for prefix in sorted((one for one, count in uses.items() if count > 1), key=len):
        lines.append(f"o{len(names)} = {short(prefix)}")
        names[prefix] = f"o{len(names)}"
    return lines, [text if _LITERAL.search(text) else _PATH.sub(lambda found: short(found[0]), text) for text in texts]


def _prefixes(path: str) -> Iterator[str]:
    """``a.b`` and ``a.b.c`` of ``a.b.c``."""
    parts = path.split(".")
    return (".".join(parts[: k + 1]) for k in range(1, len(parts)))
