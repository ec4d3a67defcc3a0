"""Tables of the reference, printed from the tables that the code itself uses."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
from collections.abc import Iterable, Sequence

from quadpy import cli, settings
from quadpy.core.dtypes import SCALARS, Scalar, promote
from quadpy.core.target import AMD_ARCHS
from quadpy.lang.grammar import GRAMMAR
from quadpy.lang.vecmethods import METHODS
from quadpy.runtime.elements.numpy_types import STORAGE


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
