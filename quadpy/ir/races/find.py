"""The verdict about races of each array of a parallel task."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Final, TypeAlias

from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.effects import effects_of
from quadpy.ir.index.polynomials import text_of
from quadpy.ir.loads import LOADING
from quadpy.ir.passes.atomics import private_arrays
from quadpy.ir.races.accesses import Facts, Iteration, MemoryAccess
from quadpy.ir.races.proofs import Space, are_apart
from quadpy.ir.races.terms import Atom, Term, Terms
from quadpy.ir.races.witnesses import Collision, Point, collisions, counts_of
from quadpy.ir.touches import changed_in, name_of, touched_in
from quadpy.ir.walk import walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quadpy.core.source import Span

_VERBS = {ir.Access.READ: "reads", ir.Access.WRITE: "writes", ir.Access.ATOMIC: "updates"}


def races_of(task: ir.Task, *, noalias: bool = True) -> dict[str, Verdict]:
    """The verdict on each array that ``task`` touches, and on each variable that iterations share.

    Variables have the names of their slots, such as ``$0``.  ``noalias`` as in ``ir.Kernel``: if arrays may overlap,
    nothing is proved about them.  Shared arrays of blocks are not among them.
    """
    names = touched_by(task)
    if not isinstance(task, ir.ParallelTask):
        return dict.fromkeys(names, Proved())
    return _Search(task, noalias=noalias).verdicts(names)


def definite_races(task: ir.Task, *, noalias: bool = True) -> dict[str, Definite]:
    """The definite races of ``task`` alone, which takes less time."""
    if not isinstance(task, ir.ParallelTask):
        return {}
    written = {name for name, access in effects_of(task) if ir.Access.WRITE in access}
    written -= private_arrays(task)
    slots = (
        place for _, place, access in touched_in(task.body) if access is ir.Access.WRITE and isinstance(place, ir.Slot)
    )
    written.update(map(name_of, slots))
    return _Search(task, noalias=noalias).definite(written) if written else {}


def touched_by(task: ir.Task) -> list[str]:
    """The arrays and slots that ``task`` touches, by name; slots that it only reads are not among them."""
    arrays = {node.array for node in walk(task) if isinstance(node, ir.Element)}
    if isinstance(task, ir.ParallelTask):
        arrays -= {array.name for array in task.shared}
    slots = {name_of(place) for place in changed_in(task) if isinstance(place, ir.Slot)}
    return sorted(arrays) + sorted(slots)


class _Search:
    """The rules for one task, in their order."""

    def __init__(self, task: ir.ParallelTask, *, noalias: bool) -> None:
        self.task, self.noalias, self.terms = task, noalias, Terms()
        at = {axis.var: self.terms.atom(Atom(axis.var.name), varies=True) for axis in task.axes}
        self.numbers = [number for term in at.values() for number in self.terms.numbers_in(term)]
        self.facts = Facts.of(task, noalias=noalias)
        self.all = Iteration(self.terms, self.facts, at, every=True)
        self.counts = counts_of(self.terms, task.axes, self.all)

    @property
    def has_one_iteration(self) -> bool:
        return all(count == 1 for count in self.counts) or 0 in self.counts

    def definite(self, names: set[str]) -> dict[str, Definite]:
        if self.has_one_iteration:
            return {}
        found = collisions(self.terms, self.facts, self.counts)
        return {name: self.described(each) for name, each in found.items() if name in names}

    def verdicts(self, names: Sequence[str]) -> dict[str, Verdict]:
        if self.has_one_iteration:
            return dict.fromkeys(names, Proved())
        touches: dict[str, list[MemoryAccess]] = {name: [] for name in names}
        for touch in self.all.run():
            touches.setdefault(touch.array, []).append(touch)
        found = {name: self.doubt_about(name, touches[name]) or Proved() for name in names}
        left = {name for name, verdict in found.items() if isinstance(verdict, Unknown)}
        return {**found, **(self.definite(left) if left else {})}

    def doubt_about(self, name: str, touches: list[MemoryAccess]) -> Unknown | None:
        """Why ``name`` is not proved free of races; None if it is."""
        conflicting = [
            (a, b)
            for a, b in combinations_with_replacement(touches, 2)
            if a.component == b.component and (_conflict(a, b) or _do_not_commute(a, b))
        ]
        if not conflicting:
            return None
        if not self.noalias and not name[1:].isdigit():
            return _unknown("the arrays of this call may overlap", *conflicting[0])
        space = self.space()
        for a, b in sorted(conflicting, key=lambda pair: _do_not_commute(*pair)):
            if not are_apart(space, a, b):
                return _unknown(self.why(a, b), a, b)
        return None

    def space(self) -> Space:
        ranges = dict(self.all.ranges)
        for axis, number in zip(self.task.axes, self.numbers, strict=True):
            start, stop, step = (self.all.term(e) for e in (axis.start, axis.stop, axis.step))
            if (found := self.terms.range_of(start, stop, step)) is not None:
                ranges[number] = found
        axes = frozenset(self.numbers)
        ends = (ranges[axis][1] for axis in axes if axis in ranges and ranges[axis][0] == 0)
        positive = frozenset(number for end in ends if self.terms.is_atom(end) for number in self.terms.numbers_in(end))
        return Space(self.terms, axes, ranges, positive)

    def why(self, a: MemoryAccess, b: MemoryAccess) -> str:
        if _do_not_commute(a, b):
            return f"atomic updates by {' and '.join(sorted(map(_operation, (a, b))))} do not commute"
        places = " and ".join(dict.fromkeys(f"line {t.span.line} {_VERBS[t.access]}" for t in (a, b)))
        if a.access is b.access is ir.Access.WRITE and a.value == b.value and not self.terms.varies(a.value or 0):
            return f"{places} one value, the same in every iteration"
        if all(_is_fixed(self.terms, t) for t in (a, b)):
            return f"{places} one element in every iteration that comes there"
        return f"{places} elements that were not shown to differ between iterations"

    def described(self, found: Collision) -> Definite:
        first, second = found.first, found.second
        return Definite(
            self.access_point(first, found.at_first), self.access_point(second, found.at_second),
            tuple(term_text(self.terms, index) for index in second.index), self.needs((found.at_first, found.at_second)),
            is_slot=first.array[1:].isdigit(),
        )  # fmt: skip

    def access_point(self, touch: MemoryAccess, at: Point) -> AccessPoint:
        pairs = zip(self.task.axes, at.values, strict=True)
        iteration = tuple(f"{axis.var.name.partition('.')[0]}={term_text(self.terms, value)}" for axis, value in pairs)
        return AccessPoint(_VERBS[touch.access], iteration, touch.span)

    def needs(self, points: tuple[Point, Point]) -> str:
        """What a launch needs so that both iterations exist."""
        open_axes = [k for k, count in enumerate(self.counts) if count is None and any(p.numbers[k] for p in points)]
        names = [self.task.axes[k].var.name.partition(".")[0] for k in open_axes]
        return f"two or more iterations over {' and '.join(names)}" if names else ""


def _conflict(a: MemoryAccess, b: MemoryAccess) -> bool:
    accesses = a.access | b.access
    return ir.Access.WRITE in accesses or accesses == ir.Access.READ | ir.Access.ATOMIC


def _unknown(reason: str, a: MemoryAccess, b: MemoryAccess) -> Unknown:
    first, second = (AccessPoint(_VERBS[touch.access], (), touch.span) for touch in (a, b))
    return Unknown(reason, first, second)


def _do_not_commute(a: MemoryAccess, b: MemoryAccess) -> bool:
    return "" != _operation(a) != _operation(b) != ""


def _operation(touch: MemoryAccess) -> str:
    """What an atomic update does, by a name that updates which commute have in common; one that changes nothing is a load."""
    if touch.operation is None or (touch.operation in LOADING and touch.value == 0):
        return ""
    operation = ir.AtomicOp.ADD if touch.operation is ir.AtomicOp.SUB else touch.operation
    return str(operation.value)


def _is_fixed(terms: Terms, touch: MemoryAccess) -> bool:
    return not any(map(terms.varies, touch.index))


_OPERATORS: Final = {"floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}


def term_text(terms: Terms, term: Term) -> str:
    """``term`` in Python's syntax."""
    return text_of(term, lambda number: _atom_text(terms, terms.atoms[number]))


def _atom_text(terms: Terms, atom: Atom) -> str:
    operands = [term_text(terms, operand) for operand in atom.operands]
    if atom.name in _OPERATORS:
        return "(" + f" {_OPERATORS[atom.name]} ".join(f"({o})" if " " in o else o for o in operands) + ")"
    if atom.name.startswith("shape("):
        array, axis = atom.name[6:-1].split(", ")
        return f"{array}.shape[{axis}]"
    if atom.name.startswith("load "):
        return f"{atom.name[5:].partition('.')[0]}[{', '.join(operands)}]"
    name = atom.name.partition(".")[0]
    return f"{name}({', '.join(operands)})" if operands else name


@dataclass(frozen=True, slots=True)
class Proved:
    """No two iterations touch one element, unless both only read it, or both only update it atomically.

    This holds for all arguments for which no arithmetic of an index overflows and nothing is divided by 0, which
    ``debug=True`` reports.  Casts to 8 and 16 bits may wrap.
    """


@dataclass(frozen=True, slots=True)
class AccessPoint:
    """One of two accesses: ``verb`` says what it does, ``iteration`` has the loop's variables, as text, if they are known."""

    verb: str
    iteration: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Definite:
    """Two iterations touch one element, whatever the data; at least one writes, and not both update atomically.

    element   the indices, as text
    needs     what the launch needs for that, as text: empty if every launch has it
    is_slot   whether it is a variable from before the loop, and not an array
    """

    first: AccessPoint
    second: AccessPoint
    element: tuple[str, ...]
    needs: str = ""
    is_slot: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither was shown for these two accesses, because of ``reason``; their iterations are not known."""

    reason: str
    first: AccessPoint
    second: AccessPoint


Verdict: TypeAlias = Proved | Definite | Unknown
