"""Objects of Python's classes that a kernel makes: ``Ray(origin, direction)`` is a struct of what ``__init__`` sets."""

from __future__ import annotations

import ast
import copy
import enum
from types import FunctionType, MemberDescriptorType
from typing import Any, Final

from quadpy.core.records import RecordType, function_of
from quadpy.core.source import Span
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, func_of, is_method
from quadpy.lang.dependencies import MISSING
from quadpy.lang.displays import display_items
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.frames import Made
from quadpy.lang.functions import inline
from quadpy.lang.scope import lookup, static_object
from quadpy.lang.source import FunctionSource
from quadpy.lang.structs import changes_self, struct_value
from quadpy.lang.values import Record, Value, is_numeric, shape_text
from quadpy.lang.variables import assign_name

_LIBRARIES: Final = ("numpy", "scipy", "torch")
_NOT_CALLED: Final = ("__new__", "__setattr__", "__getattribute__")
"""Methods that say in Python how objects are made, and what their attributes are."""


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


def is_taken_over(t: Trace, fn: FunctionType) -> bool:
    """Whether a kernel of Taichi's may call ``fn``, a plain function of the user's: Taichi runs it while compiling.

    Not with loops, which Python unrolls, and a kernel would run in parallel.
    """
    if not t.options.as_taichi or is_our_module(fn.__module__) or fn.__module__.partition(".")[0] in _LIBRARIES:
        return False
    return not any(isinstance(node, (ast.For, ast.While)) for node in ast.walk(func_of(fn).source.tree))


def made_object(t: Trace, cls: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Record:
    """The struct that ``cls(*args, **kwargs)`` is: its members are what ``__init__`` assigns, its methods those of ``cls``."""
    special = next((name for name in _NOT_CALLED if getattr(cls, name) is not getattr(object, name)), "")
    if type(cls).__call__ is not type.__call__:
        special = f"{type(cls).__name__}.__call__"
    if special:
        t.fail_type(f"{cls.__name__} has {special}, which kernels do not call, so they cannot make its objects", span,
                    "make the object outside kernels, or write what it does into __init__")  # fmt: skip
    made = _run(t, cls, t.deps.attribute(cls, "__init__"), {}, args, kwargs, span)
    assert isinstance(made, Record)
    if not made.elems:
        t.fail_type(f"__init__ of {cls.__name__} sets no attributes of its first parameter", span,
                    "an object that a kernel makes is a struct of what __init__ assigns: self.x = x")  # fmt: skip
    return made


def _run(
    t: Trace, cls: type, fn: FunctionType, members: dict[str, Value], args: list[Value], kwargs: dict[str, Value], span: Span
) -> Value:  # fmt: skip
    """What ``fn``, a function of ``cls``, makes of an object that has ``members`` so far.

    It is the object, of a function that returns values together with them.
    """
    source = _maker(cls, fn)
    first = next(iter(source.source.signature.parameters))
    held = Made(cls, lambda: _object(t, cls, first, span))
    return inline(t, source, [held, *args], kwargs, span, {f"{first}.{name}": value for name, value in members.items()})


def _members(t: Trace, first: str) -> dict[str, Value]:
    """The attributes that the object has here, where ``first`` names it."""
    bound = [name for name in t.frame.env if name.startswith(f"{first}.")]
    return {name.removeprefix(f"{first}."): lookup(t, name, t.here()) for name in bound}


def _object(t: Trace, cls: type, first: str, span: Span) -> Record:
    members = _members(t, first)
    for name, value in members.items():
        if not (is_numeric(value) or isinstance(value, (tuple, list, dict))):
            t.fail_type(f"self.{name} is {shape_text(value)}, which an object that a kernel makes cannot hold", span,
                        "it holds numbers, vectors and structs; make the object outside kernels, or use the value itself")  # fmt: skip
        if hasattr(type(found := _in_class(cls, name)), "__set__") and not isinstance(found, MemberDescriptorType):
            t.fail_type(f"self.{name} is a {type(found).__name__} of {cls.__name__}, whose setter __init__ cannot call in kernels",
                        span, "give the attribute a name of its own, or assign what the setter assigns")  # fmt: skip
    record = struct_value(t, [members], {}, span) if members else Record(RecordType(()), ())
    return Record(RecordType(record.shape.members, _methods(t, cls, members), cls), record.elems)


def call_while_made(t: Trace, node: ast.Call) -> tuple[Value] | None:
    """Does ``super().__init__(…)``, ``Base.__init__(self, …)`` and calls of methods that assign attributes, in ``__init__``
    and in functions that it calls so; None for all else.
    """
    first = next(iter(t.frame.source.signature.parameters), "")
    made = t.frame.env.get(first)
    if not isinstance(made, Made) or not isinstance(node.func, ast.Attribute):
        return None
    owner, name, given = node.func.value, node.func.attr, node.args
    if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super":
        order: tuple[type, ...] = made.cls.__mro__
        cls = t.expr(owner.args[0]) if owner.args else t.deps.name(t.frame.source, "__class__")
        bases = order[order.index(cls) + 1 :] if cls in order else ()
    elif isinstance(owner, ast.Name) and owner.id == first:
        bases = made.cls.__mro__
    elif (
        given
        and isinstance(given[0], ast.Name)
        and given[0].id == first
        and isinstance(base := static_object(t, owner), type)
    ):
        bases, given = base.__mro__, given[1:]
    else:
        return None
    found = next((t.deps.attribute(base, name) for base in bases if name in vars(base)), None)
    if found is object.__init__ and not given:
        return (None,)
    if not (isinstance(found, Func) and changes_self(t, found)) and not (
        name == "__init__" and isinstance(found, FunctionType)
    ):
        return None
    fn = found.source.fn if isinstance(found, Func) else found
    span, args = t.span(node), [value for arg in given for value in display_items(t, [arg])]
    kwargs = {str(keyword.arg): t.expr(keyword.value) for keyword in node.keywords}
    made_now = _run(t, made.cls, fn, _members(t, first), args, kwargs, span)  # type: ignore[arg-type]  # a function
    result, changed = made_now if isinstance(made_now, tuple) else (None, made_now)
    assert isinstance(changed, Record)
    for member in changed.shape.names:
        assign_name(t, f"{first}.{member}", changed.member(member), span)
    return (result,)


def _in_class(cls: type, name: str) -> Any:
    """What the class has under this name, a property itself; None where it has nothing."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _methods(t: Trace, cls: type, members: dict[Any, Value]) -> tuple[tuple[str, object], ...]:
    """The functions and properties of ``cls``, which its objects have besides their members."""
    found: dict[str, object] = {}
    for name in dir(cls):
        raw = _in_class(cls, name)
        if isinstance(raw, FunctionType) and not name.startswith("__") and is_taken_over(t, raw):
            raw = func_of(raw)
        if name in members or not (isinstance(function_of(raw), Func) or isinstance(raw, property)):
            continue
        if t.deps.attribute(cls, name) is not MISSING:
            found[name] = raw
    return tuple(found.items())


class _Maker(FunctionSource):
    """A function of ``cls`` while its object is made: attributes are variables of their own, and it returns the object."""

    def __init__(self, cls: type, fn: FunctionType) -> None:
        super().__init__(fn)
        self._cls = cls

    def _parsed(self) -> ast.FunctionDef:
        tree = copy.deepcopy(super()._parsed())
        first = next(iter(self.signature.parameters))
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_of(node, first)]
        names = {node.attr for node in nodes if isinstance(node.ctx, ast.Store) or not hasattr(self._cls, node.attr)}
        end = ast.copy_location(ast.Return(None), tree.body[-1])
        tree.body.append(end)
        results = any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(tree))
        _Renamed(first, names, results=results).visit(tree)
        return tree


class _Renamed(ast.NodeTransformer):
    def __init__(self, owner: str, names: set[str], *, results: bool) -> None:
        self.owner, self.names, self.results = owner, names, results

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if _is_of(node, self.owner) and node.attr in self.names:
            return ast.copy_location(ast.Name(f"{self.owner}.{node.attr}", node.ctx), node)
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        made: ast.expr = ast.copy_location(ast.Name(self.owner, ast.Load()), node)
        if self.results:
            value = node.value or ast.copy_location(ast.Constant(None), node)
            made = ast.copy_location(ast.Tuple([value, made], ast.Load()), node)
        return ast.copy_location(ast.Return(made), node)


def _is_of(node: ast.Attribute, owner: str) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == owner


_MAKERS: Final[dict[tuple[type, FunctionType], Func]] = {}


def _maker(cls: type, fn: FunctionType) -> Func:
    if (cls, fn) not in _MAKERS:
        made = Func(fn)
        made.source = _Maker(cls, fn)
        _MAKERS[cls, fn] = made
    return _MAKERS[cls, fn]
