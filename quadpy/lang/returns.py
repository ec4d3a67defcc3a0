"""What inlined functions return: from any place, in the type in which all returns meet.

Owns: Returns.  Imports: ``ir``, ``lang`` and leaves only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from typing import Any

from quadpy.dtypes import Scalar, promote, u1
from quadpy.ir.nodes import Assign, Block, Const, Expr, Leave, Node, Region, Return, Stmt, Var, VarRead
from quadpy.ir.walk import map_children, walk
from quadpy.lang.expressions import Expressions
from quadpy.lang.state import Frame
from quadpy.lang.values import Value, Vec, is_number, is_runtime, shape_text
from quadpy.source import Span

__all__ = ["Returns"]


class Returns(Expressions):
    """``return`` in functions that are inlined."""

    def return_value(self, value: Value, span: Span) -> None:
        """``return value``: the value itself where nothing else returns, else through variables."""
        frame = self.frame
        if self.is_library and len(self.frames) == 1:
            self.build.emit(Return(tuple(self.flatten(value, span)), span=span))
            return
        if frame.loops and frame.loops[0] == "parallel":
            self.fail_syntax("a parallel loop cannot return", span,
                             "use continue, or put qp.loop_config(serialize=True) before the loop")  # fmt: skip
        value = self.annotated(value, self.deps.annotation(frame.source, "return"), span)
        if frame.runtime_depth == 0 and not frame.leaves:
            frame.returned = self.freeze_all(value)
            return
        self.keep_result(frame, value, span)
        if frame.runtime_depth:
            frame.leaves += 1
            if frame.leaves == 1:
                frame.label = self.build.var(frame.label, u1).name
            self.build.emit(Leave(frame.label, span=span))

    def annotated(self, value: Value, annotation: Any, span: Span, what: str = "the result") -> Value:
        """``value`` cast to what an annotation says: a scalar type, a vector type, or a tuple of these.

        Raises:
            KernelTypeError: ``value`` has another shape.
        """
        wanted = self.scalar_type(annotation)
        if isinstance(wanted, Scalar):
            if not (is_runtime(value) or is_number(value)):
                self.fail_type(f"{what} is {wanted}, not {shape_text(value)}", span)
            return self.cast(value, wanted, span)
        if getattr(annotation, "__quadpy_constructor__", None) == "type":
            made = self.vector(value, span, self.scalar_type(annotation.dtype)) if _has_items(value) else value
            shape = tuple(annotation.element_shape)
            if not isinstance(made, Vec) or made.shape != shape:
                wanted = f"{annotation.dtype} {'x'.join(map(str, shape))}"
                self.fail_type(f"{what} is {wanted}, not {shape_text(made)}", span)
            return made
        parts = annotation if isinstance(annotation, tuple) else getattr(annotation, "__args__", ())
        if isinstance(value, Vec) and len(value.shape) == 1 and len(parts) == len(value.elems):
            value = value.elems
        if isinstance(value, (tuple, list)) and len(parts) == len(value):
            return tuple(self.annotated(item, part, span, what) for item, part in zip(value, parts, strict=True))
        return value

    def keep_result(self, frame: Frame, value: Value, span: Span) -> None:
        """Assigns the result to variables of its own types; ``leave`` brings those of all returns together."""
        flat = [self.build.freeze(e) for e in self.flatten(value, span)]
        literals = zip(flat, self.leaves(value), strict=True)
        frame.literals.update({id(e): e for e, leaf in literals if is_number(leaf) and isinstance(e, Const)})
        outline = _outline(value)
        if frame.results and outline != frame.outline:
            self.fail_type("the returns of a function give values of one shape", span,
                           "each path returns, and each return gives as many numbers as the others")  # fmt: skip
        if not frame.results or [e.type for e in flat] != [var.type for var in frame.results[-1]]:
            frame.results.append([self.build.var("result", e.type, mutable=True) for e in flat])
        frame.outline = outline
        for var, item in zip(frame.results[-1], flat, strict=True):
            self.build.assign(var, item, span)

    def leave(self, frame: Frame, stmts: list[Stmt], span: Span, *, ends: bool) -> Value:
        """Emits the traced body and gives what it returned; ``ends`` where no path runs off its end."""
        if not frame.leaves:
            self.build.splice(stmts)
            return frame.returned
        if frame.outline is not _NOTHING and not ends:
            self.fail_type(f"a path through {frame.source.name} ends without a return", frame.source.span,
                           "end the function with a return that gives a value, too")  # fmt: skip
        first = next(k for k, stmt in enumerate(stmts) if _leaves(stmt, frame.label))
        self.build.splice(stmts[:first])  # which always runs, and may hold parallel loops
        body, final = self.meeting_results(frame, Block(tuple(stmts[first:]), span=span))
        self.build.emit(Region(frame.label, body, span=span))
        return _rebuild(frame.outline, iter([VarRead(var, span=span) for var in final]))

    def meeting_results(self, frame: Frame, body: Block) -> tuple[Block, list[Var]]:
        """``body`` with one variable for each result, of the type in which its returns meet."""
        if len(frame.results) == 1:
            return body, frame.results[0]
        types = [reduce(promote, (var.type for var in column)) for column in zip(*frame.results, strict=True)]
        final = [self.build.var("result", type, mutable=True) for type in types]
        replaced = {old: new for row in frame.results for old, new in zip(row, final, strict=True)}

        def visit(node: Node) -> Node:
            if isinstance(node, Assign) and (var := replaced.get(node.var)):
                literal = frame.literals.get(id(node.value))
                value = node.value if literal is None else literal.value
                return Assign(var, self.cast(value, var.type, node.span), span=node.span)
            return map_children(node, visit)

        return map_children(body, visit), final

    def flatten(self, value: Value, span: Span) -> list[Expr]:
        """The scalars of a number, vector, or tuple of them."""
        return [self.scalar(leaf, span) for leaf in self.leaves(value)]

    def leaves(self, value: Value) -> list[Value]:
        """As ``flatten``, but literals have no type yet."""
        if value is None:
            return []
        if isinstance(value, (tuple, list)):
            return [leaf for item in value for leaf in self.leaves(item)]
        return list(value.elems) if isinstance(value, Vec) else [value]


def _has_items(value: Value) -> bool:
    return isinstance(value, (Vec, tuple, list))


def _leaves(stmt: Stmt, label: str) -> bool:
    return any(isinstance(node, Leave) and node.label == label for node in walk(stmt))


_NOTHING = "nothing"


def _outline(value: Value) -> Any:
    """The shape of a returned value: None for a scalar, a Vec's shape, a list for a tuple."""
    if value is None:
        return _NOTHING
    if isinstance(value, (tuple, list)):
        return [_outline(item) for item in value]
    return value.shape if isinstance(value, Vec) else None


def _rebuild(outline: Any, scalars: Iterator[Expr]) -> Value:
    if outline is _NOTHING:
        return None
    if isinstance(outline, list):
        return tuple(_rebuild(item, scalars) for item in outline)
    if outline is None:
        return next(scalars)
    return Vec(outline, tuple(next(scalars) for _ in range(math.prod(outline))))
