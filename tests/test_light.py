"""Light dataclasses: what those of the standard library do, without code made at import."""

from __future__ import annotations

import ast
import copy
import dataclasses
import pickle
from pathlib import Path

import pytest

import quadpy
from quadpy.core import light


def classes(make):
    @make(frozen=True, slots=True)
    class Point:
        x: float
        y: list[int] = dataclasses.field(default_factory=list, compare=False)
        name: str = dataclasses.field(default="p", kw_only=True, repr=False)

    @make(frozen=True, slots=True)
    class Inner(Point):
        z: int = 3

    @make(slots=True)
    class Counter:
        n: int = 0

        def __post_init__(self) -> None:
            self.n += 1

    @make(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
    class Plain:
        n: int

    @make(frozen=True, slots=True)
    class Own:
        n: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    @make(frozen=True)
    class Empty:
        pass

    return Point, Inner, Counter, Plain, Own, Empty


LIGHT, FULL = classes(light.dataclass), classes(dataclasses.dataclass)
for made in LIGHT:
    globals()[made.__name__] = made  # pickle looks for them by name
    made.__qualname__ = made.__name__
ARGUMENTS = [
    [((1.0,), {}), ((1.0, [2]), {"name": "q"}), ((), {}), ((1, 2, 3), {}), ((1,), {"w": 2})],
    [((1.0,), {}), ((1.0, [2], 4), {"name": "q"}), ((), {"x": 1, "z": 2})],
    [((), {}), ((5,), {}), ((1, 2), {})],
    [((), {"n": 1}), ((1,), {})],
    [((1,), {}), ((2,), {})],
    [((), {}), ((1,), {})],
]


def result(run):
    """What ``run`` returns, or the kind of error."""
    try:
        return run()
    except (TypeError, AttributeError, IndexError) as error:
        return type(error)


def outcomes(cls, args, named):
    """What an object of ``cls`` with these arguments does; the kinds of errors."""
    try:
        made, again = cls(*args, **named), cls(*args, **named)
    except TypeError:
        return None
    fields = [f.name for f in dataclasses.fields(cls)]
    found = [fields, cls.__match_args__, made == again, made == 1, made != again, cls.__doc__]
    found += [[getattr(each, name) for name in fields] for each in (made, copy.copy(made), dataclasses.replace(made))]
    runs = [
        lambda: hash(made) == hash(again),
        lambda: repr(made).partition("(")[2],
        lambda: setattr(made, fields[0], 7),
    ]
    runs += [lambda: hash(made), lambda: delattr(made, fields[0])] if cls.__name__ in {"Point", "Own"} else []
    return [*found, *map(result, runs)]


@pytest.mark.parametrize("number", range(len(LIGHT)))
def test_they_do_what_full_ones_do(number):
    for args, named in ARGUMENTS[number]:
        ours, theirs = (outcomes(each[number], args, named) for each in (LIGHT, FULL))
        if theirs is not None and "(" in (theirs[5] or ""):  # dataclasses show the signature where there is no text
            theirs[5] = None
        if LIGHT[number].__name__ == "Plain":  # its repr has an address
            ours, theirs = ours and ours[:-2], theirs and theirs[:-2]
        assert ours == theirs


def test_they_can_be_pickled():
    for made in (LIGHT[0](1.0, [2], name="q"), LIGHT[1](1.0, z=7), LIGHT[2](4)):
        same = pickle.loads(pickle.dumps(made))
        assert [getattr(same, f.name) for f in dataclasses.fields(made)] == [
            getattr(made, f.name) for f in dataclasses.fields(made)
        ]


def test_instances_of_other_classes_differ():
    point, inner = LIGHT[0](1.0), LIGHT[1](1.0)
    assert point != inner
    assert LIGHT[0](1.0) == point != LIGHT[0](2.0)


@pytest.mark.parametrize("folder", ["codegen", "intrinsics", "ir", "jit", "lang", "mathlib"])
def test_the_compiler_has_no_others(folder):
    """Each of others takes half a millisecond of the first call of a kernel."""
    for file in (Path(quadpy.__file__).parent / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
                assert "dataclass" not in {name.name for name in node.names}, file
