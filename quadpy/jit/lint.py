"""Checks kernels for races inside parallel loops, without running them."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias

from quadpy.core.conflicts import Race
from quadpy.core.light import dataclass
from quadpy.core.messages import shown
from quadpy.core.source import Span
from quadpy.errors import ArgumentError, QuadpyError
from quadpy.ir.nodes import Kernel as IrKernel, ParallelTask
from quadpy.ir.races import Definite, Proved, Unknown, Verdict, races_of
from quadpy.jit.kernel import BoundKernel, Kernel
from quadpy.jit.offline import trace_for
from quadpy.jit.parameters import Argument
from quadpy.jit.races import race_of

Outcome: TypeAlias = Literal["proved", "definite", "unknown", "allowed"]
Overall: TypeAlias = Literal["clean", "races", "unchecked"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known about one array, or variable from before the loop, in one parallel loop.

    outcome  proved: free of races; definite: ``race`` has two iterations that collide; unknown: ``reason`` says why;
             allowed: ``race`` would be definite or unknown, and ``reason`` is what ``qp.hazards.allow`` gave
    """

    kernel: str
    array: str
    loop: Span
    outcome: Outcome
    reason: str = ""
    race: Race | None = None

    def __str__(self) -> str:
        if self.race is not None:
            return str(self.race)
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.loop.file}:{self.loop.line}: {self.kernel}: {self.array} {_WORDS[self.outcome]}{reason}"

    def to_json(self) -> dict[str, Any]:
        """The same as JSON data."""
        place = {"file": self.loop.file, "line": self.loop.line}
        facts = {
            "kernel": self.kernel,
            "array": self.array,
            "loop": place,
            "outcome": self.outcome,
            "reason": self.reason,
        }
        return {**facts, "race": None if self.race is None else self.race.to_json()}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A kernel that could not be checked, and why."""

    kernel: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kernel} was not checked: {self.reason}"


@dataclass(frozen=True, slots=True)
class LintReport:
    """The results of ``lint``."""

    checked: tuple[Checked, ...]
    skipped: tuple[Skipped, ...]

    @property
    def races(self) -> tuple[Race, ...]:
        """The definite races."""
        return tuple(each.race for each in self.checked if each.race is not None and each.outcome == "definite")

    @property
    def allowed(self) -> tuple[Race, ...]:
        """The races that ``qp.hazards.allow`` covers in the kernels, including possible ones."""
        return tuple(each.race for each in self.checked if each.race is not None and each.outcome == "allowed")

    @property
    def outcome(self) -> Overall:
        """races: there are definite ones; unchecked: none, but not all kernels could be checked; otherwise clean."""
        return "races" if self.races else "unchecked" if self.skipped else "clean"

    @property
    def unknown(self) -> tuple[Checked, ...]:
        """The arrays that ``debug=True`` checks when the kernel runs."""
        return tuple(each for each in self.checked if each.outcome == "unknown")

    @property
    def summary(self) -> str:
        """One line of numbers."""
        definite, unknown, proved = (
            sum(each.outcome == outcome for each in self.checked) for outcome in ("definite", "unknown", "proved")
        )
        text = f"{_counted(definite, 'definite race')}, {unknown} unknown, {proved} proved free of races"
        text += f", {len(self.allowed)} allowed" if self.allowed else ""
        return f"{text}; {_counted(len(self.skipped), 'kernel')} not checked" if self.skipped else text

    def to_json(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "outcome": self.outcome,
            "checked": [each.to_json() for each in self.checked],
            "skipped": [{"kernel": each.kernel, "reason": each.reason} for each in self.skipped],
        }

    def __str__(self) -> str:
        notable = [*self.races, *self.unknown, *self.allowed, *self.skipped]
        return "\n".join([*map(str, notable), self.summary])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_WORDS: Final = {
    "proved": "is proved free of races",
    "unknown": "may race",
    "definite": "races",
    "allowed": "may race, which is allowed",
}


def lint(what: Kernel | ModuleType, **given: Argument) -> LintReport:
    """Checks a kernel, or all kernels of a module, for races inside their parallel loops.

    ``given`` fills in what annotations leave open, as for ``Kernel.compile``.

    Raises:
        ArgumentError: it is neither a kernel nor a module.
    """
    if isinstance(what, Kernel):
        return lint_kernels({what.source.name: (what, given)})
    if isinstance(what, ModuleType):
        found = {name: value for name, value in vars(what).items() if isinstance(value, Kernel)}
        own = {name: kernel for name, kernel in found.items() if kernel.source.fn.__module__ == what.__name__}
        return lint_kernels(
            {name: (kernel, given) for name, kernel in own.items() if not isinstance(kernel, BoundKernel)}
        )
    raise ArgumentError(f"lint takes a kernel or a module, not {shown(what)}")


def lint_kernels(kernels: Mapping[str, tuple[Kernel, Mapping[str, Argument]]]) -> LintReport:
    """Checks kernels, by name, each with what its annotations leave open."""
    checked: list[Checked] = []
    skipped: list[Skipped] = []
    for name, (kernel, given) in kernels.items():
        try:
            traced = trace_for(kernel, given).unwatched
        except QuadpyError as error:
            skipped.append(Skipped(name, error.message))
            continue
        checked += _checked(name, traced)
    return LintReport(tuple(checked), tuple(skipped))


def _checked(name: str, kernel: IrKernel) -> list[Checked]:
    return [
        _described(name, task, array, verdict, kernel)
        for task in kernel.tasks
        if isinstance(task, ParallelTask)
        for array, verdict in races_of(task, noalias=kernel.noalias).items()
    ]


def _described(name: str, task: ParallelTask, array: str, verdict: Verdict, kernel: IrKernel) -> Checked:
    shown, allowed = kernel.called(array), dict(task.allowed).get(array, "")
    match verdict:
        case Proved():
            return Checked(name, shown, task.span, "proved")
        case Definite() | Unknown() if allowed:
            race = race_of(name, array, verdict, kernel, allowed)
            return Checked(name, shown, task.span, "allowed", allowed, race)
        case Definite():
            return Checked(name, shown, task.span, "definite", race=race_of(name, array, verdict, kernel))
        case Unknown(reason=reason):
            return Checked(name, shown, task.span, "unknown", reason)
