"""Elements in variables: where an iteration overwrites an element, it reads memory once, and the variable from then on.

The old values then follow from what the arrays held before the kernel: nothing that the kernel has stored is read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple, TypeAlias

from quadpy.core.dtypes import u1
from quadpy.ir import nodes as ir
from quadpy.ir.build import At
from quadpy.ir.grad.indices import Access, AnyLoop, Indices, Linear, accesses_in
from quadpy.ir.grad.maths import Names
from quadpy.ir.variables import reads_of, set_in
from quadpy.ir.walk import map_children, walk

Known: TypeAlias = "dict[Held, bool | None]"
"""Whether the variable has the element at this point; None where that differs between paths."""


class Held(NamedTuple):
    """The variable ``var`` has the element if ``has`` is true; both begin anew in each turn of the first ``depth`` loops."""

    var: ir.Var
    has: ir.Var
    depth: int


class Holding:
    """``kernel`` with a variable for each element that an iteration overwrites, if no other index may mean this element.

    reads  what is held, by the variables of the loads that read it from memory
    """

    def __init__(self, kernel: ir.Kernel, names: Names) -> None:
        self.given, self.names, self.indices = kernel, names, Indices(kernel.body)
        self.reads: dict[ir.Var, Held] = {}
        self.held: dict[int, Held] = {}  # by the ``id`` of an access
        self.begins: dict[int, list[Held]] = {}  # by the ``id`` of a block
        loops = [node for node in walk(kernel.body) if isinstance(node, ir.ParallelFor)]
        for body in [loop.body for loop in loops] or [kernel.body]:
            for accesses in self.elements(body) if kernel.noalias else ():
                self.hold(body, accesses)
        self.kernel = replace(kernel, body=self.block(kernel.body, {}))

    def holder_of(self, stmt: ir.Stmt) -> Held | None:
        """What a load or store of ``kernel`` is about."""
        match stmt:
            case ir.Load(var=var):
                return self.reads.get(var)
            case ir.Store(value=ir.VarRead(var=var)):
                return next((held for held in self.reads.values() if held.var == var), None)
        return None

    def elements(self, body: ir.Block) -> Iterator[list[Access]]:
        """The accesses to each element that is overwritten, where two indices certainly mean one element, or two."""
        arrays: dict[tuple[str, int], list[Access]] = {}
        for access in accesses_in(body):
            arrays.setdefault((access.place.array, access.place.component), []).append(access)
        for found in arrays.values():
            by_index: dict[tuple[Linear | None, ...], list[Access]] = {}
            for access in found:
                by_index.setdefault(tuple(map(self.indices.of, access.place.index)), []).append(access)
            places = [same[0].place for same in by_index.values()]
            if (
                all(isinstance(each.stmt, (ir.Load, ir.Store)) for each in found)
                and not any(None in index for index in by_index)
                and all(self.indices.differ(a, b) for a, b in combinations(places, 2))
            ):
                yield from (same for same in by_index.values() if any(isinstance(each.stmt, ir.Store) for each in same))

    def hold(self, body: ir.Block, accesses: list[Access]) -> None:
        """Holds an element from the beginning of the innermost loop on which its index depends."""
        first, *others = accesses
        around = [
            loop for k, loop in enumerate(first.loops) if all(each.loops[k : k + 1] == (loop,) for each in others)
        ]
        used = self.uses(first.place)
        depth = max((k for k, loop in enumerate(around, 1) if used & {*_bound_in(loop)}), default=0)
        type = first.place.type
        held = Held(self.names.fresh("held", type), self.names.fresh("has", u1), depth)
        self.held |= {id(each.stmt): held for each in accesses}
        self.begins.setdefault(id(around[depth - 1].body if depth else body), []).append(held)

    def uses(self, node: ir.Node) -> set[ir.Var]:
        """The variables that ``node`` depends on, through definitions."""
        found = reads_of(node)
        return found.union(*(self.uses(self.indices.lets[var]) for var in found if var in self.indices.lets))

    # ------------------------------------------------------------------ writing

    def block(self, block: ir.Block, known: Known) -> ir.Block:
        at, out = At(block.span), list[ir.Stmt]()
        for held in self.begins.get(id(block), ()):
            known[held] = False
            out.append(at.assign(held.has, at.const(False, u1)))
        for stmt in block.stmts:
            out += self.stmt(stmt, known)
        return replace(block, stmts=tuple(out))

    def stmt(self, stmt: ir.Stmt, known: Known) -> Iterator[ir.Stmt]:
        if (held := self.held.get(id(stmt))) is None:
            yield self.inside(stmt, known)
            return
        at = At(stmt.span)
        now = at.assign(held.has, at.const(True, u1))
        if isinstance(stmt, ir.Store):
            yield from (at.assign(held.var, stmt.value), now, replace(stmt, value=at.read(held.var)))
        else:
            assert isinstance(stmt, ir.Load)
            if not known[held]:
                read = self.names.fresh(held.var.name, held.var.type)
                self.reads[read] = held
                first: list[ir.Stmt] = [at.load(read, stmt.place), at.assign(held.var, at.read(read)), now]
                yield from first if known[held] is False else [at.when(at.read(held.has), (), first)]
            yield at.let(stmt.var, at.read(held.var))
        known[held] = True

    def inside(self, stmt: ir.Stmt, known: Known) -> ir.Stmt:
        """``stmt`` with other blocks in it; except for the sides of a branch, each may run or not."""
        start = {held: has or None for held, has in known.items()} if isinstance(stmt, (ir.For, ir.While)) else known
        ends = [] if isinstance(stmt, ir.If) else [dict(known)]

        def visit(node: ir.Node) -> ir.Node:
            if not isinstance(node, ir.Block):
                return node
            ends.append(dict(start))
            return self.block(node, ends[-1])

        made = map_children(stmt, visit)
        for held in known:
            met = {end[held] for end in ends}
            known[held] = met.pop() if len(met) == 1 else None
        return made


def _bound_in(loop: AnyLoop) -> Iterator[ir.Var]:
    yield from set_in(loop.body)
    yield from (node.var for node in walk(loop) if isinstance(node, ir.For))
