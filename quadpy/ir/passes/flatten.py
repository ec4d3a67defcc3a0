"""Branches as selections, for targets whose loops are vectorised.

A branch around the rare case of a function (sine of a huge number) saves a GPU most of its work, but stops a CPU's
vectoriser.  Every operation is defined for every operand, so both sides may be computed.  If both sides store to the
same places, each place is stored to once.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Iterator
from dataclasses import field
from itertools import combinations, product
from typing import Final, TypeVar

from quadpy.core.dtypes import Scalar, u1
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.passes.stores_last import apart
from quadpy.ir.variables import assigned_in
from quadpy.ir.walk import map_children, walk

N = TypeVar("N", bound=ir.Node)
_COMPUTING: Final = (ir.Let, ir.Assign, ir.CallMany)
_MOST_NAMES: Final = 32
"""Names in an index that are followed to their values."""


def flatten_branches(function: ir.Function) -> ir.Function:
    """``function`` without those branches that only compute and assign."""
    return map_children(function, _Flattener().visit)


def flatten_stores(body: ir.Block, *, noalias: bool) -> ir.Block:
    """``body`` without those branches that store to the same places on both sides, and load what is surely there."""
    assigned = assigned_in(body)
    flat = _Flattener(noalias=noalias, stores=True, assigned=assigned).visit(body)
    assert isinstance(flat, ir.Block)
    return flat


@dataclass(slots=True)
class _Side:
    """One side of a branch: what it computes, what variables and places hold after it, and what it loads."""

    stmts: list[ir.Stmt] = field(default_factory=list)
    values: dict[ir.Var, ir.Expr] = field(default_factory=dict)
    stores: dict[ir.Place, ir.Store] = field(default_factory=dict)
    loads: set[ir.Place] = field(default_factory=set)
    names: dict[ir.Var, ir.Expr] = field(default_factory=dict)

    def meant(self, node: N) -> N:
        """``node`` in names from outside of the branch, as both sides know it; large expressions stay as they are."""
        room = _MOST_NAMES

        def outside(inner: ir.Node) -> ir.Node:
            nonlocal room
            if isinstance(inner, ir.VarRead) and inner.var in self.names and room:
                room -= 1
                return outside(self.names[inner.var])
            return map_children(inner, outside)

        return map_children(node, outside)


class _Flattener:
    """Rewrites branches, inner ones first; ``stores``: also those that store."""

    def __init__(self, *, noalias: bool = False, stores: bool = False, assigned: Container[ir.Var] = ()) -> None:
        self.noalias, self.assigned, self.fresh = noalias, assigned, 0
        self.known: frozenset[ir.Place] = frozenset()  # memory that exists, since it was read or written before
        self.kinds = (*_COMPUTING, ir.Load, ir.Store) if stores else _COMPUTING

    def visit(self, node: ir.Node) -> ir.Node:
        if not isinstance(node, ir.Block):
            return map_children(node, self.visit)
        before, stmts = self.known, []
        for stmt in node.stmts:
            for flat in self.statement(map_children(stmt, self.visit)):
                stmts.append(flat)
                if isinstance(flat, (ir.Load, ir.Store)) and self.is_fixed(flat.place):
                    self.known |= {flat.place}
        self.known = before
        return node if tuple(stmts) == node.stmts else ir.Block(tuple(stmts), span=node.span)

    def is_fixed(self, place: ir.Place) -> bool:
        """Whether ``place`` names the same memory everywhere."""
        return not any(isinstance(node, ir.VarRead) and node.var in self.assigned for node in walk(place))

    def statement(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if not isinstance(stmt, ir.If) or not all(
            isinstance(s, self.kinds) for s in stmt.then.stmts + stmt.orelse.stmts
        ):
            yield stmt
            return
        then, orelse, span = self.side(stmt.then), self.side(stmt.orelse), stmt.span
        if not self.are_stored_alike(then, orelse):
            yield stmt
            return
        cond = self.var("taken", u1)
        yield ir.Let(cond, stmt.cond, span=span)
        yield from then.stmts + orelse.stmts
        chosen: list[ir.Stmt] = []
        for place, store in then.stores.items():  # before the assignments, which may change indices
            value = yield from self.merged("stored", cond, store.value, orelse.stores[place].value)
            chosen.append(ir.Store(store.place, value, span=store.span))
        for var in {**then.values, **orelse.values}:
            before = ir.VarRead(var, span=span)
            merged = yield from self.merged(
                var.name, cond, then.values.get(var, before), orelse.values.get(var, before)
            )
            chosen.append(ir.Assign(var, merged, span=span))
        yield from chosen

    def merged(self, name: str, cond: ir.Var, then: ir.Expr, orelse: ir.Expr) -> Generator[ir.Stmt, None, ir.VarRead]:
        """A new name for one of the two values."""
        var = self.var(name, then.type)
        selected = ir.Select(ir.VarRead(cond, span=then.span), then, orelse, then.type, span=then.span)
        yield ir.Let(var, selected, span=then.span)
        return ir.VarRead(var, span=then.span)

    def side(self, block: ir.Block) -> _Side:
        """One side, with its assignments as new names."""
        side = _Side()

        def now(node: ir.Node) -> ir.Node:
            if isinstance(node, ir.VarRead) and node.var in side.values:
                return side.values[node.var]
            return map_children(node, now)

        for stmt in block.stmts:
            renamed = map_children(stmt, now)
            match renamed:
                case ir.Assign(var=var, value=value):
                    own = self.var(var.name, var.type)
                    renamed = ir.Let(own, value, span=renamed.span)
                    side.values[var] = ir.VarRead(own, span=renamed.span)
                case ir.Store(place=place, value=value):
                    own = self.var("stored", value.type)
                    held = ir.VarRead(own, span=renamed.span)
                    side.stores[side.meant(place)] = ir.Store(place, held, span=renamed.span)
                    renamed = ir.Let(own, value, span=renamed.span)
                case ir.Load(var=var, place=place) if (stored := side.stores.get(side.meant(place))) is not None:
                    renamed = ir.Let(var, stored.value, span=renamed.span)
                case ir.Load(place=place):
                    side.loads.add(side.meant(place))
            if isinstance(renamed, ir.Let):
                side.names[renamed.var] = renamed.value
            side.stmts.append(renamed)
        return side

    def are_stored_alike(self, then: _Side, orelse: _Side) -> bool:
        """Whether both sides store to the same places, all of them distinct, and load only from memory that exists."""
        places, others = then.stores.keys(), (then.loads | orelse.loads) - then.stores.keys()
        pairs = (*combinations(places, 2), *product(places, others))
        return (
            places == orelse.stores.keys()
            and others <= self.known
            and all(apart(a, b, disjoint=self.noalias) for a, b in pairs)
        )

    def var(self, name: str, dtype: Scalar) -> ir.Var:
        self.fresh += 1
        return ir.Var(f"{name}$flat{self.fresh}", dtype)
