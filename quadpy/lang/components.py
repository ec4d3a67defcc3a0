"""Variables as places: whole, or some of their components.  Owns: Components.  Imports: ``ir``, ``lang``, leaves only.

What is written is what the target names, and nothing else.  Iterations of a parallel loop, and sections that run at
once, share the variables from outside of them: to load a vector, change a component and store it whole would take back
what others stored meanwhile.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeGuard

from quadpy.dtypes import u1
from quadpy.ir.nodes import Block, CmpOp, Compare, Expr, If, Store
from quadpy.lang.arrays import Step
from quadpy.lang.calls import Calls
from quadpy.lang.names import base_name
from quadpy.lang.promotion import literal
from quadpy.lang.state import ChosenPart, MutableVar
from quadpy.lang.values import ArrayRef, ElementRef, Value, Vec, shape_text
from quadpy.source import Span

__all__ = ["Components"]


class Components(Calls):
    """What an assignment writes."""

    def place(self, node: ast.expr) -> ElementRef | MutableVar | ChosenPart | None:
        """The memory that ``node`` names; None for a variable of this thread."""
        if self.is_element(node):
            return self.element(node)
        match node:
            case ast.Name(id=name):
                bound = self.frame.env.get(name)
                if self.in_memory(bound):
                    self.check_assigned(name, self.span(node))
                    return bound
                if bound is None or isinstance(bound, ArrayRef):
                    self.check_augmented(node)
            case _ if base := base_name(node):
                bound = self.frame.env.get(base)
                if self.in_memory(bound) and bound.shape:
                    self.check_assigned(base, self.span(node))
                    return self.part(bound, node)
        return None

    def expr_Subscript(self, node: ast.Subscript) -> Value:
        """Of a variable, only the component or row that is asked for is read."""
        bound = self.frame.env.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if not isinstance(bound, MutableVar) or not bound.shape:
            return super().expr_Subscript(node)
        span = self.span(node)
        self.check_assigned(ast.unparse(node.value), self.span(node.value))
        index = self.spread_indices(self.indices(node.slice), span)
        stand_in = Vec(bound.shape, (self.read_var(bound.vars[0], span),) * len(bound.vars))
        if len(index) > len(bound.shape) or not all(isinstance(i, int) for i in index):
            return self.vec_index(self.read(bound, span), index, span)
        return self.read(self.part_at(bound, stand_in, index, span), span)  # type: ignore[arg-type]

    def in_memory(self, bound: object) -> TypeGuard[MutableVar]:
        """Whether ``bound`` is a variable that is a place in memory here, which other iterations reach as well."""
        return isinstance(bound, MutableVar) and bound.shared and self.in_parallel

    def check_augmented(self, node: ast.Name) -> None:
        value = self.lookup(node.id, self.span(node))
        if isinstance(value, ArrayRef):
            self.fail_type(f"{node.id!r} is an array; an element of it is meant", self.span(node))

    def assign_component(self, name: str, target: ast.expr, value: Value, span: Span) -> None:
        """``v[i] = x``, ``m[i, j] = x``, ``m[i] = w``, ``v.xy = w`` on a local vector."""
        self.write_part(name, self.named_part(name, target), value, span)

    def named_part(self, name: str, target: ast.expr) -> MutableVar | ChosenPart:
        """The part of the local vector ``name`` that ``target`` names, to be read and written."""
        bound, span = self.frame.env.get(name), self.span(target)
        if bound is None:
            self.lookup(name, span)
            self.fail_type(f"{name!r} belongs to the module around the kernel, and is constant here", span,
                           f"copy it first: {name}_ = {name} + 0")  # fmt: skip
        if isinstance(bound, Vec):
            self.assign_name(name, bound, span)
            bound = self.frame.env[name]
        if not isinstance(bound, MutableVar) or not bound.shape:
            self.fail_type(f"{name!r} is no vector whose components could be set", span)
        self.check_assigned(name, span)
        return self.part(bound, target)

    def read_part(self, part: MutableVar | ChosenPart, span: Span) -> Value:
        """What a part holds; 0 where none is chosen."""
        if isinstance(part, MutableVar):
            return self.read(part, span)
        held: list[Expr] = [literal(0, var.type, span) for var in part.vars]
        for number, one in enumerate(part.parts):
            hit = self.is_chosen(part, number, span)
            value = self.read(one, span)
            elems = value.elems if isinstance(value, Vec) else (value,)
            held = [self.select(hit, x, h, span) for x, h in zip(elems, held, strict=True)]
        shape = part.parts[0].shape
        elems = tuple(self.build.let(e) for e in held)
        return Vec(shape, elems) if shape else elems[0]

    def write_part(self, name: str, part: MutableVar | ChosenPart, value: Value, span: Span) -> None:
        """Assigns a variable called ``name``, or a part of it."""
        if part is self.frame.env.get(name):
            self.assign_name(name, value, span)
            return
        one = part if isinstance(part, MutableVar) else part.parts[0]
        items = self.components_for(value, one.shape or (), one.vars[0].type, span)
        if isinstance(part, MutableVar):
            self.write(part, items, span)
        else:
            self.write_chosen(part, [self.build.let(item) for item in items], span)

    def part(self, bound: MutableVar, target: ast.expr) -> MutableVar | ChosenPart:
        """The components of the vector ``bound`` that ``target`` names."""
        span = self.span(target)
        assert isinstance(target, (ast.Attribute, ast.Subscript))
        if not isinstance(target.value, ast.Name):
            outer = self.part(bound, target.value)
            if isinstance(outer, ChosenPart) or not outer.shape:
                what = "a row chosen at run time" if isinstance(outer, ChosenPart) else "a number"
                self.fail_type(f"no part of {what} can be named", span, "of a matrix it is m[i, j]")
            bound = outer
        shape = bound.shape or ()
        stand_in = Vec(shape, tuple(self.read_var(var, span) for var in bound.vars))
        step: Step
        if isinstance(target, ast.Attribute):
            step = target.attr
        else:
            step = self.spread_indices(self.indices(target.slice), span)
            if not all(isinstance(i, (int, slice)) for i in step):
                if len(step) not in (1, len(shape)) or any(isinstance(i, slice) for i in step):
                    self.fail_type(f"this names no component and no row of a {shape_text(stand_in)}", span)
                return self.part_at(bound, stand_in, step, span)
        found = self.part_of(stand_in, step, span)
        numbers = [stand_in.elems.index(e) for e in (found.elems if isinstance(found, Vec) else (found,))]
        if len({*numbers}) < len(numbers):
            self.fail_type("this names a component twice", span, "what is written is named once")
        return bound.part(numbers, found.shape if isinstance(found, Vec) else None)

    def part_at(
        self, bound: MutableVar, stand_in: Vec, index: tuple[Value, ...], span: Span
    ) -> MutableVar | ChosenPart:
        """The component of ``bound`` at ``index``, or the row; ``stand_in`` has its type and shape."""
        shape = stand_in.shape
        row = shape[1:] if len(index) < len(shape) else ()
        size = row[0] if row else 1
        starts = Vec(shape[: len(index)], stand_in.elems[::size])
        at = self.flat_index(starts, index, span)
        if isinstance(at, int):
            return bound.part(range(at * size, (at + 1) * size), row or None)
        parts = tuple(bound.part(range(k, k + size), row or None) for k in range(0, len(bound.vars), size))
        return ChosenPart(parts, self.build.let(at))

    def write(self, part: MutableVar, items: Sequence[Expr], span: Span) -> None:
        """``part`` = ``items``, which are all evaluated before the first is written."""
        items = [self.build.freeze(item) for item in items] if len(items) > 1 else items
        for var, item in zip(part.vars, items, strict=True):
            if self.in_memory(part):
                self.build.emit(Store(self.slot(var, span), item, span=span))
            else:
                self.build.assign(var, item, span)

    def write_chosen(self, chosen: ChosenPart, items: Sequence[Expr], span: Span) -> None:
        """In memory only what is chosen is written; of a variable of this thread, which is in registers, all is."""
        for number, part in enumerate(chosen.parts):
            hit = self.is_chosen(chosen, number, span)
            if self.in_memory(part):
                with self.build.block() as stmts:
                    self.write(part, items, span)
                self.build.emit(If(hit, Block(tuple(stmts), span=span), Block((), span=span), span=span))
            else:
                kept = [self.read_var(var, span) for var in part.vars]
                self.write(part, [self.select(hit, x, old, span) for x, old in zip(items, kept, strict=True)], span)

    def is_chosen(self, chosen: ChosenPart, number: int, span: Span) -> Expr:
        return Compare(CmpOp.EQ, chosen.at, literal(number, chosen.at.type, span), u1, span=span)

    # Supplied by the classes that derive from this one.
    def assign_name(self, name: str, value: Value, span: Span) -> None:
        raise NotImplementedError
