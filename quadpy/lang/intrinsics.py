"""The meaning of a call of each builtin in a trace."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, Final, NoReturn, TypeAlias

from quadpy.core.dtypes import Scalar, f32, i32, i64, promote, u1, u64
from quadpy.core.messages import shown
from quadpy.core.source import Span
from quadpy.intrinsics import BUILTINS, INTERNAL
from quadpy.intrinsics.rows import Library, Operator, Row, Syntax, Traced, Types, Update
from quadpy.ir import nodes as ir
from quadpy.ir.types import Space
from quadpy.lang.arrays import element_at, places_of, spread_indices
from quadpy.lang.block_functions import FUNCTION_RULES
from quadpy.lang.block_operations import BLOCK_RULES
from quadpy.lang.checked_values import checked_unary
from quadpy.lang.comparisons import compare
from quadpy.lang.context import Trace
from quadpy.lang.fractions import FORMS, fraction_and_exponent
from quadpy.lang.functions import inline
from quadpy.lang.iteration import Grouped, NdRange
from quadpy.lang.lane_sorts import SORT_RULES
from quadpy.lang.lane_trees import TILE_RULES
from quadpy.lang.literals import greatest, least
from quadpy.lang.operators import binary, bit_cast, select
from quadpy.lang.promotion import literal
from quadpy.lang.random_numbers import random_number
from quadpy.lang.scalars import (
    call_library,
    cast,
    convert,
    decide,
    library_results,
    meet,
    operand,
    to_integer,
    to_scalar,
    type_of,
)
from quadpy.lang.simt import SIMT_RULES
from quadpy.lang.sparse_calls import SPARSE_RULES
from quadpy.lang.sparse_places import array_of_place
from quadpy.lang.subgroup import SUBGROUP_RULES
from quadpy.lang.values import ArrayRef, Text, Value, Vec, holds_runtime, is_number, is_runtime, shape_text
from quadpy.lang.vecmethods import OF_TRUTHS
from quadpy.lang.vectors import broadcast, make_vector, map_vec
from quadpy.lang.warp import WARP_RULES

_ROUNDING: Final = {"floor": ir.UnOp.FLOOR, "ceil": ir.UnOp.CEIL, "round": ir.UnOp.RINT, "trunc": ir.UnOp.TRUNC}


Rule: TypeAlias = Callable[..., Any]
"""``(trace, span, *args)``: a call in the trace; its value."""


def _by_component(row: Row, t: Trace, span: Span, *args: Value) -> Value:
    """A row whose types follow a rule, over scalars or over the components of vectors."""
    if len(args) != row.arity:
        t.fail_type(f"{row.name} takes {row.arity} argument{'s' * (row.arity > 1)}, not {len(args)}", span)
    if any(isinstance(a, (Vec, list, tuple)) for a in args):
        first = next(make_vector(t, a, span) for a in args if isinstance(a, (Vec, list, tuple)))
        spread = [broadcast(t, a, first, span)[0] for a in args]
        return map_vec(t, lambda *elems: _by_component(row, t, span, *elems), *spread)
    operands = _operands(row.types, t, args, span)
    type = operands[0].type
    match row.lowering:
        case Library():
            return call_library(t, row.name, operands, span)
        case Operator(op=op) if row.arity == 1:
            return ir.Unary(ir.UnOp(op), operands[0], type, span=span)
        case Operator(op=op):
            return ir.Binary(ir.BinOp(op), operands[0], operands[1], type, span=span)
        case _:
            return ir.Intrinsic(row.name, operands, i32 if row.types is Types.COUNT else type, span=span)


def _operands(types: Types, t: Trace, args: tuple[Value, ...], span: Span) -> tuple[ir.Expr, ...]:
    match types:
        case Types.FLOATS:
            found = reduce(promote, (to_scalar(t, a, span).type for a in args))
            return tuple(convert(t, a, found if found.is_float else t.defaults.fp, span) for a in args)
        case Types.INTEGERS:
            numbers = [operand(t, arg, "a number is needed here", span) for arg in args]
            found = reduce(promote, (type_of(t, x) for x in numbers))
            return tuple(to_integer(t, convert(t, x, found, span), span) for x in numbers)
        case Types.COUNT:
            return tuple(to_integer(t, to_scalar(t, a, span), span) for a in args)
        case Types.OWN:
            raise AssertionError("a row with types of its own has a function of its own")


def _rounding(name: str) -> Rule:
    def run(t: Trace, span: Span, x: Value, dtype: Value = None) -> Value:
        if isinstance(x, Vec):
            return map_vec(t, lambda e: run(t, span, e, dtype), x)
        if is_number(dtype) or is_runtime(dtype):
            t.fail_type(f"{name} takes a type, not a number of digits", span, "scale: round(x * 100.0) / 100.0")
        expr = to_scalar(t, x, span)
        if expr.type.is_float:
            expr = ir.Unary(_ROUNDING[name], expr, expr.type, span=span)
        return expr if dtype is None else cast(t, expr, _scalar_type(t, dtype, span), span)

    return run


def _abs(t: Trace, span: Span, x: Value) -> Value:
    if isinstance(x, Vec):
        return map_vec(t, lambda e: _abs(t, span, e), x)
    if is_number(x):
        return abs(x)
    expr = to_scalar(t, x, span)
    if expr.type.kind in ("uint", "bool"):
        return expr
    return checked_unary(t, ir.UnOp.ABS, expr, span)


def _extreme(op: ir.BinOp) -> Rule:
    def pair(t: Trace, span: Span, a: Value, b: Value) -> Value:
        if isinstance(a, (Vec, tuple, list)) or isinstance(b, (Vec, tuple, list)):
            a, b = broadcast(t, a, b, span)
            return map_vec(t, lambda x, y: pair(t, span, x, y), a, b)
        if is_number(a) and is_number(b):
            return least(a, b) if op is ir.BinOp.MIN else greatest(a, b)
        x, y = (operand(t, value, "a number is needed here", span) for value in (a, b))
        x, y = meet(t, x, y, span)
        return ir.Binary(OF_TRUTHS[op] if x.type == u1 else op, x, y, x.type, span=span)

    def run(t: Trace, span: Span, *args: Value) -> Value:
        if len(args) == 1 and isinstance(args[0], (Vec, tuple, list)):
            args = args[0].elems if isinstance(args[0], Vec) else tuple(args[0])
        elif len(args) == 1 and not (is_runtime(args[0]) or is_number(args[0])):
            t.fail_type(
                f"{shape_text(args[0])} has no items to compare", span, "pass a vector, a tuple, or several values"
            )
        if not args:
            t.fail_type("at least one argument is needed", span)
        return t.build.chain(lambda a, b: pair(t, span, a, b), args)

    return run


def _sincos(t: Trace, span: Span, x: Value) -> Value:
    if isinstance(x, (Vec, list, tuple)):
        vector = make_vector(t, x, span)
        pairs = [_sine_and_cosine(t, span, e) for e in vector.elems]
        return tuple(Vec(vector.shape, tuple(pair[k] for pair in pairs)) for k in range(2))
    return _sine_and_cosine(t, span, x)


def _sine_and_cosine(t: Trace, span: Span, x: Value) -> tuple[ir.Expr, ...]:
    (operand,) = _operands(Types.FLOATS, t, (x,), span)
    if operand.type.bits == 16:
        return tuple(
            cast(t, value, operand.type, span) for value in _sine_and_cosine(t, span, cast(t, operand, f32, span))
        )
    return library_results(t, "sincos", (operand,), span)


def _frexp(t: Trace, span: Span, x: Value) -> Value:
    if isinstance(x, (Vec, list, tuple)):
        vector = make_vector(t, x, span)
        pairs = [_split(t, span, e) for e in vector.elems]
        return tuple(Vec(vector.shape, tuple(pair[k] for pair in pairs)) for k in range(2))
    return _split(t, span, x)


def _split(t: Trace, span: Span, x: Value) -> tuple[ir.Expr, ir.Expr]:
    """The fraction and the exponent of a number."""
    (operand,) = _operands(Types.FLOATS, t, (x,), span)
    wide = operand if operand.type in FORMS else cast(t, operand, f32, span)
    found = inline(t, fraction_and_exponent, [wide, FORMS[wide.type]], {}, span)
    assert isinstance(found, tuple)
    return cast(t, found[0], operand.type, span), found[1]


def _ffs(t: Trace, span: Span, x: Value) -> Value:
    """One more than the trailing zeros, or 0 for 0."""
    if isinstance(x, Vec):
        return map_vec(t, lambda e: _ffs(t, span, e), x)
    expr = t.build.let(to_integer(t, to_scalar(t, x, span), span))
    position = binary(t, ast.Add, ir.Intrinsic("ctz", (expr,), i32, span=span), 1, span)
    return select(t, compare(t, ast.NotEq, expr, 0, span), position, 0, span)


def _scalar_type(t: Trace, dtype: Any, span: Span) -> Scalar:
    scalar = t.scalar_type(dtype)
    if not isinstance(scalar, Scalar):
        t.fail_type(f"a scalar type is needed, not {shape_text(dtype)}", span)
    return scalar


def _cast(t: Trace, span: Span, x: Value, dtype: Value) -> Value:
    if not callable(dtype) and not isinstance(dtype, Scalar):
        t.fail_type(f"cast takes a type, not {shape_text(dtype) if holds_runtime(dtype) else shown(dtype)}", span,
                    "such as qp.f32, int, or a vector type")  # fmt: skip
    if t.options.as_taichi and type(x) is int and isinstance(dtype, Scalar):
        x = literal(x, t.defaults.ip, span)  # which wraps, as a variable of its value would
    return t.call(dtype, [x], {}, span)


def _static(t: Trace, span: Span, *values: Value) -> Value:
    if not values:
        t.fail_type("static() needs a value", span)
    for value in values:
        if is_runtime(value) or isinstance(value, (Vec, Text)):
            t.fail_type("static() needs a value that is known at compile time", span,
                        "such as a constant, the shape of a field, a template parameter or a static loop variable")  # fmt: skip
    return values if len(values) > 1 else values[0]


def _static_assert(t: Trace, span: Span, cond: Value, message: str = "static assertion failed") -> None:
    if not decide(t, _static(t, span, cond), span):
        t.fail_type(str(_static(t, span, message)), span)


def _static_print(t: Trace, span: Span, *args: Value) -> None:
    t.printed += 1
    if t.printed > t.already_printed:
        print(*(shape_text(a) if holds_runtime(a) else a for a in args))  # noqa: T201  (what the user asked for)


def _hint(t: Trace, span: Span, *arrays: Value) -> None:
    for array in arrays:
        if not isinstance(array, ArrayRef):
            t.fail_type(f"a hint takes arrays and fields, not {shape_text(array)}", span)


def _global_thread_idx(t: Trace, span: Span) -> Value:
    return cast(t, t.loop.order(), i32, span) if t.loop else literal(0, i32, span)


def _clock_counter(t: Trace, span: Span) -> Value:
    var = t.build.var("clock", i64)
    t.build.emit(ir.ReadClock(var, span=span))
    return ir.VarRead(var, span=span)


def _get_addr(t: Trace, span: Span, x: Value, index: Value) -> Value:
    """The address of the first scalar of an element."""
    array = array_of_place(t, x)
    if array is None:
        t.fail_type(f"get_addr takes an array, a field or the node of a field, not {shape_text(x)}", span)
    if array.type.space is Space.SHARED:
        t.fail_type("a SharedArray has no address that others could use", span)
    if array.packed is not None:
        t.fail_type("a quantised number has no address of its own", span)
    place = places_of(element_at(t, array, spread_indices((index,)), "this array", span), span)[0]
    var = t.build.var("address", u64)
    t.build.emit(ir.Locate(var, place, span=span))
    return ir.VarRead(var, span=span)


def _filled(number: int) -> Rule:
    def run(t: Trace, span: Span, x: Value) -> Value:
        if isinstance(x, Vec):
            return Vec(x.shape, (literal(number, x.type, span),) * len(x.elems))
        return type(x)(number) if is_number(x) else literal(number, to_scalar(t, x, span).type, span)

    return run


def _stop(t: Trace, span: Span, x: Value) -> Value:
    """The bits of each float as what they are, which no derivative goes through."""
    if isinstance(x, Vec):
        return map_vec(t, lambda e: _stop(t, span, e), x)
    value = to_scalar(t, x, span)
    return ir.BitCast(value, value.type, span=span) if value.type.is_float else value


def _is_differentiated(t: Trace, span: Span) -> bool:
    """Whether the kernel computes derivatives; formulas that ask for this are right to first order."""
    kind = t.options.derivative.kind
    if kind == "grad.dual":
        t.fail_type(
            "quadpy knows no second derivative of svd, polar_decompose, sym_eig and make_spd", span,
            "write the iteration yourself, or take first derivatives",
        )  # fmt: skip
    return bool(kind)


TRACED: Final[Mapping[str, Rule]] = {
    **SIMT_RULES,
    **SUBGROUP_RULES,
    **BLOCK_RULES,
    **FUNCTION_RULES,
    **TILE_RULES,
    **SORT_RULES,
    **WARP_RULES,
    **SPARSE_RULES,
    **{name: _rounding(name) for name in _ROUNDING},
    "abs": _abs,
    "ffs": _ffs,
    "sincos": _sincos,
    "frexp": _frexp,
    "pow": lambda t, span, x, y: binary(t, ast.Pow, x, y, span),
    "min": _extreme(ir.BinOp.MIN),
    "max": _extreme(ir.BinOp.MAX),
    "select": lambda t, span, cond, a, b: select(t, cond, a, b, span),
    "cast": _cast,
    "bit_cast": lambda t, span, x, dtype: bit_cast(t, x, _scalar_type(t, dtype, span), span),
    "ad.stop": _stop,
    "is_differentiated": _is_differentiated,
    "random": lambda t, span, dtype=float: random_number(t, "uniform", _scalar_type(t, dtype, span), span),
    "randn": lambda t, span, dtype=float, dt=None: random_number(
        t, "normal", _scalar_type(t, dtype if dt is None else dt, span), span
    ),
    "ndrange": lambda t, span, *ranges, axes=None: NdRange.of(list(ranges), span, axes),
    "grouped": lambda t, span, x: Grouped(x),
    "static": _static,
    "static_assert": _static_assert,
    "static_print": _static_print,
    "block_local": _hint,
    "cache_read_only": _hint,
    "assume_in_range": lambda t, span, value, base, low, high: value,
    "loop_unique": lambda t, span, value, covers=None: value,
    "global_thread_idx": _global_thread_idx,
    "ifte": lambda t, span, cond, a, b: select(t, cond, a, b, span),  # of values; ``calls`` takes the written form
    "volatile_load": lambda t, span, x: x,  # of a value; ``calls`` takes the written form
    "clock_counter": _clock_counter,
    "get_addr": _get_addr,
    "zero": _filled(0),
    "one": _filled(1),
}


def _misplaced(row: Row, t: Trace, span: Span, *args: Value, **kwargs: Value) -> NoReturn:
    if isinstance(row.lowering, Syntax):
        t.fail_syntax(f"{row.name} has no value", span, f"write {row.lowering.form}")
    t.fail_syntax(f"{row.name} changes its first argument, so it is called by name", span, f"write qp.{row.signature}")


def _rule_of(row: Row) -> Rule:
    if row.types is not Types.OWN:
        return partial(_by_component, row)
    match row.lowering:
        case Traced() | Library():
            return TRACED[row.name]
        case Update() | Syntax():  # the text of the call decides, which ``calls`` and ``statements`` read
            return partial(_misplaced, row)
        case _:
            raise AssertionError(f"{row.name} has types of its own, and no function here that knows them")


RULES: Final[Mapping[str, Rule]] = {
    name: _rule_of(builtin.row)
    for name, builtin in (BUILTINS | INTERNAL).items()
    if name in BUILTINS or name in TRACED or builtin.row.is_instruction
}
"""What a call of a builtin does in a trace."""
