"""Python functions as syntax trees with source locations.

Python does not keep the text of functions that ``exec`` defines; while it runs, its caller has it.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import tokenize
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from quadpy.core.copying import Recipe
from quadpy.core.dtypes import meant
from quadpy.core.source import Span
from quadpy.errors import KernelNameError, KernelSourceError, KernelTypeError
from quadpy.lang.fingerprints import is_our_module, text_digest
from quadpy.lang.names import item_targets, local_names, reads, statics
from quadpy.lang.parsing import parse
from quadpy.lang.running import is_text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_DIGESTS: dict[str, tuple[list[str], str]] = {}
"""File -> its lines, shared by all functions from one version of the file, and their digest."""


class FunctionSource:
    """A function that the compiler may read; nothing is parsed before it is needed.

    Its text is the text of its file at the time of decoration: the file may be edited while the program runs.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        inner = inspect.unwrap(fn)
        self.fn = fn = inner if hasattr(inner, "__code__") else fn
        self.name = fn.__name__
        self.code = fn.__code__
        self.span = Span(self.code.co_filename, self.code.co_firstlineno)
        self._file = self._read()
        if not self._file and self.span.file.startswith("<"):
            self.span = Span(executed_file(fn), self.span.line)
            self._file = self._read()
        # No functools.cached_property: before Python 3.12 it has a lock, which a fork may leave locked forever.
        self._tree: ast.FunctionDef | None = None
        self._locals: frozenset[str] | None = None
        self._item_targets: frozenset[str] | None = None
        self._statics: frozenset[str] | None = None
        self._reads_underscore: bool | None = None
        self._signature: inspect.Signature | None = None

    @property
    def item_targets(self) -> frozenset[str]:
        """The names whose items the function assigns."""
        if self._item_targets is None:
            self._item_targets = item_targets(self.tree.body)
        return self._item_targets

    @property
    def statics(self) -> frozenset[str]:
        """The names of compile-time values: each assignment calls ``static``."""
        if self._statics is None:
            self._statics = statics(self.tree.body)
        return self._statics

    def throws_away(self, name: str) -> bool:
        """Whether ``name`` is the ``_`` of values that are not needed: the function never reads it."""
        if name != "_":
            return False
        if self._reads_underscore is None:
            self._reads_underscore = reads("_", self.tree.body)
        return not self._reads_underscore

    @property
    def tree(self) -> ast.FunctionDef:
        """The function's definition.

        Raises:
            KernelSourceError: the text cannot be found, as in a plain REPL or ``exec``, or is not a ``def``.
        """
        if self._tree is None:
            self._tree = self._parsed()
        return self._tree

    @property
    def locals(self) -> frozenset[str]:
        """Names that the function assigns: inside, they never refer to the module's names."""
        if self._locals is None:
            self._locals = local_names(self.tree.body)
        return self._locals

    @property
    def signature(self) -> inspect.Signature:
        """The parameters; ``default`` and ``annotation`` say what these are now."""
        if self._signature is None:
            self._signature = inspect.signature(self.fn)
        return self._signature

    def span_of(self, node: ast.AST) -> Span:
        """The position of ``node`` in the user's file."""
        line = getattr(node, "lineno", 1)
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0) or 0
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        if getattr(node, "end_lineno", line) != line:
            end = len(text.encode())
        if not text.isascii():  # Python counts bytes, editors count characters
            start, end = (len(text.encode()[:offset].decode(errors="ignore")) for offset in (start, end))
        return Span(self.span.file, self._first_line + line - 1, start, end)

    def span_of_parameter(self, name: str) -> Span:
        """The position of a parameter and its annotation; that of the function if it has none of this name, or no text."""
        found = self._parameter(name)
        return self.span if found is None else self.span_of(found)

    def annotation_text(self, name: str) -> str:
        """The annotation of a parameter as it is written; empty where there is no text."""
        found = self._parameter(name)
        return "" if found is None or found.annotation is None else ast.unparse(found.annotation)

    def _parameter(self, name: str) -> ast.arg | None:
        try:
            given = self.tree.args
        except KernelSourceError:
            return None
        starred = filter(None, (given.vararg, given.kwarg))
        known = (*given.posonlyargs, *given.args, *given.kwonlyargs, *starred)
        return next((each for each in known if each.arg == name), None)

    def file_digest(self) -> str:
        """The digest of the whole text of the file, for the keys of the disk cache; empty if there is no file."""
        lines, (known, digest) = self._text(), _DIGESTS.get(self.span.file, (None, ""))
        if known is not lines:
            digest = text_digest("".join(lines)) if lines else ""
            _DIGESTS[self.span.file] = lines, digest
        return digest

    def identity(self) -> str:
        """Identifies the function and the text that it comes from."""
        return f"{self.file_digest()}:{self.fn.__qualname__}:{self.span.line}"

    def recipe(self, options: Mapping[str, object]) -> Recipe:
        """How another process, which may not have the file, repeats what ``options`` made of the function."""
        return Recipe(
            self.fn,
            options,
            {name: self._known(name) for name in self.fn.__annotations__},
            self.span.file,
            self._text(),
        )

    def _known(self, name: str) -> Any:
        """The annotation of a parameter as an object: its text may name objects that only this process has."""
        try:
            return self.annotation(name)
        except (KernelNameError, KernelTypeError):
            return self.fn.__annotations__[name]

    def resolve(self, name: str) -> Any:
        """What a free name of the function means now: closure, module, builtins.

        Raises:
            KeyError: the name is bound nowhere.
        """
        if name in self.code.co_freevars and self.fn.__closure__:
            try:
                return self.fn.__closure__[self.code.co_freevars.index(name)].cell_contents
            except ValueError:
                raise KeyError(name) from None
        if name in self.fn.__globals__:
            return self.fn.__globals__[name]
        builtins = self.fn.__globals__["__builtins__"]
        table = builtins if isinstance(builtins, dict) else vars(builtins)
        return table[name]

    def names(self) -> list[str]:
        """The names that the function can use: from its closure, its module and Python."""
        builtins = self.fn.__globals__["__builtins__"]
        return [
            *self.code.co_freevars,
            *self.fn.__globals__,
            *(builtins if isinstance(builtins, dict) else dir(builtins)),
        ]

    def default(self, name: str, missing: Any) -> Any:
        """The default of a parameter; ``missing`` where it has none."""
        code, values = self.code, self.fn.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount][code.co_argcount - len(values) :]
        found: Any = {**dict(zip(names, values, strict=True)), **(self.fn.__kwdefaults__ or {})}.get(name, missing)
        return found

    def annotation(self, name: str) -> Any:
        """The annotation of a parameter, or of the ``return``, as an object where it was written as text too.

        None if there is none.

        Raises:
            KernelNameError: the text uses a name that neither the module nor a closure of the function has.
        """
        written = self.fn.__annotations__.get(name)
        return meant(self._evaluated(written, name) if isinstance(written, str) else written)

    def _evaluated(self, text: str, name: str) -> Any:
        cells = {name: self.resolve(name) for name in self.code.co_freevars if self._is_bound(name)}
        try:
            return eval(text, self.fn.__globals__, cells)  # noqa: S307  (the user's own annotation)
        except NameError as error:
            raise KernelNameError(
                f"the annotation {text!r} of {self.name} cannot be read: {error}", self.span_of_parameter(name),
                hint="with `from __future__ import annotations`, annotations can only use names of the module",
            ) from None  # fmt: skip
        except Exception as error:
            message = f"the annotation {text!r} of {self.name} cannot be read: {type(error).__name__}: {error}"
            raise KernelTypeError(message, self.span_of_parameter(name)) from error

    def _is_bound(self, name: str) -> bool:
        try:
            self.resolve(name)
        except KeyError:
            return False
        return True

    def _read(self) -> list[str]:
        """The lines of the file; functions from the same version of a file share one list."""
        linecache.checkcache(self.span.file)
        return linecache.getlines(self.span.file, self.fn.__globals__)

    def _text(self) -> list[str]:
        self._file = self._file or self._read()  # some notebooks provide the text after the cell has started
        return self._file

    def _parsed(self) -> ast.FunctionDef:
        first, lines = self.span.line, self._text()
        if self.code.co_name == "<lambda>":
            return self._parsed_lambda(lines)
        try:
            block = inspect.getblock(lines[first - 1 :])
        except (IndexError, SyntaxError, tokenize.TokenError):
            block = []
        if not block:
            raise KernelSourceError(
                f"the source of {self.name!r} cannot be found", self.span,
                hint="define the function in a file or a notebook cell; or keep the text that exec runs in a variable",
            )  # fmt: skip
        text = "".join(block)
        if not is_our_module(self.fn.__globals__.get("__name__", "")) and not is_text_of(text, self.code, first):
            raise KernelSourceError(
                f"the file of {self.name!r} has changed since Python imported it, so its text is not what runs",
                self.span, hint="restart the program",
            )  # fmt: skip
        wrapped = text[:1].isspace()  # a method or nested function: keeps its columns
        self._lines, self._first_line = (["", *block], first - 1) if wrapped else (block, first)
        try:
            (outer,) = parse(f"if True:\n{text}" if wrapped else text).body
        except (SyntaxError, ValueError):
            outer = ast.Pass()
        body: list[ast.stmt] = outer.body if wrapped and isinstance(outer, ast.If) else [outer]
        if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
            raise KernelSourceError(
                f"{self.name!r} is not a plain function", self.span,
                hint="async functions cannot be compiled; write a def",
            )  # fmt: skip
        _mangle(body[0], self.fn.__qualname__)
        return body[0]

    def _parsed_lambda(self, lines: list[str]) -> ast.FunctionDef:
        self._lines, self._first_line = lines, 1
        tree = lambda_tree(lines, self.code)
        if tree is None:
            raise KernelSourceError(
                "the source of this lambda cannot be found", self.span,
                hint="write it on a line of its own, in a file or a notebook cell, or make it a @qp.func",
            )  # fmt: skip
        return tree


def _mangle(tree: ast.FunctionDef, qualname: str) -> None:
    """Gives private names, ``self.__x`` in a method, the names that Python gives them: ``self._Class__x``."""
    cls = qualname.split(".")[-2].lstrip("_") if "." in qualname else ""
    if not cls or cls == "<locals>":
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{cls}{node.attr}"


def lambda_tree(lines: Sequence[str], code: CodeType) -> ast.FunctionDef | None:
    """The function that does what the lambda of ``code`` does; None where the file has no such lambda, or several."""
    try:
        tree = parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    here = (node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno)
    found = [node for node in here if _is_of(node, code)]
    if len(found) != 1:
        return None
    made = parse("def f(): return 0").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.args = found[0].args
    made.body = [ast.copy_location(ast.Return(found[0].body), found[0].body)]
    return ast.copy_location(made, found[0])


def _is_of(node: ast.Lambda, code: CodeType) -> bool:
    """Whether ``code`` comes from ``node``: by its names and constants, and by its place in the line."""
    expression = ast.Expression(node)
    made = next(each for each in compile(expression, "", "eval").co_consts if isinstance(each, CodeType))
    alike = sorted(_names(made)) == sorted(_names(code)) and made.co_consts == code.co_consts
    places = set(_places(code))
    return alike and (not places or (node.body.lineno, node.body.col_offset) in places)


def _names(code: CodeType) -> tuple[str, ...]:
    return (*code.co_varnames, *code.co_names, *code.co_freevars)


def _places(code: CodeType) -> Iterator[tuple[int | None, int | None]]:
    """Where the expressions of ``code`` begin; nothing before Python 3.11."""
    if hasattr(code, "co_positions"):
        yield from ((line, column) for line, _, column, _ in code.co_positions())


def executed_file(fn: Callable[..., Any]) -> str:
    """The name by which ``linecache`` knows the text of ``fn`` from now on; that of its file where no text is found."""
    text = _kept_by_python(fn) or next((text for text in _of_callers(fn) if _has(text, fn)), "")
    if not text:
        return fn.__code__.co_filename
    file = f"<exec {text_digest(text)[:8]}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    return file


def _kept_by_python(fn: Callable[..., Any]) -> str:
    """From Python 3.13 on, the text of ``python -c`` and of the prompt."""
    try:
        return "".join(inspect.findsource(fn)[0])
    except (OSError, TypeError):
        return ""


def _of_callers(fn: Callable[..., Any]) -> Iterator[str]:
    """The texts that name the function, where the code that defines it was started from."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as inspect.currentframe
    while frame is not None:
        caller = frame.f_back
        if frame.f_code.co_filename == fn.__code__.co_filename and caller is not None:
            values = (*caller.f_code.co_consts, *list(caller.f_locals.values()), *list(caller.f_globals.values()))
            yield from (value for value in values if isinstance(value, str) and f"def {fn.__name__}" in value)
        frame = caller


def _has(text: str, fn: Callable[..., Any]) -> bool:
    """Whether ``fn`` is what Python makes of the definition at its line in ``text``."""
    first = fn.__code__.co_firstlineno
    try:
        block = inspect.getblock(text.splitlines(keepends=True)[first - 1 :])
    except (IndexError, SyntaxError):
        return False
    return bool(block) and is_text_of("".join(block), fn.__code__, first, exact=True)
