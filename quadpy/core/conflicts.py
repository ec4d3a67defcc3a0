"""Hazards and races as data: two accesses of one memory, at least one a write, that nothing orders."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any, Final, Literal, TypeAlias

from quadpy.core.light import dataclass
from quadpy.core.source import Span

HazardKind: TypeAlias = Literal[
    "read after write", "write after read", "write after write", "use after free", "use before allocation"
]

_SERIAL: Final = "qp.loop_config(serialize=True)"


@dataclass(frozen=True, slots=True)
class HazardAccess:
    """One of the two accesses.

    file, line  the call in the program; for a race inside a kernel, the place in the kernel
    actor   what touches the memory: a kernel and where it is, a copy, a fill, a free, the host, an iteration
    verb    reads, writes, updates, allocates or frees
    array   the name of the array there: of the kernel's parameter, of the field, of a variable from before the loop
    range   which elements or bytes; empty for all of them, and for a variable
    stream  the name of the stream in the program, as far as it is known; empty for the host, and inside a kernel
    iteration  inside a kernel, the loop's variables, such as ``i=0, j=1``; empty where they are not known
    span    the place in the kernel's source, for a race inside a kernel
    """

    file: str
    line: int
    actor: str
    verb: str
    array: str
    range: str
    stream: str = ""
    iteration: str = ""
    span: Span | None = None

    @property
    def location(self) -> str:
        """The place as ``file:line``."""
        return f"{self.file}:{self.line}"

    @property
    def what(self) -> str:
        """The access without its elements."""
        return f"{self.actor} {self.verb}"

    def __str__(self) -> str:
        on = f", on {self.stream}" if self.stream else ""
        return f"{self.location}: {self.what} {self.array}{self.range}{on}"

    def to_json(self) -> dict[str, Any]:
        """The same as JSON data."""
        names = ("location", "file", "line", "what", "array", "range", "stream", "iteration")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Hazard:
    """Two accesses that nothing in the program orders.

    first, second  in the order of the calls
    certain  whether both take place whatever the data; if not, ``reason`` says what is uncertain
    fix      a line that orders them, to put before the second access; inside a kernel, before the loop
    allowed  the reason that ``allow`` gave, if it covers the hazard
    """

    kind: HazardKind
    first: HazardAccess
    second: HazardAccess
    certain: bool
    reason: str
    fix: str
    allowed: str = ""

    @property
    def headline(self) -> str:
        """One line: what is not ordered."""
        doubt = "" if self.certain else "possible "
        return f"{doubt}{self.kind} of {self.second.array}: nothing orders the two accesses"

    @property
    def hint(self) -> str:
        """How to fix it, in words."""
        return self.fix

    def __str__(self) -> str:
        lines = [self.headline]
        for name, access in (("first", self.first), ("second", self.second)):
            lines.append(f"  {name:6}  {access}")
            lines += [] if access.span is None else filter(None, [access.span.excerpt()])
        lines += [] if self.certain else [f"  only possible: {self.reason}"]
        lines += [f"  fix: {self.hint}"] if self.hint and not self.allowed else []
        lines += [f"  allowed: {self.allowed}"] if self.allowed else []
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON data."""
        names = ("kind", "certain", "reason", "fix", "hint", "allowed")
        facts = {name: getattr(self, name) for name in names}
        return {**facts, "first": self.first.to_json(), "second": self.second.to_json()}


@dataclass(frozen=True, slots=True)
class Race(Hazard):
    """Two iterations of one parallel loop of ``kernel`` that touch one element: nothing orders iterations.

    If it is certain, ``reason`` says what the launch must have, where not every launch has it.
    """

    kernel: str = ""

    @property
    def headline(self) -> str:
        """One line: what is not ordered."""
        place = f"{self.second.array}{self.second.range}"
        if not self.certain:
            return f"two iterations of the parallel loop of {self.kernel} may touch the same element of {place}"
        when = f", where the launch has {self.reason}" if self.reason else ""
        return f"two iterations of the parallel loop of {self.kernel} touch {place}, and iterations have no order{when}"

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
        """One of several ways to fix it."""
        serial = f"run the loop serially ({self.fix} before it)"
        name = f"{self.second.array}{self.second.range}"
        if not self.second.range:
            ways = [f"combine the iterations, for example with qp.atomic_max({name}, value) or {name} += value"]
            return "; ".join(
                [*ways, f"bind {name} only inside the loop, so that each iteration has its own", f"or {serial}"]
            )
        if self.kind == "write after write":
            return f"give each iteration its own element; combine the values, for example with qp.atomic_add({name}, value); or {serial}"
        buffer = "read from one array and write to another (double buffer)"
        return f"{buffer}; if iterations combine values, update the element atomically ({name} += value); or {serial}"

    def packed(self) -> tuple[Any, ...]:
        """All of it for JSON, which ``unpacked`` reads."""
        return astuple(self)

    @staticmethod
    def unpacked(parts: list[Any]) -> Race:
        kind, first, second, *rest = parts
        return Race(kind, _unpacked(first), _unpacked(second), *rest)


def _unpacked(parts: list[Any]) -> HazardAccess:
    return replace(HazardAccess(*parts), span=Span(*parts[-1]))


def race_access(kernel: str, verb: str, iteration: str, array: str, element: str, span: Span) -> HazardAccess:
    """What an iteration of ``kernel`` does at ``span``."""
    actor = f"iteration {iteration} of {kernel}" if iteration else f"an iteration of {kernel}"
    return HazardAccess(span.file, span.line, actor, verb, array, element, iteration=iteration, span=span)


def race_of_iterations(
    kernel: str, first: HazardAccess, second: HazardAccess, *, certain: bool = True, reason: str = "", allowed: str = ""
) -> Race:
    """The race of two accesses by iterations of ``kernel``."""
    kind: HazardKind = "write after read" if first.verb == "reads" else "write after write"
    kind = "read after write" if second.verb == "reads" else kind
    return Race(kind, first, second, certain, reason, _SERIAL, allowed, kernel)
