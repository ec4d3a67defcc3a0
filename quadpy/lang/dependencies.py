"""What a trace read outside its function, so that a later process can tell whether that still holds.

A warm start finds compiled code by the text of the kernel's file and by these dependencies, without
parsing anything.  Imports: leaves only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from quadpy.dtypes import Scalar
from quadpy.lang.source import FunctionSource

__all__ = ["Dependencies", "fingerprint", "follow", "still_holds", "text_digest"]


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def fingerprint(value: Any) -> str | None:
    """Text that changes when the meaning of ``value`` in a kernel does; None where that cannot be told."""
    if value is None or isinstance(value, (bool, int, float, str, Scalar)):
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, (tuple, list)):
        parts = [fingerprint(item) for item in value]
        return None if None in parts else f"{type(value).__name__}({','.join(map(str, parts))})"
    own = getattr(value, "__quadpy_fingerprint__", None)
    if own is not None and not isinstance(value, type):
        return str(own())
    module = getattr(value, "__module__", None) or type(value).__module__
    if module.partition(".")[0] in ("quadpy", "builtins", "math") and hasattr(value, "__qualname__"):
        return f"name:{module}.{value.__qualname__}"
    if type(value).__name__ == "module":
        return f"module:{value.__name__}"
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return f"numpy:{value!r}"
    return None


class Dependencies:
    """The free names that a trace resolved, with the fingerprints of what they meant.

    A function that is not the kernel itself is told by its route: the paths that lead to it.
    """

    def __init__(self, kernel: FunctionSource | None = None) -> None:
        self._routes: dict[int, tuple[str, ...]] = {id(kernel): ()} if kernel else {}
        self._marks: dict[tuple[str, ...], dict[str, str]] = {}
        self.complete = kernel is not None

    def note(self, source: FunctionSource, path: str, value: Any) -> None:
        """``path`` is a name, or a name and attributes: ``cfg.n``."""
        mark, route = fingerprint(value), self._routes.get(id(source))
        if mark is None or route is None:
            self.complete = False
            return
        self._marks.setdefault(route, {})[path] = mark
        inner = getattr(value, "source", None)
        if isinstance(inner, FunctionSource):
            self._routes.setdefault(id(inner), (*route, path))

    def rows(self) -> list[tuple[list[str], dict[str, str]]]:
        """Route of each function that was read, with path → fingerprint."""
        return [(list(route), marks) for route, marks in self._marks.items()]


def still_holds(kernel: FunctionSource, rows: Sequence[tuple[list[str], dict[str, str]]]) -> bool:
    """True where every path still means what it meant when ``rows`` were written."""
    try:
        for route, marks in rows:
            source = kernel
            for path in route:
                source = follow(source, path).source
            if any(fingerprint(follow(source, path)) != mark for path, mark in marks.items()):
                return False
    except (KeyError, AttributeError):
        return False
    return True


def follow(source: FunctionSource, path: str) -> Any:
    """The object that ``path`` names in ``source`` now."""
    root, *attributes = path.split(".")
    value = source.resolve(root)
    for attribute in attributes:
        value = getattr(value, attribute)
    return value
