"""Tables of the reference, printed from the tables that the code itself uses."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
from collections.abc import Iterable, Sequence
from types import ModuleType

import quadpy.math
import quadpy.math.linalg
from quadpy import cli, errors, settings
from quadpy.dtypes import SCALARS, Scalar, promote
from quadpy.intrinsics import GROUPS
from quadpy.intrinsics.rows import Row
from quadpy.lang.decorators import Func
from quadpy.lang.grammar import GRAMMAR
from quadpy.lang.vecmethods import METHODS
from quadpy.runtime.elements.numpy_types import STORAGE
from quadpy.runtime.streams.event import Event
from quadpy.runtime.streams.manager import StreamManager
from quadpy.runtime.streams.stream import Stream
from quadpy.target import AMD_ARCHS

_MEMBERS = {
    Stream: ("handle", "synchronize", "query", "destroy", "from_handle", "__cuda_stream__"),
    Event: ("handle", "record", "wait", "synchronize", "query", "elapsed_time", "destroy"),
    StreamManager: (
        "create_stream", "destroy_stream", "synchronize_stream", "query_stream", "set_current_stream",
        "current_stream", "create_event", "destroy_event", "record_event", "synchronize_event", "query_event",
        "stream_wait_event", "elapsed_time", "malloc_async", "free_async",
    ),
}  # fmt: skip
"""What pages show of each class, in the order of use."""


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _code(text: str) -> str:
    """Docstrings mark code with two backticks, pages with one."""
    return " ".join(text.replace("``", "`").split())


def print_settings() -> str:
    rows = [
        (f"`{settings.variable(knob.name)}`", _default(knob.default), knob.metadata["doc"])
        for knob in dataclasses.fields(settings.Settings)
    ]
    return _table(("variable", "default", "meaning"), rows)


def _default(value: object) -> str:
    return "" if value is None else f"`{int(value)}`" if isinstance(value, bool) else f"`{value}`"


def print_errors() -> str:
    rows = []
    for name in errors.__all__:
        error = getattr(errors, name)
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        rows.append((f"`{name}`", bases, _code(inspect.getdoc(error) or "")))
    return _table(("error", "is a", "raised for"), rows)


def print_commands() -> str:
    parts = []
    for command in cli.SUBCOMMANDS:
        parser = argparse.ArgumentParser(
            prog=f"quadpy {command.NAME}",
            formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100),
        )
        command.add_arguments(parser)
        parts.append(f"## quadpy {command.NAME}\n\n{inspect.getdoc(command)}\n\n```text\n{parser.format_help()}```\n")
    return "\n".join(parts)


def print_builtins() -> str:
    parts = []
    for title, rows in GROUPS.items():
        table = _table(("name", "meaning"), [(f"`{_public(row)}`", _code(row.doc)) for row in rows])
        parts.append(f"## {title}\n\n{table}\n")
    return "\n".join(parts)


def _public(row: Row) -> str:
    """How users write a call."""
    return f"qp.{'simt.' if row.per_block else ''}{row.signature}"


def print_glsl() -> str:
    return _functions("qp.math", quadpy.math)


def print_linalg() -> str:
    return _functions("qp", quadpy.math.linalg)


def _functions(prefix: str, module: ModuleType) -> str:
    rows = []
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, Func):
            parameters = ", ".join(inspect.signature(value.source.fn).parameters)
            rows.append((f"`{prefix}.{name}({parameters})`", _code(inspect.getdoc(value) or "")))
    return _table(("name", "meaning"), rows)


def print_methods() -> str:
    """The methods of vectors and matrices in kernels."""
    rows = []
    for name, rule in METHODS.items():
        parameters = [str(p.replace(annotation=p.empty)) for p in inspect.signature(rule).parameters.values()][3:]
        rows.append((f"`{name}({', '.join(parameters)})`", _code(inspect.getdoc(rule) or "")))
    return _table(("method", "value"), rows)


def print_missing() -> str:
    """What kernels do not have of Python's grammar."""
    rows = dict.fromkeys((f"`{word}`", hint) for word, hint in GRAMMAR.missing.values())
    return _table(("Python", "instead"), rows)


def print_members(name: str) -> str:
    cls, shown = next((cls, shown) for cls, shown in _MEMBERS.items() if cls.__name__ == name)
    rows = []
    for member in shown:
        meaning, _, raises = (inspect.getdoc(getattr(cls, member)) or "").partition("Raises:")
        rows.append((f"`{member}{_signature(getattr(cls, member))}`", _code(meaning), _code(raises)))
    return _table(("name", "meaning", "raises"), rows)


def _signature(member: object) -> str:
    """The parameters of a method, without ``self`` and types; nothing for an attribute."""
    if not callable(member):
        return ""
    parameters = inspect.signature(member).parameters.values()
    shown = (p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self")
    return f"({', '.join(map(str, shown))})"


def print_scalars() -> str:
    kinds = {"bool": "true or false", "int": "signed integer", "uint": "unsigned integer", "float": "floating point"}
    rows = [(f"`qp.{s}`", kinds[s.kind], s.bits, s.nbytes, f"`{STORAGE[s]}`") for s in SCALARS]
    return _table(("type", "kind", "bits", "bytes in an array", "NumPy's dtype"), rows)


def print_promotion() -> str:
    def row(a: Scalar) -> list[str]:
        return [f"**{a}**", *(promote(a, b).name for b in SCALARS)]

    return _table(("", *map(str, SCALARS)), map(row, SCALARS))


def print_targets() -> str:
    rows = [
        (
            f"`{arch.name}`",
            arch.series,
            " or ".join(map(str, arch.wave_sizes)),
            arch.vgprs,
            arch.max_waves,
            arch.lds_bytes >> 10,
            arch.code_object // 100,
        )
        for arch in AMD_ARCHS.values()
    ]
    head = ("target", "generation", "threads in a wave", "VGPRs of a SIMD", "waves of a SIMD", "LDS of a block, KiB", "code object version")  # fmt: skip
    return _table(head, rows)
