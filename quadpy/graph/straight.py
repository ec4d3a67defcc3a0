"""Functions that hand their parameters to kernels, and do nothing else with them.  Owns: Straight, Note, straight_of.

Of such a function it is known, without running it, what other arguments change: the arguments of its kernels, by name.
Its syntax tree says whether it is one: a parameter stands nowhere but as an argument of a call, no call but of a kernel is
made, and nothing but a loop over a range, which no parameter decides, has a say in what comes when.
Imports: the standard library and arrays.
"""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from quadpy.runtime.ndarray import ndarray

__all__ = ["Note", "Straight", "straight_of"]

_NOTE: Final = "$note"
_VALUES: Final = (
    ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip
_NO_STEPS: Final = frozenset(("PUSH_NULL", "PRECALL", "CACHE", "NOP", "EXTENDED_ARG"))
_SPELLED: Final = {"LOAD_METHOD": "LOAD_ATTR", "CALL_METHOD": "CALL", "CALL_FUNCTION": "CALL"}
_OTHERWISE: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@dataclass(frozen=True, slots=True)
class Note:
    """A call of a kernel: for each argument the parameter of the function that it is, or None, and else what it is."""

    kernel: Any
    names: tuple[str | None, ...]
    arguments: tuple[Any, ...]

    def given(self, known: Mapping[str, Any]) -> list[Any]:
        """The arguments, where the function's parameters are ``known``."""
        return [a if name is None else known[name] for name, a in zip(self.names, self.arguments, strict=True)]


class Straight:
    """Such a function, which notes its calls of kernels while it runs; ``notes`` are None where it made another call.

    ``results`` are the names that it returns, and ``in_tuple`` says how; of ``shaped``, which must be arrays, it reads the
    extents.
    """

    def __init__(self, function: types.FunctionType, code: types.CodeType, checked: _Checked) -> None:
        self.parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
        self.results, self.in_tuple, self.shaped = checked.results, checked.in_tuple, frozenset(checked.shaped)
        self.notes: list[Note] | None = None
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        cells[_NOTE] = types.CellType(self._note)
        closure = tuple(cells[name] for name in code.co_freevars)
        self._function = types.FunctionType(code, function.__globals__, function.__name__, None, closure)

    def __call__(self, *args: Any) -> Any:
        """As the function itself."""
        self.notes = []
        return self._function(*args)

    def _note(self, callee: Any, names: tuple[str | None, ...], *args: Any) -> Any:
        result = callee(*args)
        if self.notes is not None and getattr(callee, "__quadpy_kernel__", False):
            others = tuple(a if name is None else None for name, a in zip(names, args, strict=True))
            self.notes.append(Note(callee, names, others))
        elif callee is not ndarray or any(names):
            self.notes = None
        return result


def straight_of(function: Callable[..., Any]) -> Straight | None:
    """``function`` as one that notes its kernels; None where more can depend on its parameters than their arguments."""
    if not isinstance(function, types.FunctionType):
        return None
    code = function.__code__
    plain = not (code.co_flags & _OTHERWISE or code.co_kwonlyargcount or function.__defaults__ or code.co_cellvars)
    if not plain or "range" in (*function.__globals__, *code.co_freevars, *code.co_varnames):
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    (definition,) = tree.body if len(tree.body) == 1 else (None,)
    if not isinstance(definition, ast.FunctionDef) or definition.name != function.__name__:
        return None
    checked = _Checked(frozenset(code.co_varnames[: code.co_argcount]))
    if not all(map(checked.allows, definition.body)):
        return None
    if not _is_code_of(_compiled(definition, function), code):
        return None  # its file is no longer what it was made from
    _Noting(code.co_varnames[: code.co_argcount]).visit(definition)
    compiled = _compiled(definition, function)
    return None if compiled is None else Straight(function, compiled, checked)


class _Checked:
    """What of a function's body was looked at."""

    def __init__(self, parameters: frozenset[str]) -> None:
        self._parameters = parameters
        self.results: tuple[str, ...] = ()
        self.shaped: set[str] = set()
        self.in_tuple = self._returned = False

    def allows(self, statement: ast.stmt) -> bool:
        """Whether the statement does nothing that a parameter could change but the arguments of calls."""
        if self._returned:
            return False
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return True
            case ast.Expr(value=ast.Call() as call):
                return self._call(call)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in self._parameters:
                return self._call(value) if isinstance(value, ast.Call) else self._without(value)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args, keywords=[])):
                fixed = name not in self._parameters and all(map(self._without, args)) and not statement.orelse
                return fixed and all(not isinstance(s, ast.Return) and self.allows(s) for s in statement.body)
            case ast.Return(value=None):
                self._returned = True
                return True
            case ast.Return(value=ast.Name(id=name)):
                self.results, self._returned = (name,), True
                return True
            case ast.Return(value=ast.Tuple(elts=elements)) if all(isinstance(e, ast.Name) for e in elements):
                self.results = tuple(e.id for e in elements if isinstance(e, ast.Name))
                self.in_tuple = self._returned = True
                return True
        return False

    def _call(self, call: ast.Call) -> bool:
        callee = self._without(call.func) and isinstance(call.func, (ast.Name, ast.Attribute))
        return callee and not call.keywords and all(self._is_parameter(a) or self._without(a) for a in call.args)

    def _is_parameter(self, e: ast.expr) -> bool:
        return isinstance(e, ast.Name) and e.id in self._parameters

    def _without(self, e: ast.AST) -> bool:
        """Whether an expression is a value that no parameter has a part in, but for the extents of arrays."""
        match e:
            case ast.Attribute(value=ast.Name(id=name), attr="shape") if name in self._parameters:
                self.shaped.add(name)
                return True
            case ast.Subscript(value=ast.Attribute(attr="shape") as shape, slice=ast.Constant()):
                return isinstance(shape.value, ast.Name) and self._without(shape)
        known = isinstance(e, _VALUES) and not (isinstance(e, ast.Name) and e.id in self._parameters)
        return known and all(map(self._without, ast.iter_child_nodes(e)))


class _Noting(ast.NodeTransformer):
    """Calls of statements become calls by way of ``_NOTE``."""

    def __init__(self, parameters: tuple[str, ...]) -> None:
        self._parameters = parameters

    def visit_Expr(self, statement: ast.Expr) -> ast.Expr:
        if isinstance(statement.value, ast.Call):
            statement.value = self._noted(statement.value)
        return statement

    def visit_Assign(self, statement: ast.Assign) -> ast.Assign:
        if isinstance(statement.value, ast.Call):
            statement.value = self._noted(statement.value)
        return statement

    def _noted(self, call: ast.Call) -> ast.Call:
        named = [a.id if isinstance(a, ast.Name) and a.id in self._parameters else None for a in call.args]
        names = ast.Tuple([ast.Constant(name) for name in named], ast.Load())
        return ast.copy_location(ast.Call(ast.Name(_NOTE, ast.Load()), [call.func, names, *call.args], []), call)


def _compiled(definition: ast.FunctionDef, function: types.FunctionType) -> types.CodeType | None:
    """The code of a function, with the names of the original's surroundings around it."""
    code, definition = function.__code__, copy.deepcopy(definition)
    definition.decorator_list, definition.returns = [], None
    for argument in definition.args.args:
        argument.annotation = None
    module = ast.parse("def around(): pass")
    (outer,) = module.body
    assert isinstance(outer, ast.FunctionDef)
    outer.args.args = [ast.arg(name) for name in (*code.co_freevars, _NOTE)]
    outer.body = [definition]
    ast.increment_lineno(ast.fix_missing_locations(module), code.co_firstlineno - 1)
    return _code_in(_code_in(compile(module, code.co_filename, "exec"), "around"), definition.name)


def _is_code_of(found: types.CodeType | None, code: types.CodeType) -> bool:
    """Whether both do the same, step by step; how a method is called depends on what else stands in a module."""
    return found is not None and list(_steps(found)) == list(_steps(code))


def _steps(code: types.CodeType) -> Iterator[tuple[str, object]]:
    for step in dis.get_instructions(code):
        if step.opname not in _NO_STEPS:
            jumps = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
            yield _SPELLED.get(step.opname, step.opname), None if jumps else repr(step.argval)


def _code_in(code: types.CodeType | None, name: str) -> types.CodeType | None:
    constants = code.co_consts if code is not None else ()
    return next((c for c in constants if isinstance(c, types.CodeType) and c.co_name == name), None)
