"""``super()`` in methods, and attributes of classes whose objects exist in kernels alone: structs and dataclasses."""

from __future__ import annotations

import ast
from types import MethodType
from typing import Any

from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, Method, func_of
from quadpy.lang.dependencies import MISSING
from quadpy.lang.references import named_place
from quadpy.lang.scope import import_value, lookup
from quadpy.lang.structs import changes_self, fail_to_change
from quadpy.lang.values import Container, ElementRef, Record, Value, is_direct, is_struct_type


@dataclass(frozen=True, slots=True)
class Super:
    """The value of ``super()``: looks attributes up in ``bases``, in order, for ``receiver``, which ``node`` names."""

    bases: tuple[type, ...]
    receiver: Value
    node: ast.expr

    def __quadpy_parts__(self) -> Value:
        return (self.receiver,)


def make_super(t: Trace, node: ast.Call) -> Super:
    """``super()``, and ``super(C, self)``."""
    frame, span = t.frame, t.span(node)
    name = next(iter(frame.source.signature.parameters), None)
    if len(node.args) not in (0, 2) or name is None or node.keywords:
        t.fail_type("super() is called without arguments, or as super(C, self), in a method", span)
    cls = t.expr(node.args[0]) if node.args else t.deps.name(frame.source, "__class__")
    if is_struct_type(cls):
        cls = t.deps.attribute(cls, "cls")
    if not isinstance(cls, type):
        t.fail_type("super() belongs to the methods of a class", span, "name the class: super(C, self)")
    whose = node.args[1] if node.args else ast.copy_location(ast.Name(name, ast.Load()), node)
    receiver = t.expr(whose) if node.args else lookup(t, name, span)
    order = _order(t, receiver, cls)
    if cls not in order:
        t.fail_type(f"super(): the object is not a {cls.__name__}", span)
    return Super(order[order.index(cls) + 1 :], receiver, whose)


def _order(t: Trace, receiver: Value, cls: type) -> tuple[type, ...]:
    """The classes of ``receiver``, in the order in which attributes are looked up."""
    match receiver:
        case Container():
            own = receiver.arg.type
        case Record() | ElementRef():
            own = getattr(receiver.shape, "cls", None) or cls
        case _:
            own = cls if is_direct(receiver) else type(receiver)
    order: tuple[type, ...] = t.deps.attribute(own, "__mro__")
    return order


def import_attribute(t: Trace, found: Any) -> Value:
    """``import_value`` of an attribute, which may be a function of the class."""
    if isinstance(found, MethodType) and isinstance(found.__func__, Func):  # a classmethod, from Python 3.13 on
        return Method(found.__func__, found.__self__)
    return import_value(t, found)


def class_attribute(t: Trace, raw: Any, found: Any, receiver: Value, span: Span) -> Value:
    """What the attribute ``raw`` of a class, which reads as ``found``, is of ``receiver``, an object of the kernel."""
    if isinstance(found, property):
        return t.call(func_of(found.fget), [receiver], {}, span)
    return Method(found, receiver) if isinstance(raw, Func) else import_attribute(t, found)


def super_attribute(t: Trace, value: Super, name: str, span: Span) -> Value:
    receiver: Any = value.receiver
    for base in value.bases:
        if name not in vars(base) or (base is object and name.startswith("__")):
            continue
        found, raw = t.deps.attribute(base, name), vars(base)[name]
        if found is MISSING:
            continue
        if isinstance(raw, Func) and isinstance(receiver, Record) and changes_self(t, found):
            place = named_place(t, value.node)
            return Method(found, place) if place is not None else fail_to_change(t, name, span)
        if is_direct(receiver) or isinstance(raw, Func):
            return class_attribute(t, raw, found, receiver, span)
        return import_attribute(t, raw.__get__(receiver, type(receiver)) if hasattr(raw, "__get__") else raw)
    t.fail_type(f"super() has no attribute {name!r}", span)
