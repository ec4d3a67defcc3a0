"""Entries of the reference: signature, meaning, parameters, errors, members and an example of each public name."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import _examples
import _public

from quadpy import errors
from quadpy.intrinsics import Builtin
from quadpy.intrinsics.rows import Effect, Row, Syntax, Types
from quadpy.lang.decorators import Func

_SECTION: Final = re.compile(r"^(Args|Raises|Returns|Yields|Attributes):\n((?:    .*\n|\n)*(?:    .*)?)", re.MULTILINE)
_FIELD: Final = re.compile(r"^(?P<names>\w+(?:, \w+)*)  +(?P<text>\S.*(?:\n .*)*)", re.MULTILINE)
_TITLES: Final = {"Args": "Parameters", "Raises": "Errors"}
_STARS: Final = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
_NAME: Final = re.compile(r"``((?:qp\.)[\w.]+?)(\([^`]*\))?``")
_RULES: Final = {
    Types.FLOATS: "Takes floats of one type, or vectors and matrices of them, component by component; an integer becomes "
    "the default float type. The result has the type of the operands. Anything else is a `KernelTypeError` (outside kernels an `ArgumentError`).",
    Types.INTEGERS: "Takes integers of one type, or vectors and matrices of them, component by component. Anything else "
    "is a `KernelTypeError`.",
    Types.COUNT: "Takes an integer, or a vector or matrix of integers, component by component. Anything else is a "
    "`KernelTypeError`.",
    Types.OWN: "",
}  # fmt: skip


_TOGETHER: Final = {
    True: "All iterations of the block must come here: under a condition that may differ between them it is a "
    "`KernelSyntaxError`. A number of iterations that is not a multiple of the block is an `ArgumentError`.",
    False: "All lanes of the wave must come here. Where they do not agree, that is a `KernelDivergenceError` on the CPU, "
    "and undefined on a GPU.",
}  # fmt: skip
"""Whether a row belongs to blocks, and what it asks for."""


def print_entries(*words: str) -> str:
    """The entries of these names, in this order."""
    return "\n\n".join(_entry(name) for name in _public.named(list(words)))


def print_builtins(part: str) -> str:
    """The entries of builtins by groups; of blocks and waves for the part ``simt``."""
    groups = _public.builtins(part).items()
    return "\n\n".join(f"## {title}\n\n{print_entries(*names)}" for title, names in groups if names)


def print_constants(*names: str) -> str:
    """A table of names and values."""
    rows = [f"| <a id='{_public.anchor(name)}'></a>`{name}` | `{_public.public()[name]!r}` |" for name in names]
    return "\n".join(["| name | value |", "|---|---|", *rows]) + _example_of(names[0])


def print_names() -> str:
    """Every public name, with a link to its entry."""
    links = [f"[`{name}`]({target(name)})" for name in sorted(_public.public(), key=str.lower)]
    return "\n".join(f"- {link}" for link in links)


def target(name: str) -> str:
    first = _public.other_names().get(name, name)
    return f"{_public.pages()[first]}.md#{_public.anchor(first)}"


def _entry(name: str) -> str:
    value = _public.public()[name]
    others = ", ".join(f"`{other}`" for other in _public.others_of(name))
    parts = [
        f"### `{name}` {{ #{_public.anchor(name)} }}",
        f"```py\n{signature}\n```" if (signature := _signature(name, value)) != name else "",
        f"Also {others}." if others else "",
        *_meaning(value),
        _example_of(name),
        *(_member(f"{name}.{last}", member) for last, member in members(value).items()),
    ]
    return "\n\n".join(filter(None, parts))


def _meaning(value: Any) -> Iterator[str]:
    if isinstance(value, Builtin):
        yield _markdown(value.row.doc)
        yield from _rules(value.row)
    else:
        if inspect.isclass(value) and issubclass(value, BaseException):
            yield f"Derived from {', '.join(_error(base.__name__) for base in value.__bases__)}."
        yield _markdown(inspect.getdoc(value) or "")


def _rules(row: Row) -> Iterator[str]:
    """What the columns of a row say to users."""
    yield _RULES[row.types]
    if Effect.UPDATES in row.effects:
        yield "`x` is a variable, or an element of an array or field; anything else is a `KernelTypeError`."
    if Effect.CONVERGES in row.effects:
        yield _TOGETHER[row.name.startswith("block.")]
    if isinstance(row.lowering, Syntax):
        yield f"Written as the statement `{row.lowering.form}`; elsewhere it is a `KernelSyntaxError`."
    if row.per_block:
        yield "In a parallel loop at the top level of a kernel; elsewhere it is a `KernelSyntaxError`."
    elif row.is_kernel_only:
        yield "In kernels only; elsewhere it is a `KernelSyntaxError`."


def _signature(name: str, value: Any) -> str:
    if isinstance(value, Builtin):
        return f"{name}({value.row.parameters})"
    fn = value.source.fn if isinstance(value, Func) else value
    if not callable(fn) or (inspect.isclass(fn) and _takes_anything(fn)):
        return name
    signature = inspect.signature(fn)
    signature = _untyped(signature) if isinstance(value, Func) else signature
    result = "" if inspect.isclass(fn) or isinstance(value, Func) else f" -> {signature.return_annotation}"
    parameters = list(_parameters(signature))
    short = f"{name}({', '.join(parameters)}){result}"
    lines = "".join(f"    {parameter},\n" for parameter in parameters)
    return short if len(short) <= 100 else f"{name}(\n{lines}){result}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    """The parameters as they would be written."""
    kind = None
    for parameter in signature.parameters.values():
        if kind is parameter.POSITIONAL_ONLY and parameter.kind is not kind:
            yield "/"
        if parameter.kind is parameter.KEYWORD_ONLY and kind not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL):
            yield "*"
        kind = parameter.kind
        annotation = parameter.annotation
        typed = "" if annotation is parameter.empty else f": {annotation}"
        equal = " = " if typed else "="
        default = "" if parameter.default is parameter.empty else f"{equal}{parameter.default!r}"
        yield f"{_STARS.get(kind, '')}{parameter.name}{typed}{default}"
    if kind is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _takes_anything(cls: type) -> bool:
    """Whether users do not make objects of the class by calling it."""
    return issubclass(cls, BaseException) or cls.__init__ is object.__init__ or hasattr(cls, "_member_map_")


def _untyped(signature: inspect.Signature) -> inspect.Signature:
    """Functions of kernels are generic."""
    empty = inspect.Parameter.empty
    kept = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return signature.replace(parameters=kept, return_annotation=inspect.Signature.empty)


def members(value: Any) -> dict[str, Any]:
    """What users call and read of the objects of a class; the fields of records are in the text of the class."""
    if not inspect.isclass(value) or issubclass(value, BaseException):
        return {}
    shown = getattr(value, "__shown__", None) or (name for name in dir(value) if not name.startswith("_"))
    found = {name: inspect.getattr_static(value, name, None) for name in shown if not _is_of_tuples(value, name)}
    return {name: member for name, member in found.items() if inspect.isroutine(member) or isinstance(member, property)}


def _is_of_tuples(cls: type, name: str) -> bool:
    return issubclass(cls, tuple) and name in dir(tuple)


def _member(name: str, member: Any) -> str:
    called = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
    parameters = str(_method(called)) if callable(called) else ""
    last = name.rpartition(".")[2]
    return f"#### `{last}{parameters}` {{ #{_public.anchor(name)} }}\n\n{_markdown(inspect.getdoc(member) or '')}"


def _method(function: Any) -> inspect.Signature:
    signature = _untyped(inspect.signature(function))
    kept = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    return signature.replace(parameters=kept)


def _example_of(name: str) -> str:
    if (code := _examples.source_of(name)) is not None:
        return f"\n\n```py\n{code}\n```"
    if (home := _examples.home_of(name)) is not None:
        return f"Example: see [`{home}`]({target(home)})."
    return ""


def _markdown(doc: str) -> str:
    """A docstring as Markdown: sections as lists, aligned columns as tables, names as links."""
    doc = textwrap.dedent(doc)
    doc = _SECTION.sub(_section, doc)
    doc = re.sub(r"(?:^\w+(?:, \w+)*  +\S.*(?:\n .*)*\n?){1,}", _fields, doc, flags=re.MULTILINE)
    return _NAME.sub(_link, doc).strip()


def _section(found: re.Match[str]) -> str:
    items: list[str] = []
    for line in textwrap.dedent(found[2]).splitlines():
        name, colon, text = line.partition(": ")
        if colon and not line.startswith(" "):
            items.append(f"- {', '.join(map(_error, name.split(', ')))}: {text}")
        elif line:
            items[-1:] = [f"{items[-1]} {line.strip()}"] if items else [line]
    return f"**{_TITLES.get(found[1], found[1])}**\n\n" + "\n".join(items) + "\n\n"


def _fields(found: re.Match[str]) -> str:
    rows = [f"| `{each['names']}` | {' '.join(each['text'].split())} |" for each in _FIELD.finditer(found[0])]
    return "| attribute | |\n|---|---|\n" + "\n".join(rows) + "\n"


def _error(name: str) -> str:
    """A name in code, which is a link if an error has it."""
    known = name in errors.__all__
    return f"[`{name}`]({target(f'qp.{name}')})" if known else f"`{name}`"


def _link(found: re.Match[str]) -> str:
    name, call = found[1], found[2] or ""
    known = _public.other_names().get(name, name) in _public.pages()
    return f"[`{name}{call}`]({target(name)})" if known else found[0]
