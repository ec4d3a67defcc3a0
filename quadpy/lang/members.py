"""Attributes of the user's objects and dataclasses: known at compile time, or passed by each launch."""

from __future__ import annotations

from types import ModuleType

from quadpy.core.messages import closest, one_of
from quadpy.core.records import function_of
from quadpy.core.source import Span
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Method
from quadpy.lang.dependencies import MISSING
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.parameters import passed_attribute
from quadpy.lang.scope import container_member
from quadpy.lang.sparse_places import NodeParent, is_node
from quadpy.lang.supers import Super, class_attribute, import_attribute, super_attribute
from quadpy.lang.values import Container, Value, is_number, is_struct_type, shape_text


def object_attribute(t: Trace, value: Value, name: str, span: Span) -> Value:
    """``value.name`` of a Python object; arrays in arguments, and numbers that may change, are parameters."""
    if isinstance(value, Super):
        return super_attribute(t, value, name, span)
    if name == "parent" and is_node(value):
        return NodeParent(value)
    if (passed := passed_attribute(t, value, name)) is not None:
        return passed
    found = t.deps.attribute(value, name)
    if found is MISSING and is_struct_type(value) and name in value.methods:
        return function_of(t.deps.attribute(value, "methods")[name])
    if found is MISSING:
        if is_number(value) and is_our_module(t.frame.source.fn.__module__):
            t.fail_type(f"a vector or matrix is needed, not {shape_text(value)}", span)
        t.fail_type(f"{_named(value)} has no attribute {name!r}", span, closest(name, _attributes(value)))
    made = import_attribute(t, found)
    if isinstance(made, Method) and made.instance is type(value):  # a classmethod, which reads attributes of the class
        t.deps.class_of(value)
    return made


def container_attribute(t: Trace, value: Container, name: str, span: Span) -> Value:
    """A member of a dataclass, or one of its functions."""
    if name in value.arg.names:
        return container_member(t, value, name)
    found = t.deps.attribute(value.arg.type, name)
    if t.deps.spot(value.arg.type) is None:
        t.deps.complete = False  # its functions are not in the log
    if found is MISSING:
        t.fail_type(
            f"{shape_text(value)} has no member {name!r}",
            span,
            one_of(name, value.arg.names),
        )
    raw = next((vars(base)[name] for base in value.arg.type.__mro__ if name in vars(base)), None)
    return class_attribute(t, raw, found, value, span)


def _named(value: Value) -> str:
    """What a message calls a Python object."""
    return f"the module {value.__name__!r}" if isinstance(value, ModuleType) else shape_text(value)


def _attributes(value: Value) -> list[str]:
    try:
        return dir(value)
    except Exception:  # noqa: BLE001 - __dir__ may be the user's code
        return []
