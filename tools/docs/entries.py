"""Entries of the reference: signature, meaning, parameters, errors, members and an example of each public name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final

from quadpy.intrinsics import Builtin
from quadpy.intrinsics.rows import Effect, Row, Syntax, Types
from tools.docs import examples, public
from tools.docs.docstrings import error_link, to_markdown
from tools.docs.signatures import method_signature, signature_of

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
    True: "All iterations of the block must reach this call: under a condition that may differ between them, it is a "
    "`KernelSyntaxError`. A number of iterations that is not a multiple of the block is an `ArgumentError`.",
    False: "All lanes of the wave must reach this call. If they diverge, this is a `KernelDivergenceError` on the CPU, "
    "and the result is undefined on a GPU.",
}  # fmt: skip
"""Whether a row belongs to blocks, and what it asks for."""


def print_entries(*words: str) -> str:
    """The entries of these names, in this order."""
    return "\n\n".join(_entry(name) for name in public.named(list(words)))


def print_builtins(part: str) -> str:
    """The entries of builtins by groups; of blocks and waves for the part ``simt``."""
    groups = public.builtins(part).items()
    return "\n\n".join(f"## {title}\n\n{print_entries(*names)}" for title, names in groups if names)


def print_constants(*names: str) -> str:
    """A table of names and values."""
    rows = [f"| <a id='{public.anchor(name)}'></a>`{name}` | `{public.public()[name]!r}` |" for name in names]
    return "\n".join(["| name | value |", "|---|---|", *rows]) + _example_of(names[0])


def print_names() -> str:
    """Every public name, with a link to its entry."""
    links = [f"[`{name}`]({public.target(name)})" for name in sorted(public.public(), key=str.lower)]
    return "\n".join(f"- {link}" for link in links)


def _entry(name: str) -> str:
    value = public.public()[name]
    others = ", ".join(f"`{other}`" for other in public.others_of(name))
    parts = [
        f"### `{name}` {{ #{public.anchor(name)} }}",
        f"```py\n{signature}\n```" if (signature := signature_of(name, value)) != name else "",
        f"Also {others}." if others else "",
        *_meaning(value),
        _example_of(name),
        *(_member(f"{name}.{last}", member) for last, member in members(value).items()),
    ]
    return "\n\n".join(filter(None, parts))


def _meaning(value: Any) -> Iterator[str]:
    if isinstance(value, Builtin):
        yield to_markdown(value.row.doc)
        yield from _rules(value.row)
    else:
        if inspect.isclass(value) and issubclass(value, BaseException):
            yield f"Derived from {', '.join(error_link(base.__name__) for base in value.__bases__)}."
        yield to_markdown(inspect.getdoc(value) or "")


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


def members(value: Any) -> dict[str, Any]:
    """What users call and read of the objects of a class; the fields of records are in the text of the class."""
    if not inspect.isclass(value) or issubclass(value, BaseException):
        return {}
    shown = getattr(value, "__shown__", [name for name in dir(value) if not name.startswith("_")])
    found = {name: inspect.getattr_static(value, name, None) for name in shown if not _is_of_tuples(value, name)}
    return {name: member for name, member in found.items() if inspect.isroutine(member) or isinstance(member, property)}


def _is_of_tuples(cls: type, name: str) -> bool:
    return issubclass(cls, tuple) and name in dir(tuple)


def _member(name: str, member: Any) -> str:
    called = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
    parameters = str(method_signature(called)) if callable(called) else ""
    last = name.rpartition(".")[2]
    return f"#### `{last}{parameters}` {{ #{public.anchor(name)} }}\n\n{to_markdown(inspect.getdoc(member) or '')}"


def _example_of(name: str) -> str:
    if (code := examples.source_of(name)) is not None:
        return f"\n\n```py\n{code}\n```"
    if (home := examples.home_of(name)) is not None:
        return f"Example: see [`{home}`]({public.target(home)})."
    return ""
