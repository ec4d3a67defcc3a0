"""``for`` and ``while``: parallel at the top level, sequential inside, unrolled where static.

Owns: Loops.  Imports: ``ir``, ``lang`` and leaves only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from quadpy.dtypes import Scalar, u64
from quadpy.ir.blocks import DEFAULT_BLOCK
from quadpy.ir.nodes import Axis, Binary, BinOp, Block, Expr, For, ParallelFor, Var, VarRead, While
from quadpy.lang.builtins import BUILTINS
from quadpy.lang.endless import never_ends
from quadpy.lang.ranges import Grouped, NdRange
from quadpy.lang.state import MutableVar
from quadpy.lang.statements import Statements, StaticBreak, StaticContinue
from quadpy.lang.values import ArrayRef, Value, Vec, holds_runtime, is_runtime, shape_text
from quadpy.source import Span

__all__ = ["Loops"]

_Bounds = list[tuple[Value, Value, Value]]


class Loops(Statements):
    """Loops."""

    config: dict[str, Any]

    def loop_config(self, call: ast.Call) -> None:
        """``qp.loop_config(block_dim=128)``: for the loop that follows."""
        span, known = self.span(call), ("block_dim", "serialize", "name", "parallelize", "block_dim_adaptive")
        if call.args:
            self.fail_type("loop_config takes keyword arguments only", span)
        for keyword in call.keywords:
            if keyword.arg not in known:
                self.fail_type(f"loop_config has no option {keyword.arg!r}", span, f"there are {', '.join(known[:3])}")
            value = self.expr(keyword.value)
            if holds_runtime(value):
                self.fail_type(f"{keyword.arg} is known at compile time", span)
            self.config[keyword.arg] = value
        if not isinstance(self.config.get("serialize", False), (bool, int)):
            self.fail_type(f"serialize is True or False, not {shape_text(self.config['serialize'])}", span)
        if not isinstance(self.config.get("name", ""), str):
            self.fail_type(f"name is a string, not {shape_text(self.config['name'])}", span)
        block_dim = self.config.get("block_dim")
        if block_dim is not None and not (isinstance(block_dim, int) and 1 <= block_dim <= 1024):
            self.fail_type(f"block_dim is a number of threads from 1 to 1024, not {block_dim!r}", span)

    def stmt_For(self, node: ast.For) -> bool | None:
        config, self.config = self.config, {}
        if node.orelse:
            self.fail_syntax("a loop has no else in the kernel language", self.span(node))
        items = self.iterable(node.iter)
        if isinstance(items, (tuple, list, range, zip, enumerate, reversed)):
            return self.unrolled(node, items)
        grouped = isinstance(items, Grouped)
        bounds = self.bounds(items, self.span(node.iter))
        if self.at_top_level() and not config.get("serialize"):
            self.parallel(node, bounds, grouped, config)
        else:
            self.sequential(node, bounds, grouped)
        return None

    def iterable(self, node: ast.expr) -> Value:
        """What the loop runs over; a run-time ``range`` comes as bounds."""
        if isinstance(node, ast.Call) and self.static_object(node.func) is range:
            if node.keywords:
                self.fail_syntax("range takes no keywords", self.span(node))
            args = self.items(node.args)
            if not 1 <= len(args) <= 3:
                self.fail_type(f"range takes 1 to 3 arguments, not {len(args)}", self.span(node))
            start, stop = (0, args[0]) if len(args) == 1 else args[:2]
            step = args[2] if len(args) == 3 else 1
            if step == 0 and isinstance(step, int):
                self.fail_type("the step of a range is not 0", self.span(node))
            return _Range(start, stop, step)
        if isinstance(node, ast.Call) and self.static_object(node.func) is BUILTINS["static"]:
            value = self.expr(node)
            if isinstance(value, ArrayRef):
                self.fail_type("an array cannot be unrolled", self.span(node))
            return self.python_call(list, [value], {}, self.span(node))
        value = self.expr(node)
        return list(value.elems) if isinstance(value, Vec) else value

    def bounds(self, items: Value, span: Span) -> _Bounds:
        """Start, stop and step of each axis."""
        if isinstance(items, Grouped):
            items = items.over
        if isinstance(items, _Range):
            return [(items.start, items.stop, items.step)]
        if isinstance(items, NdRange):
            return [(a, b, 1) for a, b in items.bounds]
        if isinstance(items, ArrayRef):
            if not items.type.ndim:
                self.fail_type("an array of no axes has nothing to loop over", span, "its one element is x[None]")
            offsets = items.offset or (0,) * items.type.ndim
            extents = [self.extent(items, axis, span) for axis in range(items.type.ndim)]
            return [(o, self.binary(ast.Add, e, o, span) if o else e, 1) for o, e in zip(offsets, extents, strict=True)]
        self.fail_type(f"a loop cannot run over {shape_text(items)}", span,
                       "there are range, qp.ndrange, qp.grouped, arrays, and qp.static(…) of a Python sequence")  # fmt: skip

    def axis_type(self, bounds: tuple[Value, ...], span: Span) -> Scalar:
        for bound in bounds:
            if (is_runtime(bound) and bound.type.is_float) or isinstance(bound, float):
                self.fail_type("the bounds of a loop are integers", span, "cast them: qp.i32(...)")
        return self.wide_enough([b.type for b in bounds if is_runtime(b)])

    def axes(self, names: list[str], bounds: _Bounds, span: Span) -> list[Axis]:
        """One axis a loop variable."""
        made = []
        for name, ends in zip(names, bounds, strict=True):
            type = self.axis_type(ends, span)
            start, stop, step = (self.build.freeze(self.convert(end, type, span)) for end in ends)
            made.append(Axis(self.build.var(name, type), start, stop, step, span=span))
        return made

    def target_names(self, node: ast.For, count: int, grouped: bool) -> list[str]:
        """The names of the loop variables; one name stands for all of them where the loop is grouped."""
        target = node.target
        if isinstance(target, ast.Name):
            if not grouped and count > 1:
                self.fail_type(f"this loop has {count} indices and one name", self.span(target),
                               "name each index, or loop over qp.grouped(…)")  # fmt: skip
            self.check_fresh(target)
            return [target.id] * count
        if not isinstance(target, ast.Tuple) or not all(isinstance(e, ast.Name) for e in target.elts):
            self.fail_syntax("a loop variable is a name or a tuple of names", self.span(target))
        names = [e.id for e in target.elts if isinstance(e, ast.Name)]
        if len(names) != count or grouped:
            self.fail_type(f"this loop has {count} indices, not {len(names)}", self.span(target))
        for element in target.elts:
            self.check_fresh(element)
        return names

    def check_fresh(self, target: ast.expr) -> None:
        """A loop would leave its last index in a variable of that name, in Python; here an index ends with its loop."""
        assert isinstance(target, ast.Name)
        if target.id != "_" and isinstance(self.frame.env.get(target.id), (MutableVar, ArrayRef)):
            self.fail_type(f"{target.id!r} is a variable already, and an index ends with its loop", self.span(target),
                           "give the index a name of its own")  # fmt: skip

    def bind_axes(self, node: ast.For, variables: list[Var], grouped: bool) -> None:
        """The loop variables in the body; those that the body assigns are variables of their own."""
        span, reads = self.span(node.target), [VarRead(v, span=self.span(node.target)) for v in variables]
        stored = self.stored(node.body, self.frame.source)
        if grouped:
            assert isinstance(node.target, ast.Name)
            self.bind_index(node.target.id, Vec((len(reads),), tuple(reads)), stored, span)
            return
        names = [node.target] if isinstance(node.target, ast.Name) else node.target.elts  # type: ignore[attr-defined]
        for name, read in zip(names, reads, strict=True):
            self.bind_index(name.id, read, stored, span)

    def bind_index(self, name: str, value: Value, stored: Any, span: Span) -> None:
        if name in stored:
            self.declare(name, value, span)
        else:
            self.frame.env[name] = value

    def parallel(self, node: ast.For, bounds: _Bounds, grouped: bool, config: dict[str, Any]) -> None:
        """A top-level loop: what its body binds is private to an iteration."""
        span, frame = self.span(node), self.frame
        axes = self.axes(self.target_names(node, len(bounds), grouped), bounds, span)
        env, unset, singles, draws = dict(frame.env), set(frame.unset), frame.singles, self.draws
        frame.singles, self.draws = self.bound_once(node.body, frame.source), None
        frame.loops.append("parallel")
        self.in_parallel, self.loop_position = True, self.position(axes, span)
        self.streams += 1
        self.block_dim, self.uses_block, self.shared = config.get("block_dim") or DEFAULT_BLOCK, False, []
        try:
            with self.build.block() as stmts:
                self.bind_axes(node, [axis.var for axis in axes], grouped)
                self.block(node.body)
        finally:
            self.in_parallel, self.loop_position = False, None
            frame.loops.pop()
            frame.env, frame.unset, frame.singles, self.draws = env, unset, singles, draws
        body = Block(tuple(stmts), span=span)
        block_dim = self.block_dim if self.uses_block else config.get("block_dim")
        shared = tuple(self.shared)
        self.build.emit(ParallelFor(tuple(axes), body, block_dim, config.get("name"), shared, span=span))

    def position(self, axes: list[Axis], span: Span) -> Expr:
        """The number of an iteration, for random numbers: the indices, row-major."""
        total: Expr | None = None
        for axis in axes:
            index = self.cast(VarRead(axis.var, span=span), u64, span)
            if total is None:
                total = index
                continue
            start = self.cast(axis.start, u64, span)
            extent = Binary(BinOp.SUB, self.cast(axis.stop, u64, span), start, u64, span=span)
            offset = Binary(BinOp.SUB, index, start, u64, span=span)
            total = Binary(BinOp.ADD, Binary(BinOp.MUL, total, extent, u64, span=span), offset, u64, span=span)
        assert total is not None
        return total

    def sequential(self, node: ast.For, bounds: _Bounds, grouped: bool) -> None:
        """A loop of one thread: nested loops, one an axis."""
        span, frame = self.span(node), self.frame
        if len(bounds) > 1 and self.leaves_loop(node):
            self.fail_syntax("break of a loop with several indices", span, "nest loops over range")
        names = self.target_names(node, len(bounds), grouped)
        axes = self.axes(names, bounds, span)
        before, assigned = dict(frame.env), frame.assigned()
        with self.repeating(), self.build.block() as stmts:
            self.bind_axes(node, [axis.var for axis in axes], grouped)
            self.block(node.body)
        self.forget(before, names)
        frame.meet([assigned])  # there may be no iteration
        loop: Any = Block(tuple(stmts), span=span)
        for axis in reversed(axes):
            body = loop if isinstance(loop, Block) else Block((loop,), span=span)
            loop = For(axis.var, axis.start, axis.stop, axis.step, body, span=span)
        self.build.emit(loop)

    @contextmanager
    def repeating(self) -> Iterator[list[set[str]]]:
        """Around the text of a run-time loop; gives what is assigned at each ``break``, once the text is traced."""
        frame = self.frame
        breaks: list[set[str]] = []
        frame.runtime_depth += 1
        frame.loops.append("runtime")
        frame.breaks.append(breaks)
        try:
            yield breaks
        finally:
            frame.runtime_depth -= 1
            frame.loops.pop()
            frame.breaks.pop()

    def forget(self, before: dict[str, Any], names: Sequence[str] = ()) -> None:
        """Ends the bindings that a loop made, ``names`` too, but for variables, which live in the function."""
        frame = self.frame
        kept = {n: v for n, v in frame.env.items() if isinstance(v, MutableVar) and n not in before and n not in names}
        frame.env = {**before, **kept}

    @staticmethod
    def leaves_loop(node: ast.For | ast.While) -> bool:
        """True where a ``break`` belongs to this loop."""
        stack: list[ast.AST] = list(node.body)
        while stack:
            current = stack.pop()
            if isinstance(current, ast.Break):
                return True
            if not isinstance(current, (ast.For, ast.While)):
                stack += ast.iter_child_nodes(current)
        return False

    def unrolled(self, node: ast.For, items: Value) -> bool:
        """A loop at compile time; True where its body returned."""
        frame = self.frame
        frame.loops.append(f"static{frame.runtime_depth}")
        try:
            for item in self.plain_items(items, self.span(node.iter)):
                self.bind_static(node.target, item)
                try:
                    if self.block(node.body):
                        return True
                except StaticContinue:
                    continue
                except StaticBreak:
                    break
        finally:
            frame.loops.pop()
        return False

    def stmt_While(self, node: ast.While) -> bool:
        """True where the loop is endless, and only a return leaves it."""
        if node.orelse:
            self.fail_syntax("a loop has no else in the kernel language", self.span(node))
        span, frame = self.span(node), self.frame
        before, assigned = dict(frame.env), frame.assigned()
        with self.repeating() as breaks:
            with self.build.block() as head:
                test = self.expr(node.test)
                cond = self.truth(test, span)
            with self.build.block() as body:
                self.block(node.body)
        self.forget(before)
        endless = not is_runtime(test) and bool(test)
        frame.meet(breaks if endless else [assigned])
        loop = While(Block(tuple(head), span=span), cond, Block(tuple(body), span=span), span=span)
        if (endless or is_runtime(test)) and never_ends(loop):
            once = "" if endless else " once it has begun: nothing in it changes its condition"
            self.fail_syntax(
                f"this loop never ends{once}", span, "leave it by break or return, or let its condition change"
            )
        self.build.emit(loop)
        return endless and not self.leaves_loop(node)


class _Range:
    """A ``range`` whose bounds may be run-time values."""

    def __init__(self, start: Value, stop: Value, step: Value) -> None:
        self.start, self.stop, self.step = start, stop, step
