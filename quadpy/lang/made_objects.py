"""Objects of Python's classes that a kernel makes: ``Ray(origin, direction)`` is a struct of what ``__init__`` sets."""

from __future__ import annotations

import ast
import copy
import enum
from inspect import getattr_static
from types import FunctionType
from typing import Any, Final

from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, is_method
from quadpy.lang.dependencies import MISSING
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.functions import inline
from quadpy.lang.source import FunctionSource
from quadpy.lang.structs import struct_value
from quadpy.lang.values import Record, Value, is_numeric, shape_text
from quadpy.records import RecordType, function_of
from quadpy.source import Span

__all__ = ["is_made_by_kernels", "made_object"]


def is_made_by_kernels(cls: object) -> bool:
    """Whether ``cls`` is a class of the user's whose ``__init__`` is written in it, or in one that it inherits from."""
    init = getattr(cls, "__init__", None)
    return (
        isinstance(cls, type)
        and isinstance(init, FunctionType)
        and is_method(init)
        and not issubclass(cls, (enum.Enum, BaseException))
        and not hasattr(cls, "__dataclass_fields__")
        and not is_our_module(init.__module__)
    )


def made_object(t: Trace, cls: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Record:
    """The struct that ``cls(*args, **kwargs)`` is: its members are what ``__init__`` assigns, its methods those of ``cls``."""
    init = t.deps.attribute(cls, "__init__")
    initialiser = _initialiser(init)
    _require_no_object(t, cls, initialiser.source, span)
    members = inline(t, initialiser, [cls, *args], kwargs, span)
    if not isinstance(members, dict):
        t.fail_type(f"__init__ of {cls.__name__} sets no attributes of its first parameter", span,
                    "an object that a kernel makes is a struct of what __init__ assigns: self.x = x")  # fmt: skip
    for name, value in members.items():
        if not (is_numeric(value) or isinstance(value, (tuple, list, dict))):
            t.fail_type(f"self.{name} is {shape_text(value)}, which an object that a kernel makes cannot hold", span,
                        "it holds numbers, vectors and structs; make the object outside kernels, or use the value itself")  # fmt: skip
    record = struct_value(t, [members], {}, span)
    return Record(RecordType(record.shape.members, _methods(t, cls, members), cls), record.elems)


def _require_no_object(t: Trace, cls: type, init: FunctionSource, span: Span) -> None:
    """Fails where ``__init__`` uses the object that it makes: in a kernel there is none before its end."""
    first = next(iter(init.signature.parameters))
    for node in ast.walk(init.tree):
        used = getattr_static(cls, node.attr, None) if isinstance(node, ast.Attribute) and _is_of(node, first) else None
        is_super = isinstance(node, ast.Name) and node.id == "super"
        if is_super or isinstance(used, (Func, property)):
            t.fail_type(f"__init__ of {cls.__name__} uses {'super()' if is_super else ast.unparse(node)}, but in a kernel"
                        " there is no object before the end of __init__", span,
                        "assign all attributes in this __init__, and write a function for what methods compute")  # fmt: skip


def _methods(t: Trace, cls: type, members: dict[Any, Value]) -> tuple[tuple[str, object], ...]:
    """The functions, properties and constants of ``cls``, which its objects have besides their members."""
    found: dict[str, object] = {}
    for name in dir(cls):
        raw = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
        is_constant = type(raw) in (int, float, bool)
        if name in members or not (isinstance(function_of(raw), Func) or isinstance(raw, property) or is_constant):
            continue
        if t.deps.attribute(cls, name) is not MISSING:
            found[name] = raw
    return tuple(found.items())


class _Initialiser(FunctionSource):
    """``__init__`` as a function: the attributes that it assigns are variables of their own, which it returns."""

    def _parsed(self) -> ast.FunctionDef:
        tree = copy.deepcopy(super()._parsed())
        first = next(iter(self.signature.parameters))
        names = dict.fromkeys(
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_of(node, first)
        )
        _Renamed(first, names).visit(tree)
        if names:
            end = tree.body[-1]
            variables: list[ast.expr] = [_variable(first, name, ast.Load(), end) for name in names]
            keys: list[ast.expr | None] = [ast.copy_location(ast.Constant(name), end) for name in names]
            tree.body.append(ast.copy_location(ast.Return(ast.copy_location(ast.Dict(keys, variables), end)), end))
        return tree


class _Renamed(ast.NodeTransformer):
    def __init__(self, owner: str, names: dict[str, None]) -> None:
        self.owner, self.names = owner, names

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if _is_of(node, self.owner) and node.attr in self.names:
            return _variable(self.owner, node.attr, node.ctx, node)
        return self.generic_visit(node)


def _is_of(node: ast.Attribute, owner: str) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == owner


def _variable(owner: str, name: str, ctx: ast.expr_context, at: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(f"{owner}.{name}", ctx), at)


_INITIALISERS: Final[dict[FunctionType, Func]] = {}


def _initialiser(init: FunctionType) -> Func:
    if init not in _INITIALISERS:
        made = Func(init)
        made.source = _Initialiser(init)
        _INITIALISERS[init] = made
    return _INITIALISERS[init]
