"""Races inside parallel loops, as users read them: two iterations that touch one element, of which one writes.

A ``Race`` has the members of the hazards between launches, so that all reports read alike.
"""

from __future__ import annotations

import ast
import linecache
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from quadpy.source import Span

__all__ = ["Race", "RaceAccess", "place_text", "source_name", "users_index"]

RaceKind: TypeAlias = Literal["read after write", "write after read", "write after write"]

_MEND: Final = "qp.loop_config(serialize=True)"


@dataclass(frozen=True, slots=True)
class RaceAccess:
    """What one of the two iterations does, and where.

    verb       reads, writes or updates
    iteration  the loop's variables there, such as ``i=0, j=1``
    array      the name of the array, or of a variable from before the loop
    range      the element, such as ``[1]``; empty for a variable
    """

    kernel: str
    verb: str
    iteration: str
    array: str
    range: str
    span: Span

    @property
    def file(self) -> str:
        return self.span.file

    @property
    def line(self) -> int:
        return self.span.line

    @property
    def location(self) -> str:
        """The place in the kernel as ``file:line``."""
        return f"{self.file}:{self.line}"

    @property
    def what(self) -> str:
        """The access without its element, as in hazards between launches."""
        return f"iteration {self.iteration} of {self.kernel} {self.verb}"

    @property
    def stream(self) -> str:
        """Empty: both iterations belong to one launch."""
        return ""

    def __str__(self) -> str:
        return f"{self.location}: {self.what} {self.array}{self.range}"

    def to_json(self) -> dict[str, Any]:
        """The same as data of JSON."""
        names = ("file", "line", "what", "array", "range", "stream", "iteration")
        return {"location": self.location, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True, slots=True)
class Race:
    """Two iterations of one loop that touch one element; nothing orders iterations.

    certain   whether both accesses happen whatever the data
    reason    what the launch must have, where not every launch has it
    """

    first: RaceAccess
    second: RaceAccess
    certain: bool = True
    reason: str = ""

    @property
    def kind(self) -> RaceKind:
        if self.second.verb == "reads":
            return "read after write"
        return "write after read" if self.first.verb == "reads" else "write after write"

    @property
    def mend(self) -> str:
        """The line that orders the iterations, to be put before the loop."""
        return _MEND

    @property
    def allowed(self) -> str:
        """Empty: races inside kernels cannot be allowed."""
        return ""

    @property
    def headline(self) -> str:
        """One line: what is not ordered."""
        place = f"{self.second.array}{self.second.range}"
        when = f", where the launch has {self.reason}" if self.reason else ""
        return f"two iterations of the parallel loop of {self.first.kernel} touch {place}, and iterations have no order{when}"

    @property
    def found(self) -> str:
        """One line: what happened in a launch."""
        first, second = self.first, self.second
        place = f"{second.array}{second.range}"
        return (
            f"race: iteration {second.iteration} {second.verb} {place}, and iteration {first.iteration} {first.verb} it "
            f"(line {first.line}); iterations have no order"
        )

    @property
    def hint(self) -> str:
        """What mends it: one of several ways."""
        serial = f"run the loop serially ({self.mend} before it)"
        name = f"{self.second.array}{self.second.range}"
        if not self.second.range:
            name = self.second.array
            ways = [f"combine the iterations, as by qp.atomic_max({name}, value) or {name} += value"]
            return "; ".join(
                [*ways, f"bind {name} inside the loop alone, so that each iteration has its own", f"or {serial}"]
            )
        if self.kind == "write after write":
            return f"give each iteration an element of its own; combine the values, as by qp.atomic_add({name}, value); or {serial}"
        buffer = "read from one array and write to another (double buffer)"
        return f"{buffer}; if iterations combine values, update the element atomically ({name} += value); or {serial}"

    def __str__(self) -> str:
        lines = [self.headline]
        for name, access in (("first", self.first), ("second", self.second)):
            lines += [f"  {name:6}  {access}", *filter(None, [access.span.excerpt()])]
        return "\n".join([*lines, f"  mend: {self.hint}"])

    def to_json(self) -> dict[str, Any]:
        """The same as data of JSON."""
        names = ("kind", "certain", "reason", "mend", "hint")
        facts = {name: getattr(self, name) for name in names}
        return {**facts, "first": self.first.to_json(), "second": self.second.to_json()}

    def packed(self) -> list[Any]:
        """All of it as lists for JSON, which ``unpacked`` reads."""
        sides = [
            [a.kernel, a.verb, a.iteration, a.array, a.range, a.span.file, a.span.line, a.span.col, a.span.end_col]
            for a in (self.first, self.second)
        ]
        return [*sides, self.certain, self.reason]

    @staticmethod
    def unpacked(parts: list[Any]) -> Race:
        first, second, certain, reason = parts
        return Race(_access(*first), _access(*second), certain, reason)


def _access(
    kernel: str, verb: str, iteration: str, array: str, element: str, file: str, line: int, col: int, end: int
) -> RaceAccess:
    return RaceAccess(kernel, verb, iteration, array, element, Span(file, line, col, end))


def place_text(span: Span) -> str:
    """The element or variable that the source text at ``span`` reads or writes, such as ``best[None]``; empty if unknown."""
    text = linecache.getline(span.file, span.line)
    text = text.encode()[span.col : span.end_col or None].decode(errors="replace").strip()
    try:
        (stmt,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return ""
    match stmt:
        case ast.Assign(targets=[target]) | ast.AugAssign(target=target) | ast.Expr(value=ast.Call(args=[target, *_])):
            pass
        case ast.Expr(value=target):
            pass
        case _:
            return ""
    return ast.unparse(target) if isinstance(target, (ast.Subscript, ast.Name, ast.Attribute)) else ""


def users_index(index: Sequence[int], offset: Sequence[int], blocks: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The index of an element as users write it; ``offset`` and ``blocks`` as in ``ir.ArrayParam``."""
    left = iter(index)
    whole = [_joined(left, levels) for levels in blocks] if blocks else [*index]
    return tuple(map(operator.add, whole, offset)) if offset else tuple(whole)


def _joined(parts: Iterator[int], levels: Sequence[int]) -> int:
    """The next ``parts``, one for each of ``levels``, as one number."""
    number = 0
    for extent in levels:
        number = number * extent + next(parts)
    return number


def source_name(array: str, spans: Iterable[Span]) -> str:
    """What the source calls ``array``: fields and variables from before a loop have no name in the IR, but ``$`` and a number.

    It is read at the first of ``spans`` that says it.
    """
    if not array.startswith("$"):
        return array
    is_variable = array[1:].isdigit()
    places = (place_text(span) for span in spans)
    names = (place if is_variable else re.split(r"[\[.]", place, maxsplit=1)[0] for place in places)
    return next(filter(None, names), "a variable" if is_variable else "a field")
