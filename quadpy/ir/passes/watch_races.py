"""Finds races inside parallel loops at run time, under ``debug=True``.

Each element of an array that is not proved free of races has three words of shadow memory: which iteration first wrote or
updated it, which first read it, and the value of the first store.  An access leaves its iteration there, and finds another's.  Iterations have no
order, so those that run one after another are found as well as those that run at once.

A loop clears its shadow memory before it begins.  Loops whose iterations wait for each other are not watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from quadpy.core.artifact import SHADOW
from quadpy.core.dtypes import i64, u64
from quadpy.core.faults import Site
from quadpy.core.flow import Fork, map_tasks, steps_of
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import needs_whole_blocks
from quadpy.ir.build import FAULT_PARAMS, At, maximum
from quadpy.ir.loads import chosen_in, unread_in
from quadpy.ir.numbering import Numbers, statements
from quadpy.ir.passes.shadow_marks import Marks, Place
from quadpy.ir.passes.shadow_words import Words, number_of_iteration, words_of
from quadpy.ir.races import Proved, orders_itself, races_of
from quadpy.ir.touches import is_binding, kind_of, name_of, only_reads, touches
from quadpy.ir.types import array_of
from quadpy.ir.variables import bound_by
from quadpy.ir.walk import map_children, walk

Index: TypeAlias = tuple[ir.Expr, ...]


def watch_races(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with these checks, if it asks for them."""
    return with_watches(kernel, [watched_in(task, kernel) for task in kernel.tasks])


def with_watches(
    kernel: ir.Kernel,
    watched: Sequence[Sequence[str]],
    reported: Callable[[str, Index], Index] = lambda _, index: index,
) -> ir.Kernel:
    """``kernel`` with checks of these arrays and slots of each task; messages have ``reported`` of an array and an index."""
    return _Watcher(kernel, watched, reported).run() if any(watched) else kernel


def watched_in(task: ir.Task, kernel: ir.Kernel) -> tuple[str, ...]:
    """The arrays and slots of ``task`` that are watched, if ``kernel`` asks for it: not those for which races are allowed."""
    if (
        not kernel.debug
        or not isinstance(task, ir.ParallelTask)
        or orders_itself(task)
        or needs_whole_blocks(task.body)
    ):
        return ()
    verdicts = races_of(task, noalias=kernel.noalias)
    allowed = dict(task.allowed)
    return tuple(name for name, verdict in verdicts.items() if not isinstance(verdict, Proved) and name not in allowed)


@dataclass(frozen=True, slots=True)
class _Region:
    """The shadow memory of one array in one task: where each element's words are, and where it begins; None for a slot."""

    words: Words
    begin: ir.Var
    param: ir.ArrayParam | None


class _Watcher:
    """``sites`` numbers all checks of the kernel."""

    def __init__(
        self, kernel: ir.Kernel, watched: Sequence[Sequence[str]], reported: Callable[[str, Index], Index]
    ) -> None:
        self.kernel, self.watched, self.reported = kernel, watched, reported
        self.sites = {site: number for number, site in enumerate(kernel.sites)}
        self.params = kernel.arrays
        self.at_once = any(isinstance(step, Fork) for step in steps_of(kernel.flow))
        self.begin = self.end = At(kernel.span).const(0, i64) if kernel.shadow is None else kernel.shadow
        self.tasks: list[ir.Task] = []
        self.numbers: dict[int, tuple[int, ...]] = {}

    def run(self) -> ir.Kernel:
        for number, (task, names) in enumerate(zip(self.kernel.tasks, self.watched, strict=True)):
            first = len(self.tasks)
            if isinstance(task, ir.ParallelTask) and names:
                self.tasks += self.with_clearing(task, names)
            else:
                self.tasks.append(task)
            self.numbers[number] = tuple(range(first, len(self.tasks)))
        kernel, span = self.kernel, self.kernel.span
        present = {param.name for param in kernel.params}
        hidden = (ir.ScalarParam(name, u64, span=span) for name in FAULT_PARAMS if name not in present)
        memory = (
            [] if kernel.shadow is not None else [ir.ArrayParam(SHADOW, array_of(u64, 1, shape=(1 << 48,)), span=span)]
        )
        return replace(
            kernel, tasks=tuple(self.tasks), params=(*kernel.params, *hidden, *memory), sites=tuple(self.sites),
            flow=map_tasks(kernel.flow, self.numbers.__getitem__), shadow=self.end,
        )  # fmt: skip

    def with_clearing(self, task: ir.ParallelTask, names: Sequence[str]) -> Iterator[ir.Task]:
        """A task that clears the shadow memory of ``task``, and ``task`` with its checks.

        Tasks that do not run at once have the same memory.
        """
        at = At(task.span)
        start = self.end if self.at_once else self.begin
        begins: list[ir.Stmt] = []
        regions: dict[str, _Region] = {}
        end = start
        for number, name in enumerate(names):
            begin = ir.Var(f"$shadow{number}", i64)
            begins.append(at.let(begin, end))
            param = self.params.get(name)
            words = words_of(name, None if param is None else param.type, self.kernel.index, at.span)
            regions[name] = _Region(words, begin, param)
            end += regions[name].words.count
        yield _clearing(task, start, end)
        yield _Watched(self.kernel, task, begins, regions, self.sites, self.reported).run()
        self.end = end if self.at_once else maximum(self.end, end)


def _clearing(task: ir.ParallelTask, start: ir.Expr, end: ir.Expr) -> ir.ParallelTask:
    at, var = At(task.span), ir.Var("$word", i64)
    store = at.store(at.element(SHADOW, [at.read(var)], u64), at.const(0, u64))
    return ir.ParallelTask(f"{task.name}_shadow", (at.axis(var, start, end),), at.block([store]), span=task.span)


class _Watched:
    """One task: puts the checks before its accesses."""

    def __init__(
        self, kernel: ir.Kernel, task: ir.ParallelTask, begins: Sequence[ir.Stmt], regions: Mapping[str, _Region],
        sites: dict[Site, int], reported: Callable[[str, Index], Index],
    ) -> None:  # fmt: skip
        self.kernel, self.task, self.begins, self.regions = kernel, task, begins, regions
        self.reported = reported
        self.unread, self.chosen = unread_in(task), chosen_in(task)
        self.later: dict[ir.Var, ir.Stmt] = {}  # loads that are marked where their value is chosen
        iteration = ir.Var("$iteration", u64)
        number, self.loads = number_of_iteration(task)
        self.iteration = At(task.span).let(iteration, number)
        places, self.numbers = {name: self.places(name) for name in regions}, Numbers(task.body)
        self.order = {
            (name, self.numbers[stmt], access): k for name in regions for k, (stmt, access) in enumerate(places[name])
        }
        self.marks = Marks(kernel.name, task, At(task.span).read(iteration), places, sites)

    def run(self) -> ir.ParallelTask:
        body = self.visit(self.task.body)
        assert isinstance(body, ir.Block)
        return replace(self.task, body=replace(body, stmts=(*self.loads, self.iteration, *self.begins, *body.stmts)))

    def places(self, name: str) -> list[tuple[ir.Stmt, ir.Access]]:
        """The accesses to ``name``."""
        found = ((stmt, *each) for stmt in statements(self.task.body) for each in touches(stmt))
        return [(stmt, access) for stmt, place, access in found if name_of(place) == name and self.counts(stmt)]

    def counts(self, stmt: ir.Stmt) -> bool:
        """Whether anything depends on ``stmt``: of a vector, all components are loaded."""
        return not (only_reads(stmt) and self.unread.issuperset(bound_by(stmt)))

    def visit(self, node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Block):
            stmts = [new for stmt in node.stmts for new in self.watched(stmt)]
            return replace(node, stmts=(*stmts, *self.marked_later()))
        return map_children(node, self.visit)

    def watched(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        yield from self.where_chosen(stmt)
        if not is_binding(stmt):  # it may change what the marks name their places by
            yield from self.marked_later()
        waits = [var for var in bound_by(stmt) if var in self.chosen] if only_reads(stmt) else []
        if waits and self.counts(stmt) and any(name_of(place) in self.regions for place, _ in touches(stmt)):
            self.later[waits[0]] = stmt
        else:
            yield from self.marked(stmt)
        new = self.visit(stmt)
        yield new  # type: ignore[misc]  # a statement stays one

    def marked(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """The marks of what ``stmt`` accesses."""
        for place, access in touches(stmt) if self.counts(stmt) else ():
            if name_of(place) in self.regions:
                number = self.order[name_of(place), self.numbers[stmt], access]
                yield from self.marks.before(stmt, access, number, self.place(place, stmt.span))

    def place(self, place: ir.Place, span: Span) -> Place:
        name = name_of(place)
        region, shown = self.regions[name], self.kernel.called(name)
        index = place.index if isinstance(place, ir.Element) else ()
        component = place.component if isinstance(place, ir.Element) else 0
        at = At(span).read(region.begin) + region.words.at(index, component)
        if (param := region.param) is None:
            return Place(name, shown, index, at)
        return Place(name, f"{shown}[]", self.reported(name, index), at, param.offset, param.blocks)

    def where_chosen(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """Marks of loads whose value ``stmt`` chooses, where it does."""
        if not self.later or not (isinstance(stmt, (ir.Let, ir.Assign)) or kind_of(stmt) is ir.Access.WRITE):
            return
        for node in walk(stmt):
            if isinstance(node, ir.VarRead) and node.var in self.later:
                load = self.later.pop(node.var)
                yield At(load.span).when(self.chosen[node.var], self.marked(load))

    def marked_later(self) -> Iterator[ir.Stmt]:
        """Marks of loads that wait for their choice, which does not come in time."""
        while self.later:
            load = self.later.pop(next(iter(self.later)))
            yield from self.marked(load)
