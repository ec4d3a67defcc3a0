"""``return``: anywhere in an inlined function, where all returns are cast to a common type; at the end of a kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from quadpy.core.artifact import ResultShape
from quadpy.core.dtypes import Scalar, promote, u1
from quadpy.core.messages import counted, shown
from quadpy.core.records import Plain, RecordType, count_of
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children, walk
from quadpy.lang.context import Trace
from quadpy.lang.decorators import is_template
from quadpy.lang.frames import Frame, Outline
from quadpy.lang.scalars import cast, saturated, to_scalar
from quadpy.lang.source import FunctionSource
from quadpy.lang.structs import record_of
from quadpy.lang.values import (
    Record,
    Value,
    Vec,
    is_number,
    is_runtime,
    is_struct_type,
    is_vector_type,
    shape_text,
    shaped,
)
from quadpy.lang.variables import freeze_all
from quadpy.lang.vectors import as_items, make_vector


def return_value(t: Trace, value: Value, span: Span) -> None:
    """``return value``: the value itself if there is no other return, otherwise variables."""
    frame = t.frame
    if t.is_library and len(t.frames) == 1:
        t.build.emit(ir.Return(tuple(scalars_of(t, value, span)), span=span))
        return
    value = _as_annotated(t, value, span)
    if frame.runtime_depth == 0 and not frame.early_returns:
        frame.returned = freeze_all(t, value)
        return
    _keep_result(t, frame, value, span)
    if frame.runtime_depth:
        frame.early_returns += 1
        if frame.early_returns == 1:
            frame.label = t.build.var(frame.label, u1).name
        t.build.emit(ir.Leave(frame.label, span=span))


def _as_annotated(t: Trace, value: Value, span: Span) -> Value:
    """A result cast as the annotation says.

    Raises:
        KernelTypeError: the annotation allows no result, another shape, or only integers where ``value`` has floats.
    """
    source = t.frame.source
    annotation = t.deps.annotation(source, "return")
    says_none = "return" in source.fn.__annotations__ and source.annotation("return") is None
    if says_none and value is not None:
        t.fail_type(f"{source.name} returns {shape_text(value)}, but its annotation says None", span,
                    "annotate the type of the result, such as -> qp.f32, or remove the annotation")  # fmt: skip
    if not t.options.as_taichi:
        _check_whole(t, value, annotation, span)
    return annotated(t, value, annotation, span)


def _check_whole(t: Trace, value: Value, annotation: Any, span: Span) -> None:
    """Refuses floats under an annotation of integers, which would cut them; 2.0 loses nothing."""
    wanted = t.scalar_type(annotation.dtype if is_vector_type(annotation) else annotation)
    if isinstance(wanted, Scalar):
        for item in () if wanted.is_float else items_of(value):
            number = item.value if isinstance(item, ir.Const) else item
            if isinstance(number, float) and saturated(number, wanted) != number:
                given = repr(number)
            elif is_runtime(number) and number.type.is_float:
                given = str(number.type)
            else:
                continue
            casts = f"qp.{wanted}(...)" + " or int(...)" * (wanted == t.defaults.ip)
            t.fail_type(f"the result is {wanted}, and {given} would be cut to it", span,
                        f"cast it: {casts}; or change the annotation")  # fmt: skip
        return
    parts = _parts_of(annotation)
    if isinstance(value, Vec) and len(value.shape) == 1:
        value = value.elems
    if isinstance(value, (tuple, list)) and len(parts) == len(value):
        for item, part in zip(value, parts, strict=True):
            _check_whole(t, item, part, span)


def _parts_of(annotation: Any) -> Sequence[Any]:
    """The annotations of the items of a tuple."""
    return annotation if isinstance(annotation, tuple) else ()


def annotated(t: Trace, value: Value, annotation: Any, span: Span, what: str = "the result") -> Value:
    """``value`` cast to the annotated type: a scalar type, a vector type, or a tuple of these.

    Raises:
        KernelTypeError: ``value`` has another shape.
    """
    wanted = t.scalar_type(annotation)
    if isinstance(wanted, Scalar):
        if not (is_runtime(value) or is_number(value)):
            t.fail_type(f"{what} is {wanted}, not {shape_text(value)}", span)
        return cast(t, value, wanted, span)
    if is_vector_type(annotation):
        value = as_items(t, value)
        has_items = isinstance(value, (Vec, tuple, list))
        made = make_vector(t, value, span, t.scalar_type(annotation.dtype)) if has_items else value
        shape = tuple(annotation.element_shape)
        if not isinstance(made, Vec) or made.shape != shape:
            wanted = Plain(t.scalar_type(annotation.dtype), shape) if annotation.dtype else annotation
            t.fail_type(f"{what} is {wanted}, not {shape_text(made)}", span)
        return made
    if is_struct_type(annotation):
        return record_of(t, value, annotation.record(t.scalar_type), span, what)
    parts = _parts_of(annotation)
    if isinstance(value, Vec) and len(value.shape) == 1 and len(parts) == len(value.elems):
        value = value.elems
    if isinstance(value, (tuple, list)) and len(parts) == len(value):
        return tuple(annotated(t, item, part, span, what) for item, part in zip(value, parts, strict=True))
    return value


def _keep_result(t: Trace, frame: Frame, value: Value, span: Span) -> None:
    """Assigns the result to variables of its types; ``leave_function`` merges the variables of all returns."""
    for item in items_of(value):
        if not (is_runtime(item) or is_number(item)):
            t.fail_type(f"a return under a run-time condition gives numbers, not {shape_text(item)}", span,
                        "decide with qp.static, or return at one place")  # fmt: skip
    flat = [t.build.freeze(e) for e in scalars_of(t, value, span)]
    literals = zip(flat, items_of(value), strict=True)
    frame.literals.update({id(e): e for e, item in literals if is_number(item) and isinstance(e, ir.Const)})
    outline = outline_of(value)
    if frame.results and outline != frame.outline:
        t.fail_type("all returns of a function must give values of the same shape", span,
                    "return on each path, and as many numbers each time")  # fmt: skip
    if not frame.results or [e.type for e in flat] != [var.type for var in frame.results[-1]]:
        frame.results.append([t.build.var("result", e.type, mutable=True) for e in flat])
    frame.outline = outline
    for var, item in zip(frame.results[-1], flat, strict=True):
        t.build.assign(var, item, span)


def leave_function(t: Trace, frame: Frame, stmts: list[ir.Stmt], span: Span, *, ends: bool) -> Value:
    """Emits the traced body and gives the returned value; ``ends`` if no path runs off its end."""
    if not frame.early_returns:
        t.build.splice(stmts)
        return frame.returned
    if frame.outline is not None and not ends:
        t.fail_type(f"a path through {frame.source.name} ends without a return", frame.source.span,
                    "return a value at the end of the function")  # fmt: skip
    first = next(k for k, stmt in enumerate(stmts) if _returns_early(stmt, frame.label))
    t.build.splice(stmts[:first])  # always runs, and may contain parallel loops
    body, final = _meeting_results(t, frame, ir.Block(tuple(stmts[first:]), span=span))
    t.build.emit(ir.LabelledBlock(frame.label, body, span=span))
    return rebuilt(frame.outline, iter([ir.VarRead(var, span=span) for var in final]))


def _meeting_results(t: Trace, frame: Frame, body: ir.Block) -> tuple[ir.Block, list[ir.Var]]:
    """``body`` with one variable for each result, of the common type of its returns."""
    if len(frame.results) == 1:
        return body, frame.results[0]
    types = [reduce(promote, (var.type for var in column)) for column in zip(*frame.results, strict=True)]
    final = [t.build.var("result", type, mutable=True) for type in types]
    replaced = {old: new for row in frame.results for old, new in zip(row, final, strict=True)}

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Assign) and (var := replaced.get(node.var)):
            literal = frame.literals.get(id(node.value))
            value = node.value if literal is None else literal.value
            return ir.Assign(var, cast(t, value, var.type, node.span), span=node.span)
        return map_children(node, visit)

    return map_children(body, visit), final


def require_return(t: Trace, source: FunctionSource) -> None:
    """Refuses a function that returns nothing although its annotation promises a result."""
    annotation = t.deps.annotation(source, "return")
    if annotation is not None and not is_template(annotation):
        t.fail_type(f"{source.name} returns nothing, but its annotation says {_annotation_text(source)}",
                    source.span_of(source.tree), "return a value at the end, or remove the annotation")  # fmt: skip


def _annotation_text(source: FunctionSource) -> str:
    annotation = source.annotation("return")
    return annotation.__name__ if isinstance(annotation, type) else shown(annotation)


def scalars_of(t: Trace, value: Value, span: Span) -> list[ir.Expr]:
    """The scalars of a number, vector, or tuple of them."""
    return [to_scalar(t, item, span) for item in items_of(value)]


def items_of(value: Value) -> list[Value]:
    """Like ``scalars_of``, but literals have no type yet."""
    if value is None:
        return []
    if isinstance(value, (tuple, list)):
        return [inner for item in value for inner in items_of(item)]
    if isinstance(value, dict):
        return [inner for item in value.values() for inner in items_of(item)]
    return list(value.elems) if isinstance(value, (Vec, Record)) else [value]


def _returns_early(stmt: ir.Stmt, label: str) -> bool:
    return any(isinstance(node, ir.Leave) and node.label == label for node in walk(stmt))


def outline_of(value: Value) -> Outline:
    if value is None:
        return None
    if isinstance(value, (tuple, list)):
        return [outline_of(item) for item in value]
    if isinstance(value, dict):
        return {key: outline_of(item) for key, item in value.items()}
    return value.shape if isinstance(value, (Vec, Record)) else "scalar"


def rebuilt(outline: Outline, scalars: Iterator[ir.Expr]) -> Value:
    """A value of the shape ``outline``, made of the next ``scalars``."""
    if outline is None:
        return None
    if isinstance(outline, list):
        return tuple(rebuilt(item, scalars) for item in outline)
    if isinstance(outline, dict):
        return {key: rebuilt(item, scalars) for key, item in outline.items()}
    if outline == "scalar":
        return next(scalars)
    return shaped(outline, [next(scalars) for _ in range(count_of(outline))])


def kernel_return(t: Trace, value: Value, span: Span) -> None:
    """``return`` of the kernel: its last statement at the top level."""
    if t.in_parallel:
        t.fail_syntax("a parallel loop cannot return", span, "use continue to end an iteration")
    if t.frame.runtime_depth:
        t.fail_syntax("a kernel can only return at its end, not inside a branch or loop", span,
                      "assign to a variable, and return that at the end")  # fmt: skip
    if t.tasks.section is not None or t.tasks.repeats:
        where = "a section" if t.tasks.section is not None else "a do_while loop"
        t.fail_syntax(f"{where} cannot return", span, "return at the end of the kernel")
    if value is None:
        return
    if _holds_dict(value):
        t.fail_type("a kernel cannot return a dict", span, "return a struct: qp.Struct(a=…)")
    if t.tasks.graph:
        t.fail_syntax("a graph kernel cannot return a value", span, "store the result in an array")
    types = _result_types(t, t.deps.annotation(t.frame.source, "return"), span)
    count = len(items_of(value))
    if types is not None and len(types) != count:
        t.fail_type(f"the kernel returns {counted(count, 'number')}, but its annotation has {len(types)}", span,
                    "the annotation of several values is a tuple: -> (qp.f32, qp.i32)")  # fmt: skip
    value = _as_annotated(t, value, span)
    scalars, outline = scalars_of(t, value, span), outline_of(value)
    if _has_none(outline):
        t.fail_type("None cannot be returned together with other results", span, "return numbers, vectors or tuples")
    t.signature.results, t.signature.outline = tuple(e.type for e in scalars), _result_shape(outline)
    t.build.emit(ir.Return(tuple(scalars), span=span))


def _holds_dict(value: Value) -> bool:
    return isinstance(value, dict) or (isinstance(value, (tuple, list)) and any(map(_holds_dict, value)))


def _has_none(outline: Outline) -> bool:
    return outline is None or (isinstance(outline, list) and any(map(_has_none, outline)))


def _result_shape(outline: Outline | Plain) -> ResultShape:
    if isinstance(outline, RecordType):
        return {name: _result_shape(member) for name, member in outline.members}
    if isinstance(outline, Plain):
        return outline.shape or "scalar"
    assert not isinstance(outline, dict)  # a kernel cannot return a dict
    return [_result_shape(part) for part in outline] if isinstance(outline, list) else outline


def _result_types(t: Trace, annotation: Any, span: Span) -> list[Scalar] | None:
    """The scalars that a return annotation stands for; None if there is no annotation, or it is ``Any``."""
    if annotation is None:
        return None
    scalar = t.scalar_type(annotation)
    if isinstance(scalar, Scalar):
        return [scalar]
    if is_vector_type(annotation):
        return [t.scalar_type(annotation.dtype or float)] * math.prod(annotation.element_shape)
    if is_struct_type(annotation):
        return list(annotation.record(t.scalar_type).types)
    if not isinstance(annotation, tuple):
        t.fail_type(f"{_annotation_text(t.frame.source)} cannot be returned", span,
                    "a kernel can return numbers, vectors, and tuples of these")  # fmt: skip
    nested = [_result_types(t, part, span) for part in annotation]
    return [type for part in nested for type in part or []]
