"""``super()`` in methods: access to functions that a class overrides."""

from __future__ import annotations

from dataclasses import dataclass
from types import MethodType
from typing import Any

from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, Method
from quadpy.lang.dependencies import MISSING
from quadpy.lang.scope import import_value, lookup
from quadpy.lang.structs import changes_self
from quadpy.lang.values import Container, Record, Value, is_direct
from quadpy.source import Span

__all__ = ["Super", "import_attribute", "make_super", "super_attribute"]


@dataclass(frozen=True, slots=True)
class Super:
    """The value of ``super()``: looks attributes up in ``bases``, in order, for ``receiver``, called ``name``."""

    bases: tuple[type, ...]
    receiver: Value
    name: str

    def __quadpy_parts__(self) -> Value:
        return (self.receiver,)


def make_super(t: Trace, args: list[Value], span: Span) -> Super:
    """``super()``, and ``super(C, self)``."""
    frame = t.frame
    name = next(iter(frame.source.signature.parameters), None)
    if len(args) not in (0, 2) or name is None:
        t.fail_type("super() is called without arguments, or as super(C, self), in a method", span)
    cls = args[0] if args else t.deps.name(frame.source, "__class__")
    if not isinstance(cls, type):
        t.fail_type("super() belongs to the methods of a class", span, "name the class: super(C, self)")
    receiver = args[1] if args else lookup(t, name, span)
    order = _order(t, receiver, cls)
    if cls not in order:
        t.fail_type(f"super(): the object is not a {cls.__name__}", span)
    return Super(order[order.index(cls) + 1 :], receiver, name)


def _order(t: Trace, receiver: Value, cls: type) -> tuple[type, ...]:
    """The classes of ``receiver``, in the order in which attributes are looked up."""
    own = receiver.arg.type if isinstance(receiver, Container) else cls if is_direct(receiver) else type(receiver)
    order: tuple[type, ...] = t.deps.attribute(own, "__mro__")
    return order


def import_attribute(t: Trace, found: Any) -> Value:
    """``import_value`` of an attribute, which may be a function of the class."""
    if isinstance(found, MethodType) and isinstance(found.__func__, Func):  # a classmethod, from Python 3.13 on
        return Method(found.__func__, found.__self__)
    return import_value(t, found)


def super_attribute(t: Trace, value: Super, name: str, span: Span) -> Value:
    receiver: Any = value.receiver
    for base in value.bases:
        if name not in vars(base) or (base is object and name.startswith("__")):
            continue
        found = t.deps.attribute(base, name)
        if found is MISSING:
            continue
        if isinstance(found, Func):
            changes = isinstance(receiver, Record) and changes_self(t, found)
            return Method(found, t.frame.env[value.name] if changes else receiver)
        raw = vars(base)[name]
        return import_attribute(t, raw.__get__(receiver, type(receiver)) if hasattr(raw, "__get__") else raw)
    t.fail_type(f"super() has no attribute {name!r}", span)
