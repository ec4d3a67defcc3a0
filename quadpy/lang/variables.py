"""Variables: declarations, current values, and assignments to a whole variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeGuard

from quadpy.core.messages import closest
from quadpy.core.records import RecordType
from quadpy.core.source import Span
from quadpy.errors import KernelNameError
from quadpy.intrinsics import BUILTINS
from quadpy.ir import nodes as ir
from quadpy.lang.context import Trace
from quadpy.lang.frames import MutableVar
from quadpy.lang.retrace import LocalAtomicFound
from quadpy.lang.scalars import convert, to_scalar, type_of
from quadpy.lang.structs import record_of, scalars_for
from quadpy.lang.values import (
    ArrayRef,
    Numeric,
    Record,
    Value,
    Vec,
    elems_of,
    holds_runtime,
    is_number,
    is_numeric,
    is_runtime,
    shape_text,
    shaped,
)
from quadpy.lang.vectors import make_vector

_UNBOUND: Final = object()
"""Stands for "not bound", since None is a value."""


def declare(t: Trace, name: str, value: Value, span: Span) -> None:
    """Binds ``name`` to a new variable that starts as ``value``."""
    t.frame.env[name] = new_variable(t, name, value, span)
    t.frame.unset.discard(name)


def new_variable(t: Trace, name: str, value: Value, span: Span) -> MutableVar:
    """A variable that starts as ``value``; ``name`` is what users call it."""
    elems = value.elems if isinstance(value, (Vec, Record)) else (to_scalar(t, value, span),)
    variables = tuple(t.build.var(name, e.type, mutable=True) for e in elems)
    for var, elem in zip(variables, elems, strict=True):
        t.build.assign(var, elem, span)
    shape = value.shape if isinstance(value, (Vec, Record)) else ()
    return MutableVar(variables, shape, not t.in_parallel, span)


def in_memory(bound: object, t: Trace) -> TypeGuard[MutableVar]:
    """Whether ``bound`` is a variable in memory here, which other iterations can access."""
    return isinstance(bound, MutableVar) and bound.shared and t.in_parallel


def write_variable(t: Trace, part: MutableVar, items: Sequence[ir.Expr], span: Span) -> None:
    """Assigns ``items``; all are evaluated before the first is written."""
    items = [t.build.freeze(item) for item in items] if len(items) > 1 else items
    for var, item in zip(part.vars, items, strict=True):
        if in_memory(part, t):
            t.build.emit(ir.Store(t.slot(var, span), item, span=span))
        else:
            t.build.assign(var, item, span)


def assign_name(t: Trace, name: str, value: Value, span: Span) -> None:
    """The first assignment fixes the type of a name; a ``_`` that is never read has no type."""
    if t.frame.source.throws_away(name):
        freeze_all(t, value)
        return
    env = t.frame.env
    if t.frame.is_item(name) and not isinstance(env[name], (Vec, Record)):  # a place, which keeps what it has
        if _is_kept(t, name):
            t.fail_type(f"{name!r} stands for an item of an unrolled loop and cannot become another here", span,
                        "assign its parts, or copy it to a variable before")  # fmt: skip
        del env[name]
    if t.frame.is_finished(name):
        del env[name]
    bound = env.get(name, _UNBOUND)
    first = _first(t, name, bound)
    value = as_bound(t, name, first or bound, value, span)
    if isinstance(bound, MutableVar) and name in t.frame.unset and not _fits(t, bound, value):
        t.frame.replaced[name] = bound
        bound = env.pop(name) and _UNBOUND
    static = is_number(value) and name in t.frame.source.statics and not isinstance(bound, MutableVar)
    if not is_numeric(value) or (static and name not in t.changed(t.frame.source)):
        if isinstance(bound, MutableVar) or first or (bound is not value and _is_kept(t, name)):
            t.fail_type(f"{name!r} cannot become {shape_text(value)} here", span,
                        "bind compile-time values outside run-time branches and loops")  # fmt: skip
        if value is None:
            t.frame.nones[name] = len(t.frame.loops)
        env[name] = freeze_all(t, value)
    elif isinstance(bound, MutableVar):
        set_variable(t, name, bound, value, span)
    elif isinstance(bound, ArrayRef):
        t.fail_type(f"{name!r} is an array and cannot become {shape_text(value)}", span, "use another name")
    elif name in t.frame.singles and not _is_shared(t, name):  # static loops may come here again
        if first:
            value = shaped(first.shape, _items(t, name, first, value, span))
        if isinstance(value, (Vec, Record)):
            env[name] = shaped(value.shape, [t.build.let(e, name) for e in value.elems])
        else:
            env[name] = t.build.let(to_scalar(t, value, span), name)
    elif _is_kept(t, name) and not _was_none_here(t, name):
        t.fail_type(f"{name!r} is a compile-time {shape_text(bound)} and cannot change here", span,
                    f"start with a number that fixes its type, such as {name} = 0.0, or leave out {name} = None"
                    if bound is None else "assign it to a variable outside the branch or loop, and change that")  # fmt: skip
    else:
        declare(t, name, value, span)


def as_bound(t: Trace, name: str, bound: object, value: Value, span: Span) -> Value:
    """``value`` as a vector or struct, if ``name`` is bound to one."""
    shape = bound.shape if isinstance(bound, MutableVar) else ()
    if isinstance(value, (list, tuple)) and isinstance(shape, tuple) and shape:
        return make_vector(t, value, span)
    if isinstance(value, dict) and isinstance(shape, RecordType):
        return record_of(t, value, shape, span)
    return value


def _is_kept(t: Trace, name: str) -> bool:
    """Whether ``name`` is bound to a value that cannot change here.

    A statement around, which began after that, may run more than once, or not at all; or an iteration of a parallel
    loop has read the name, and the next one would read what this one assigns.
    """
    return name in t.frame.env and (name in t.frame.entry or _is_shared(t, name))


def _first(t: Trace, name: str, bound: Any) -> MutableVar | None:
    """The variable that the value of ``name``, which needs none, would be: what is assigned again becomes of its type.

    Raises:
        LocalAtomicFound: what the syntax took for a straight line is none: the name needs a variable.
    """
    frame = t.frame
    if not frame.singles.get(name) or not (is_runtime(bound) or isinstance(bound, (Vec, Record))):
        return None
    if frame.outer.get(name, _UNBOUND) is bound:
        return None  # an iteration has its own
    if name in frame.entry:
        raise LocalAtomicFound((frame.source.code, name))
    elems = elems_of(bound)
    return MutableVar(tuple(ir.Var(name, e.type) for e in elems), getattr(bound, "shape", ()), False, elems[0].span)


def _was_none_here(t: Trace, name: str) -> bool:
    """Whether ``name`` became None in the innermost loop, or outside all loops.

    Nothing has used it as anything but None since then, so it may become a variable, which ``check_assigned`` refuses
    to read where some path has left it None.
    """
    frame = t.frame
    bound = frame.env.get(name, _UNBOUND)
    return bound is None and frame.nones.get(name) == len(frame.loops) and not _is_shared(t, name)


def _is_shared(t: Trace, name: str) -> bool:
    """Whether ``name`` was assigned before the enclosing parallel loop, and read in it."""
    frame = t.frame
    return name in frame.shared and frame.outer[name] is frame.env.get(name, _UNBOUND)


def _fits(t: Trace, bound: MutableVar, value: Value) -> bool:
    """Whether ``value`` can be assigned to a variable that has no value here, on some path: the name may begin anew."""
    if in_memory(bound, t) or not is_numeric(value):
        return False  # an iteration has its own
    if isinstance(value, Record) or isinstance(bound.shape, RecordType):
        return isinstance(value, Record) and value.shape == bound.shape
    given = value.type if isinstance(value, Vec) else type_of(t, value)
    return getattr(value, "shape", ()) == bound.shape and (bound.types[0].is_float or not given.is_float)


def set_variable(t: Trace, name: str, bound: MutableVar, value: Numeric, span: Span) -> None:
    """Assigns all of a variable that users call ``name``."""
    write_variable(t, bound, _items(t, name, bound, value, span), span)
    t.frame.unset.discard(name)


def _items(t: Trace, name: str, bound: MutableVar, value: Numeric, span: Span) -> Sequence[ir.Expr]:
    """``value`` as scalars of the types of ``bound``, which users call ``name``."""
    if isinstance(value, Record) or isinstance(bound.shape, RecordType):
        return scalars_for(t, value, bound.shape, bound.types, span)
    if (isinstance(value, Vec) or bound.shape) and getattr(value, "shape", bound.shape) != bound.shape:
        t.fail_type(f"{name!r} cannot change its shape to {shape_text(value)}", span, "give the new value another name")
    check_type(t, name, bound, value, span)
    elems = value.elems if isinstance(value, Vec) else (value,) * len(bound.vars)
    return [convert(t, elem, var.type, span) for var, elem in zip(bound.vars, elems, strict=True)]


def check_type(t: Trace, name: str, bound: MutableVar, value: Numeric, span: Span) -> None:
    """Refuses to assign a float to an integer variable: Python would make it a float, and truncation is rarely meant."""
    if isinstance(value, Record):
        return
    given = value.type if isinstance(value, Vec) else type_of(t, value)
    type = bound.vars[0].type
    if given.is_float and not type.is_float:
        t.fail_type(
            f"{name!r} is {type} since line {bound.span.line} and cannot become {given}", span,
            f"start it as a float ({name} = 0.0), or cast: {type}(...)",
        )  # fmt: skip


def release_index(t: Trace, name: str, span: Span, *, parallel: bool) -> None:
    """Makes ``name`` free for the index of a loop, after which it has no value.

    A number that is assigned keeps the last index of a loop that runs in order, as in Python.

    Raises:
        KernelTypeError: the name stands for an array, or for a value that code before this loop may read again.
    """
    frame = t.frame
    if name == "_" or name not in frame.env:
        return
    bound = frame.env[name]
    assigned = isinstance(bound, MutableVar) and name not in frame.unset
    if assigned and not parallel and _takes_index(t, bound):
        return
    if isinstance(bound, ArrayRef) or (
        name in frame.entry and (assigned or not isinstance(bound, MutableVar)) and not frame.is_finished(name)
    ):
        t.fail_type(f"{name!r} is already a variable, and a loop index only exists inside its loop", span,
                    "give the index another name")  # fmt: skip
    del frame.env[name]
    frame.private[name] = span


def _takes_index(t: Trace, bound: object) -> bool:
    return (
        isinstance(bound, MutableVar) and not bound.shape and bound.types[0].kind == "int" and not in_memory(bound, t)
    )


def bind_index(t: Trace, name: str, value: Value, stored: Any, span: Span) -> None:
    bound = t.frame.env.get(name)
    if isinstance(bound, MutableVar) and is_numeric(value) and _takes_index(t, bound):
        set_variable(t, name, bound, value, span)
        if name not in stored:
            t.frame.env[name] = value
    elif name in stored and not t.frame.source.throws_away(name):
        declare(t, name, value, span)
    else:
        t.frame.env[name] = value


def check_assigned(t: Trace, name: str, span: Span) -> None:
    """Refuses to read a variable that does not have a value on every path to here.

    Raises:
        KernelNameError: a path leaves it unassigned.
    """
    if name in t.frame.unset:
        raise undefined(t, name, span)


def undefined(t: Trace, name: str, span: Span) -> KernelNameError:
    """The error for a name that has no value here."""
    source, fork = t.frame.source, t.tasks.fork
    if fork is not None and t.tasks.section is not None and (other := fork.bound.get(name)):
        return KernelNameError(
            f"{name!r} belongs to a concurrent section (line {other.line})", span,
            hint="read it after the sections, or assign it before them",
        )  # fmt: skip
    if (loop := t.frame.private.get(name)) is not None:
        return KernelNameError(
            f"each iteration of the loop in line {loop.line} binds {name!r} for itself: it has no value after the loop", span,
            hint=f"start it as a variable before the loop ({name} = 0), or use another name inside",
        )  # fmt: skip
    if name in t.frame.nones and isinstance(t.frame.env.get(name), MutableVar):
        return KernelNameError(
            f"{name!r} is None on one path to this line, and a number on another", span,
            hint=f"start with a number that fixes its type, such as {name} = 0.0",
        )  # fmt: skip
    if name in t.frame.replaced and isinstance(now := t.frame.env.get(name), MutableVar):
        was = t.frame.replaced[name]
        return KernelNameError(
            f"{name!r} is {_type_text(was)} on one path to this line (line {was.span.line}), "
            f"and {_type_text(now)} on another (line {now.span.line})", span,
            hint="give them different names, or assign it before the branches, which fixes its type",
        )  # fmt: skip
    if name in source.locals:
        return KernelNameError(
            f"{name!r} is not defined here: {source.name} does not assign it on every path to this line", span,
            hint="assign it before this line, outside the branch or loop",
        )  # fmt: skip
    known = [n for n in t.frame.env if not n.startswith("$")]
    hint = closest(name, [*known, *source.names()])
    if not hint and name in BUILTINS:
        hint = f"there is qp.{name}"
    if not hint and known:
        hint = f"names bound here: {', '.join(sorted(known))}"
    return KernelNameError(f"the name {name!r} is not defined", span, hint=hint)


def _type_text(variable: MutableVar) -> str:
    return shape_text(variable.stand_in(variable.span))


def read_variable(t: Trace, bound: MutableVar, span: Span) -> ir.Expr | Vec | Record:
    """The current value of a variable."""
    if in_memory(bound, t):
        return shaped(bound.shape, [t.build.load(t.slot(var, span), span, var.name) for var in bound.vars])
    return shaped(bound.shape, [ir.VarRead(var, span=span) for var in bound.vars])


def freeze_all(t: Trace, value: Value) -> Value:
    """``value`` as it is now: no later assignment changes it."""
    if not holds_runtime(value):
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(freeze_all(t, v) for v in value)
    if isinstance(value, dict):
        return {key: freeze_all(t, v) for key, v in value.items()}
    return freeze(t, value) if isinstance(value, (Vec, Record)) or is_runtime(value) else value


def freeze(t: Trace, value: ir.Expr | Vec | Record) -> ir.Expr | Vec | Record:
    """Like ``freeze_all``, for a number, vector or struct."""
    elems = [t.build.freeze(e) for e in elems_of(value)]
    return shaped(value.shape if isinstance(value, (Vec, Record)) else (), elems)
