"""The iteration space of a ``for``, and its loop variables."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from quadpy.core.dtypes import Scalar, i64
from quadpy.core.light import dataclass
from quadpy.core.messages import counted, shown, with_article
from quadpy.core.source import Span
from quadpy.errors import KernelRangeError, KernelTypeError
from quadpy.intrinsics import BUILTINS
from quadpy.ir import nodes as ir
from quadpy.lang.arrays import extent_of
from quadpy.lang.checks import require
from quadpy.lang.compile_time import python_call
from quadpy.lang.context import Trace
from quadpy.lang.displays import display_items
from quadpy.lang.operators import binary
from quadpy.lang.ranges import Range
from quadpy.lang.scalars import convert, decide
from quadpy.lang.scope import static_object
from quadpy.lang.sparse_places import is_node
from quadpy.lang.values import ArrayRef, Container, Value, Vec, holds_runtime, is_runtime, shape_text
from quadpy.lang.variables import bind_index, release_index


def _wide_enough(t: Trace, types: list[Scalar]) -> Scalar:
    """The type of a loop variable over bounds of ``types``: the index type, or i64 for 64-bit bounds."""
    return i64 if any(type.bits == 64 for type in types) else t.options.index


@dataclass(frozen=True)
class NdRange:
    """The product of ranges, the last fastest; a product of numbers where all bounds are known at compile time."""

    bounds: tuple[tuple[ir.Expr | int, ir.Expr | int], ...]
    order: tuple[int, ...] | None = None
    """The ranges from the outermost loop to the innermost; None for the order in which they are given."""

    def __quadpy_parts__(self) -> Value:
        return self.bounds

    @staticmethod
    def of(args: list[Value], span: Span, order: Value = None) -> NdRange:
        """Each argument is an extent, or a pair ``(start, stop)``; ``order`` names each once, by its number."""
        bounds: list[tuple[ir.Expr | int, ir.Expr | int]] = []
        for arg in args:
            ends = [
                b for b in (arg if isinstance(arg, (tuple, list)) else (0, arg)) if is_runtime(b) or isinstance(b, int)
            ]
            if len(ends) != 2 or (isinstance(arg, (tuple, list)) and len(arg) != 2):
                raise KernelTypeError(f"ndrange takes integers and pairs of integers, not {shape_text(arg)}", span)
            bounds.append((ends[0], ends[1]))
        if order is None:
            return NdRange(tuple(bounds))
        if not isinstance(order, (tuple, list)) or sorted(order) != list(range(len(bounds))):
            raise KernelTypeError(
                f"ndrange: axes={shape_text(order) if holds_runtime(order) else shown(order)} must name each of the "
                f"{len(bounds)} ranges once, by number", span, hint="such as axes=(1, 0)",
            )  # fmt: skip
        return NdRange(tuple(bounds), tuple(order))

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """At compile time, inside ``static``."""
        axes = [range(a, b) for a, b in self.bounds if isinstance(a, int) and isinstance(b, int)]
        if len(axes) < len(self.bounds):
            raise TypeError("the bounds of a static ndrange must be known at compile time")
        order = self.order or tuple(range(len(axes)))
        visits = itertools.product(*(axes[k] for k in order))
        return (tuple(at[order.index(k)] for k in range(len(axes))) for at in visits)


@dataclass(frozen=True)
class Grouped:
    """The indices of an array, a field or an ``ndrange``, as one vector."""

    over: Value

    def __quadpy_parts__(self) -> Value:
        return (self.over,)

    def __iter__(self) -> Iterator[list[int]]:
        if not isinstance(self.over, Iterable):
            raise TypeError(f"{shape_text(self.over)} cannot be iterated at compile time")
        return map(list, self.over)


Bounds = list[tuple[Value, Value, Value]]
IndexForm: TypeAlias = Literal["each", "vector", "empty"]
"""What the index of a loop is: a number for each axis, a vector of these, or nothing, where there is no axis."""


def iterable(t: Trace, node: ast.expr) -> Value:
    """What the loop runs over; a run-time ``range`` comes as bounds."""
    if isinstance(node, ast.Call) and static_object(t, node.func) is range:
        if node.keywords:
            t.fail_syntax("range takes no keywords", t.span(node))
        return Range.of(t, display_items(t, node.args), t.span(node))
    if isinstance(node, ast.IfExp):
        cond, span = t.expr(node.test), t.span(node)
        if is_runtime(cond):
            t.fail_syntax("what a loop runs over must be chosen at compile time", span,
                          "choose its bounds: range(n if c else m); or write a loop in each branch of an if")  # fmt: skip
        return iterable(t, node.body if decide(t, cond, span) else node.orelse)
    if isinstance(node, ast.Call) and static_object(t, node.func) is BUILTINS["static"]:
        value = t.expr(node)
        if isinstance(value, (ArrayRef, Container)):
            what = "an array" if isinstance(value, ArrayRef) else with_article(shape_text(value))
            t.fail_type(f"{what} cannot be unrolled", t.span(node))
        return python_call(t, list, [value], {}, t.span(node))
    value = t.expr(node)
    return list(value.elems) if isinstance(value, Vec) else value


def in_order(items: Value, axes: Sequence[ir.Axis]) -> Sequence[ir.Axis]:
    """``axes`` from the outermost loop to the innermost."""
    items = items.over if isinstance(items, Grouped) else items
    order = items.order if isinstance(items, NdRange) else None
    return [axes[k] for k in order] if order and len(order) == len(axes) else axes


def loop_bounds(t: Trace, items: Any, span: Span) -> Bounds:
    """Start, stop and step of each axis; none of a 0-d array and of ``ndrange()``, which have one empty index."""
    if isinstance(items, Grouped):
        items = items.over
    if isinstance(items, Range):
        return [(items.start, items.stop, items.step)]
    if isinstance(items, NdRange):
        return [(a, b, 1) for a, b in items.bounds]
    if isinstance(items, ArrayRef):
        offsets = items.offset or (0,) * items.ndim
        extents = [extent_of(t, items, axis, span) for axis in range(items.ndim)]
        return [(o, binary(t, ast.Add, e, o, span) if o else e, 1) for o, e in zip(offsets, extents, strict=True)]
    if is_node(items):
        t.deps.uses(items)
        return [(0, extent, 1) for extent in items.shape]
    hint = "loop over range, qp.ndrange, qp.grouped, an array, or qp.static(…) of a Python sequence"
    if hasattr(items, "__array_interface__"):
        hint = "a NumPy array is a constant here; pass it as a parameter annotated with qp.types.ndarray"
    t.fail_type(f"a loop cannot run over {shape_text(items)}", span, hint)


def _axis_type(t: Trace, bounds: tuple[Value, ...], span: Span) -> Scalar:
    for bound in bounds:
        if (is_runtime(bound) and bound.type.is_float) or isinstance(bound, float):
            t.fail_type("the bounds of a loop must be integers", span, "cast them: qp.i32(...)")
    return _wide_enough(t, [b.type for b in bounds if is_runtime(b)])


def loop_axes(t: Trace, names: list[str], bounds: Bounds, span: Span) -> list[ir.Axis]:
    """One axis a loop variable."""
    made = []
    for name, ends in zip(names, bounds, strict=True):
        type = _axis_type(t, ends, span)
        start, stop, step = (t.build.freeze(convert(t, end, type, span)) for end in ends)
        _require_step(t, step, span)
        made.append(ir.Axis(t.build.var(name, type), start, stop, step, span=span))
    return made


def _require_step(t: Trace, step: ir.Expr, span: Span) -> None:
    """A range with step 0 runs no iteration; under ``debug=True`` it is an error, as in Python."""
    if t.checks is None or isinstance(step, ir.Const):
        return
    low, high = t.checks.ranges.of(step)
    if low <= 0 <= high:
        holds = step.ne(0)
        require(t, holds, KernelRangeError, "the step of this range is 0", (), span)


def target_names(t: Trace, node: ast.For, count: int, form: IndexForm, *, parallel: bool) -> list[str]:
    """The names of the loop variables; one name stands for all of them where the index is a vector."""
    target = node.target
    if isinstance(target, ast.Name):
        if form == "each" and count > 1:
            t.fail_type(f"this loop has {count} indices, but one name", t.span(target),
                        "name each index, or loop over qp.grouped(…)")  # fmt: skip
        release_index(t, target.id, t.span(target), parallel=parallel or form != "each")
        return [target.id] * count
    if not isinstance(target, ast.Tuple) or not all(isinstance(e, ast.Name) for e in target.elts):
        t.fail_syntax("a loop variable must be a name or a tuple of names", t.span(target))
    names = [e.id for e in target.elts if isinstance(e, ast.Name)]
    if len(names) != count or form != "each":
        count = 0 if form == "empty" else count
        t.fail_type(f"this loop has {counted(count, 'index')}, not {len(names)}", t.span(target),
                    "name each index once" if count else "name a variable, which stands for the empty index")  # fmt: skip
    for element, name in zip(target.elts, names, strict=True):
        release_index(t, name, t.span(element), parallel=parallel)
    return names


def counter_names(node: ast.For, axes: Sequence[ir.Axis]) -> list[str]:
    """The loop variables as users call them; those of a grouped loop are ``I[0]``, ``I[1]`` and so on."""
    if isinstance(node.target, ast.Tuple):
        return [ast.unparse(name) for name in node.target.elts]
    name = ast.unparse(node.target)
    return [name] if len(axes) == 1 else [f"{name}[{k}]" for k in range(len(axes))]


def bind_axes(t: Trace, node: ast.For, variables: list[ir.Var], form: IndexForm) -> None:
    """The loop variables in the body; those that the body assigns are variables of their own."""
    span, reads = t.span(node.target), [ir.VarRead(v, span=t.span(node.target)) for v in variables]
    stored = t.stored(node.body, t.frame.source)
    if form == "empty":
        assert isinstance(node.target, ast.Name)
        t.frame.env[node.target.id] = ()
        return
    if form == "vector":
        assert isinstance(node.target, ast.Name)
        bind_index(t, node.target.id, Vec((len(reads),), tuple(reads)), stored, span)
        return
    names = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    for name, read in zip(names, reads, strict=True):
        assert isinstance(name, ast.Name)
        bind_index(t, name.id, read, stored, span)
