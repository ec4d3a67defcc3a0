"""``f(…)``, by the kind of value that is called.

``v.fill(x)`` sets all numbers of a vector, matrix or struct where it is: in a variable, in memory, or in a part of these.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quadpy.core.dtypes import Scalar
from quadpy.core.messages import misfit
from quadpy.core.source import Span
from quadpy.intrinsics import BUILTINS, Builtin
from quadpy.intrinsics.rows import Row, Update
from quadpy.ir import nodes as ir
from quadpy.lang.access import chained
from quadpy.lang.array_slices import subview
from quadpy.lang.arrays import element_ref, is_element, load_element, store_element, struct_element
from quadpy.lang.atomics import atomic_call, volatile_load
from quadpy.lang.called_functions import call_real
from quadpy.lang.compile_time import evaluated, is_called_again, python_call
from quadpy.lang.components import variable_named, write_part
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, Method, RealFunc
from quadpy.lang.displays import display_items
from quadpy.lang.fills import filled
from quadpy.lang.frames import ChosenPart, Items, MutableVar
from quadpy.lang.functions import inline
from quadpy.lang.intrinsics import RULES
from quadpy.lang.lambdas import Lambda, call_lambda
from quadpy.lang.library import traced
from quadpy.lang.made_objects import call_while_made
from quadpy.lang.methods import changing_method, record_at
from quadpy.lang.names import base_name
from quadpy.lang.promotion import literal
from quadpy.lang.python_calls import (
    attribute_by_name,
    call_at_compile_time,
    call_pythons_own,
    is_pythons_own,
    takes_a_name,
)
from quadpy.lang.references import argument_places
from quadpy.lang.returns import items_of
from quadpy.lang.scalars import call_function, cast, convert, saturated
from quadpy.lang.scope import import_value
from quadpy.lang.sparse_calls import ListMethod, call_list, call_parent, list_method
from quadpy.lang.sparse_places import NodeParent
from quadpy.lang.structs import cast_record, filled_record, make_record, struct_value
from quadpy.lang.supers import make_super
from quadpy.lang.values import (
    ArrayRef,
    BoundMethod,
    ElementRef,
    Record,
    Value,
    Vec,
    holds_runtime,
    is_number,
    is_struct_type,
    shape_text,
    shaped,
)
from quadpy.lang.vecmethods import METHODS
from quadpy.lang.vectors import as_items, make_vector, vec_of
from quadpy.mathlib.library import LibraryFunction

if TYPE_CHECKING:
    from quadpy.core.records import RecordType

Call: TypeAlias = Callable[[Trace, Any, list[Value], dict[str, Value], Span], Value]
# ``Any``: a rule takes what it is for, which a mapping cannot express.


def expr_Call(t: Trace, node: ast.Call) -> Value:
    span = t.span(node)
    if (found := vector_to_fill(t, node.func)) is not None:
        place, held = found
        args, kwargs = display_items(t, node.args), _keywords(t, node, span)
        if isinstance(held, Vec):
            made = call_value(t, BoundMethod(held, "fill"), args, kwargs, span)
        else:
            made = _of_struct_type(t, "fill", filled_record, held.shape, args, kwargs, span)
        store_filled(t, node.func, place, made, span)
        return made
    if (done := call_while_made(t, node)) is not None:
        return done[0]
    fn = list_method(t, node.func) or changing_method(t, node.func) or _called(t, node.func)
    if is_called_again(t, fn):
        return _call_again(t, fn, node, span)
    if isinstance(fn, BoundMethod):
        check_filled(t, node.func, fn)
    if isinstance(fn, Builtin) and isinstance(fn.row.lowering, Update):
        return atomic_call(t, ir.AtomicOp(fn.row.lowering.op), node)
    if fn is BUILTINS["volatile_load"]:
        return volatile_load(t, node)
    if (fn is getattr or fn is hasattr) and takes_a_name(fn, node):
        return attribute_by_name(t, fn, node, span)
    if fn is super:
        return make_super(t, node)
    if fn is BUILTINS["ifte"] and len(node.args) == 3 and not node.keywords:
        test, body, orelse = node.args
        return t.expr(ast.copy_location(ast.IfExp(test, body, orelse), node))
    if fn is BUILTINS["static"] or fn is BUILTINS["static_assert"]:
        with t.frame.at_compile_time():
            return call_value(t, fn, display_items(t, node.args), _keywords(t, node, span), span)
    if fn is BUILTINS["block_local"] or fn is BUILTINS["cache_read_only"]:
        node = _about_whole_fields(node)
    places: dict[ast.expr, Value] = {**argument_places(t, fn, node)}
    if isinstance(fn, (Func, Method)):
        places |= _objects_passed_on(t, node)
    return call_value(t, fn, _arguments(t, node, places), _keywords(t, node, span, places), span)


def _called(t: Trace, node: ast.expr) -> Value:
    """What is called; of a function that a warm start calls again the log needs no more than where it comes from."""
    if not t.frame.static or not isinstance(node, (ast.Name, ast.Attribute)):
        return t.expr(node)
    fn = chained(t, node)
    if not is_called_again(t, fn):
        t.deps.uses(fn)
    return fn


def _call_again(t: Trace, fn: Any, node: ast.Call, span: Span) -> Value:
    """Calls a Python function, which may read anything of the objects that it is given."""
    named = [arg for arg in _given(node) if isinstance(arg, (ast.Name, ast.Attribute))]
    places: dict[ast.expr, Value] = {arg: chained(t, arg) for arg in named}
    return import_value(t, evaluated(t, fn, _arguments(t, node, places), _keywords(t, node, span, places), span))


def _about_whole_fields(node: ast.Call) -> ast.Call:
    """A hint about a component, ``x.get_scalar_field(i)``, is one about ``x``."""
    whole = [
        arg.func.value
        if isinstance(arg, ast.Call) and isinstance(arg.func, ast.Attribute) and arg.func.attr == "get_scalar_field"
        else arg
        for arg in node.args
    ]
    return ast.copy_location(ast.Call(node.func, whole, node.keywords), node)


def _objects_passed_on(t: Trace, node: ast.Call) -> dict[ast.expr, Value]:
    """The names among the arguments that stand for objects of which only attributes are known: the function reads those."""
    held = {arg: t.frame.env.get(arg.id) for arg in _given(node) if isinstance(arg, ast.Name)}
    return {arg: value for arg, value in held.items() if t.deps.is_opaque(value)}


def _given(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(keyword.value for keyword in node.keywords)]


def _arguments(t: Trace, node: ast.Call, places: Mapping[ast.expr, Value]) -> list[Value]:
    return [v for arg in node.args for v in ([places[arg]] if arg in places else display_items(t, [arg]))]


def _keywords(
    t: Trace, node: ast.Call, span: Span, places: Mapping[ast.expr, Value] = MappingProxyType({})
) -> dict[str, Value]:
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        value = places[keyword.value] if keyword.value in places else t.expr(keyword.value)
        given = {keyword.arg: value} if keyword.arg is not None else value
        if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
            t.fail_type(f"** takes a dict whose keys are names, not {shape_text(value)}", span)
        if twice := kwargs.keys() & given.keys():
            t.fail_type(f"the argument {min(twice)!r} is given twice", span)
        kwargs.update(given)
    return kwargs


def call_value(t: Trace, fn: Value, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """``fn(*args, **kwargs)``."""
    rule = next((rule for cls, rule in CALLS.items() if isinstance(fn, cls)), _call_object)
    return rule(t, fn, args, kwargs, span)


def _call_object(t: Trace, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """Calls a Python object."""
    if not callable(fn):
        t.fail_type(f"{shape_text(fn)} cannot be called inside a kernel", span)
    if fn in (int, float, bool):
        return _call_type(t, fn, args, kwargs, span)
    if getattr(fn, "__quadpy_kernel__", False):
        t.fail_syntax("a kernel cannot call another kernel", span, "make the callee a @qp.func")
    if isinstance(getattr(type(fn), "__call__", None), Func):  # noqa: B004 - it need not be callable from Python
        return call_value(t, t.deps.attribute(fn, "__call__"), args, kwargs, span)
    if is_pythons_own(fn):
        return call_pythons_own(t, fn, args, kwargs, span)
    if args and isinstance(args[0], Vec) and _is_method(fn):
        return _call_method(t, BoundMethod(args[0], fn.__name__), args[1:], kwargs, span)
    made = _construct(t, fn, args, kwargs, span)
    return made if made is not None else call_at_compile_time(t, fn, args, kwargs, span)


def _is_method(fn: Any) -> bool:
    """Whether ``fn`` is a method of vectors and matrices, as their class has it: ``Vector.dot(v, w)``."""
    home = getattr(fn, "__module__", None) or ""
    return isinstance(fn, FunctionType) and fn.__name__ in METHODS and home.startswith(_HOMES) and fn.__name__ != "fill"


def _call_instance_method(t: Trace, fn: Method, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    return call_value(t, fn.func, [fn.instance, *args], kwargs, span)


def _call_library_function(
    t: Trace, fn: LibraryFunction, args: list[Value], kwargs: dict[str, Value], span: Span
) -> Value:
    typed = zip(args, fn.params, strict=True)
    results = call_function(t, traced(fn), tuple(convert(t, a, type, span) for a, (_, type) in typed), span)
    return results[0] if len(results) == 1 else results


def _call_builtin(t: Trace, fn: Builtin, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    row = fn.row
    if row.per_block:
        _need_block(t, row, span)
    try:
        return RULES[row.name](t, span, *args, **kwargs)
    except TypeError as exc:
        if exc.__traceback__ is not None and exc.__traceback__.tb_next is None:
            t.fail_type(f"{row.name}: {str(exc).partition('() ')[2] or exc}", span, f"{row.signature}: {row.doc}")
        raise


def _need_block(t: Trace, row: Row, span: Span) -> None:
    """The loop around this has blocks; it remembers that it needs them."""
    if t.loop is None:
        t.fail_syntax(
            f"{row.name}() can only be called inside a parallel loop", span,
            "put it into a top-level for loop that is not serialized",
        )  # fmt: skip
    t.loop.uses_block = True


_HOMES: Final = ("quadpy.hostmath.", "quadpy.runtime.elements.")
"""The modules of the classes of vectors and matrices."""

_OURS: Final = 3
"""Parameters of a method's rule before those of the call: the trace, the vector, the place."""


def _call_method(t: Trace, method: BoundMethod, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    if isinstance(method.receiver, ArrayRef):
        if method.name == "fill":
            if len(args) + len(kwargs) != 1:
                t.fail_type(f"fill takes 1 argument, the value, not {len(args) + len(kwargs)}", span)
            return inline(t, filled, [method.receiver, *args], kwargs, span)
        if method.name == "element_shape" and isinstance(shape := method.receiver.element, tuple):
            return list(shape)
        if method.name != "subview":
            t.fail_syntax(f"arrays have no {method.name}() inside a kernel", span, "call it from Python, outside")
    rule: Any = subview if isinstance(method.receiver, ArrayRef) else METHODS[method.name]
    try:
        return rule(t, method.receiver, span, *args, **kwargs)
    except TypeError as exc:
        if exc.__traceback__ is not None and exc.__traceback__.tb_next is None:
            names = rule.__code__.co_varnames[_OURS : rule.__code__.co_argcount]
            many = TypeError("too many arguments" if len(args) > len(names) else "an argument is missing")
            t.fail_type(f"{method.name}: {misfit(names, len(args), kwargs, many)}", span,
                        f"it takes {', '.join(names) or 'nothing'}")  # fmt: skip
        raise


def _call_type(t: Trace, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """``qp.f32(x)``, ``int(x)``: a cast; a literal stays one."""
    type = t.scalar_type(fn)
    if len(args) != 1:
        t.fail_type(f"a cast takes one value, not {len(args)}", span)
    value = args[0]
    if isinstance(value, str) and fn in (int, float):
        try:
            return python_call(t, fn, [value], {}, span)
        except ValueError as error:
            t.fail_type(str(error), span)
    if t.frame.static and fn in (int, float, bool) and not is_number(value) and not holds_runtime(value):
        return evaluated(t, fn, args, kwargs, span)
    if isinstance(value, (Vec, list, tuple)):
        return make_vector(t, value, span, type)
    if fn in (int, float, bool) and is_number(value):
        if fn is int and (value != value or abs(value) == math.inf):
            return saturated(value, type)
        return python_call(t, fn, [value], {}, span)
    return cast(t, value, type, span)


def _construct(t: Trace, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
    """``qp.Vector([…])``, ``qp.Matrix.rows([…])`` and calls of vector types; None for all else."""
    dtype = kwargs.get("dt", kwargs.get("dtype"))
    kind = getattr(fn, "__quadpy_constructor__", None)
    if kind is None or (kind in ("type", "struct") and isinstance(fn, type)):  # qp.types.vector itself makes a type
        return None
    if is_struct_type(fn):
        record = fn.record(t.scalar_type)
        defaults = {name: import_value(t, value) for name in record.names if (value := fn.default(name)) is not None}
        return make_record(t, record, defaults, args, kwargs, span)
    if kind == "view":
        array = args[0] if args else None
        if not isinstance(array, ArrayRef):
            t.fail_type(f"a BufferView takes an array of the kernel, not {shape_text(array)}", span)
        return _call_method(t, BoundMethod(array, "subview"), args[1:], kwargs, span)
    if kind == "struct value":
        return struct_value(t, args, kwargs, span)
    if kind in _OF_STRUCT_TYPES:
        record = fn.__self__.record(t.scalar_type)
        return _of_struct_type(t, fn.__name__, _OF_STRUCT_TYPES[kind], record, args, kwargs, span)
    if unknown := kwargs.keys() - ({"dt", "dtype"} if kind != "type" else set()):
        t.fail_type(f"{getattr(fn, '__name__', repr(fn))} takes no {min(unknown)}=", span)
    if kind == "type":  # a vector or matrix type: its shape and scalar are given
        flat = [e for arg in args for item in items_of(as_items(t, arg)) for e in items_of(as_items(t, item))]
        shape = fn.element_shape
        count = math.prod(shape)
        if len(flat) not in (1, count):
            t.fail_type(f"{len(flat)} numbers for {count} components", span)
        return vec_of(t, flat * (count if len(flat) == 1 else 1), shape, span, t.scalar_type(fn.dtype or float))
    if not 1 <= len(args) <= 2:
        t.fail_type(f"a {fn.__name__} is made from one list, not from {len(args)} arguments", span,
                    "write qp.Vector([x, y]) or qp.Matrix([[a, b], [c, d]])")  # fmt: skip
    if len(args) > 1:
        dtype = args[1]
    rows = make_vector(t, args[0], span, t.scalar_type(dtype))
    return METHODS["transpose"](t, rows, span) if kind == "cols" else rows


def _of_struct_type(
    t: Trace, name: str, rule: Callable[[Trace, RecordType, Value, Span], Record], record: RecordType,
    args: list[Value], kwargs: dict[str, Value], span: Span,
) -> Record:  # fmt: skip
    if len(args) != 1 or kwargs:
        t.fail_type(f"{name} takes one value", span)
    return rule(t, record, args[0], span)


_OF_STRUCT_TYPES: Final = {"cast": cast_record, "filled": filled_record}
"""Methods of struct types, by how they are marked."""

CALLS: Final[Mapping[type, Call]] = {
    Builtin: _call_builtin,
    RealFunc: call_real,
    Func: inline,
    Method: _call_instance_method,
    BoundMethod: _call_method,
    ListMethod: call_list,
    NodeParent: call_parent,
    Scalar: _call_type,
    LibraryFunction: _call_library_function,
    Lambda: call_lambda,
}
"""What a call does, by the class of what is called; any other object is Python's own."""


Place: TypeAlias = ElementRef | MutableVar | ChosenPart


def vector_to_fill(t: Trace, node: ast.expr) -> tuple[Place, Vec | Record] | None:
    """The place whose ``fill`` the expression ``node`` is, and a vector or struct of its type; None for all else."""
    if not isinstance(node, ast.Attribute) or node.attr != "fill":
        return None
    owner, span = node.value, t.span(node)
    struct = struct_element(t, owner) or record_at(t, owner)
    if struct is not None and ("fill" in struct.names or struct.method("fill") is not None):
        return None  # its own
    place: Place
    if is_element(t, owner):
        place = element_ref(t, owner)
        zeros = [literal(0, type, span) for type in place.types]
        held: Value = load_element(t, place, span) if place.steps else shaped(place.shape, zeros)
    elif isinstance(t.frame.env.get(name := _name_of(owner)), (MutableVar, Items, Vec, Record)):
        place = variable_named(t, name, owner)
        part = place.parts[0] if isinstance(place, ChosenPart) else place
        held = part.stand_in(span)
    else:
        return None
    return (place, held) if isinstance(held, (Vec, Record)) else None


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else base_name(node) or ""


def store_filled(t: Trace, node: ast.expr, place: Place, value: Value, span: Span) -> None:
    """Stores what ``node``, the expression ``v.fill``, makes of what is at ``place``."""
    assert isinstance(node, ast.Attribute)
    if isinstance(place, ElementRef):
        store_element(t, place, value, span)
    else:
        write_part(t, _name_of(node.value), place, value, span)


def check_filled(t: Trace, node: ast.expr, method: BoundMethod) -> None:
    """Refuses ``v.fill`` where ``v`` names a vector that cannot change: the change would be lost."""
    if not (isinstance(node, ast.Attribute) and isinstance(method.receiver, Vec) and method.name == "fill"):
        return
    if name := _name_of(node.value):
        variable_named(t, name, node.value)
        t.fail_type(f"{ast.unparse(node.value)!r} cannot change here", t.span(node), "copy it to a variable first")
