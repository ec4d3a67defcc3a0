"""The pages of differences: each public name of Taichi and Quadrants, and what happens here.

``names`` has a file for each: a line for each module or class with its names.  ``-`` marks a name that quadpy refuses, with an
error that says what to write instead; all others resolve.  A line that begins with ``>`` says what is better about a name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import quadpy as qp

_DATA: Final = Path(__file__).parent / "names"

SAMPLES: Final[dict[str, Callable[[Any], object]]] = {
    "BufferView": lambda ti: ti.ndarray(ti.f32, 3)[1:],
    "Field": lambda ti: ti.field(ti.f32, 3),
    "FieldsBuilder": lambda ti: ti.FieldsBuilder(),
    "GUI": lambda ti: ti.GUI("sample", 8, show_gui=False),
    "Matrix": lambda _: qp.Matrix([[1.0, 2.0], [3.0, 4.0]]),
    "MatrixField": lambda ti: ti.Vector.field(2, ti.f32, 3),
    "MatrixNdarray": lambda ti: ti.Matrix.ndarray(2, 2, ti.f32, 3),
    "MatrixTensor": lambda ti: ti.Matrix.ndarray(2, 2, ti.f32, 3),
    "Ndarray": lambda ti: ti.ndarray(ti.f32, 3),
    "SNode": lambda ti: ti.root.dense(ti.i, 2),
    "ScalarField": lambda ti: ti.field(ti.f32, 3),
    "ScalarNdarray": lambda ti: ti.ndarray(ti.f32, 3),
    "Struct": lambda _: qp.Struct({"mass": 1.0}),
    "StructField": lambda ti: ti.types.struct(mass=ti.f32).field(shape=3),
    "Tensor": lambda ti: ti.ndarray(ti.f32, 3),
    "Texture": lambda ti: ti.Texture(ti.Format.rgba8, (2, 2)),
    "Vector": lambda _: qp.Vector([1.0, 2.0, 3.0]),
    "VectorNdarray": lambda ti: ti.Vector.ndarray(2, ti.f32, 3),
    "VectorTensor": lambda ti: ti.Vector.ndarray(2, ti.f32, 3),
    "ui.Camera": lambda ti: ti.ui.Camera(),
    "ui.Canvas": lambda ti: ti.ui.Window("sample", (8, 8), show_window=False).get_canvas(),
    "ui.Scene": lambda ti: ti.ui.Scene(),
    "ui.Window": lambda ti: ti.ui.Window("sample", (8, 8), show_window=False),
}
"""An object of each class whose names are those of its objects, and not of the class."""


class Group(NamedTuple):
    """The names of a module or class at ``path``; all of which ``better`` says something are in ``same``."""

    path: str
    same: tuple[str, ...]
    refused: tuple[str, ...]
    better: dict[str, str]


def groups_of(project: str) -> Iterator[Group]:
    """The table of ``taichi`` or ``quadrants``."""
    for part in (_DATA / f"{project}.txt").read_text(encoding="utf-8").split("\n\n"):
        head, *notes = part.strip().split("\n> ")
        path, _, names = head.partition(":")
        each = names.split()
        better = dict(note.split(": ", 1) for note in notes)
        yield Group(path, tuple(n for n in each if n[0] != "-"), tuple(n[1:] for n in each if n[0] == "-"), better)


def found(project: str, path: str, name: str) -> object:
    """What ``quadpy.compat`` has for a name; AttributeError for nothing."""
    package: Any = importlib.import_module(f"quadpy.compat.{project}")
    if path in SAMPLES:
        return getattr(SAMPLES[path](package), name)
    owner = package
    for part in path.split(".") if path != "." else ():
        owner = getattr(owner, part)
    return getattr(owner, name)


def refusal(project: str, path: str, name: str) -> str:
    """What the error for a refused name says to write instead."""
    try:
        found(project, path, name)
    except AttributeError as error:
        return str(error).partition("; ")[2]
    raise AssertionError(f"{project} {path}.{name} is there")


def print_differences(project: str) -> str:
    """Tables of the names that are the same, better and refused."""
    qp.init(arch=qp.cpu)
    short, groups = {"taichi": "ti", "quadrants": "qd"}[project], list(groups_of(project))
    called = lambda group, name: f"`{'.'.join(filter(None, (short, group.path.strip('.'), name)))}`"  # noqa: E731 - a shorthand
    same = [
        f"| `{short}{'.' + group.path if group.path != '.' else ''}` | {' '.join(f'`{name}`' for name in group.same)} |"
        for group in groups if group.same
    ]  # fmt: skip
    better = [f"| {called(group, name)} | {how} |" for group in groups for name, how in group.better.items()]
    instead: dict[str, list[str]] = {}
    for group in groups:
        for name in group.refused:
            instead.setdefault(refusal(project, group.path, name), []).append(called(group, name))
    refused = [f"| {' '.join(names)} | {text} |" for text, names in instead.items()]
    head = "|---|---|"
    return "\n".join([
        "### Better", "", "| Name | How |", head, *better, "", "### Refused", "", "| Names | Instead |", head, *refused, "",
        "### The same", "", "| | |", head, *same,
    ])  # fmt: skip
