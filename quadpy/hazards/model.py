"""What the checker reports, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["Hazard", "HazardAccess", "HazardKind"]

HazardKind: TypeAlias = Literal[
    "read after write", "write after read", "write after write", "use after free", "use before allocation"
]


@dataclass(frozen=True, slots=True)
class HazardAccess:
    """One of the two accesses of a hazard.

    file, line  the call in the program, or for a race inside a kernel, the place in the kernel
    what    what touches the memory: a kernel and where it is, a copy, a fill, a free, a write by the host
    array   the name of the array there: of the kernel's parameter, of the field
    range   which elements or bytes
    stream  the name of the stream in the program, as far as it is known; empty for the host, and inside a kernel
    """

    file: str
    line: int
    what: str
    array: str
    range: str
    stream: str

    @property
    def location(self) -> str:
        """The place as ``file:line``."""
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        on = f", on {self.stream}" if self.stream else ""
        return f"{self.location}: {self.what} {self.array}{self.range}{on}"

    def to_json(self) -> dict[str, Any]:
        """The same as data of JSON."""
        names = ("file", "line", "what", "array", "range", "stream")
        return {"location": self.location, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True, slots=True)
class Hazard:
    """Two accesses of one memory, of which one writes, and which nothing in the program orders.

    first, second  in the order of the calls
    certain  whether both take place whatever the data; if not, ``reason`` says what is uncertain
    mend     a line that orders them, to be put before the second access
    allowed  the reason that ``allow`` gave, if it covers the hazard
    """

    kind: HazardKind
    first: HazardAccess
    second: HazardAccess
    certain: bool
    reason: str
    mend: str
    allowed: str = ""

    @property
    def headline(self) -> str:
        """One line: what is not ordered."""
        doubt = "" if self.certain else "possible "
        return f"{doubt}{self.kind} of {self.second.array}: nothing orders the two accesses"

    def __str__(self) -> str:
        lines = [self.headline, f"  first   {self.first}", f"  second  {self.second}"]
        lines += [f"  only possible: {self.reason}"] if self.reason else []
        lines += [f"  mend: {self.mend}"] if self.mend else []
        lines += [f"  allowed: {self.allowed}"] if self.allowed else []
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The same as data of JSON."""
        names = ("kind", "certain", "reason", "mend", "allowed")
        facts = {name: getattr(self, name) for name in names}
        return {**facts, "first": self.first.to_json(), "second": self.second.to_json()}
