"""What Python functions that run while compiling may read of the objects that they are given.

Nobody sees these reads, but code names what it reads: an attribute of such an object is read if a function has its name,
or one of the functions that it names does.  Names that are computed (``getattr(self, f"n{k}")``) are not seen.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from quadpy.lang.arguments import MemberPath
from quadpy.lang.fingerprints import is_our_module

_DEEPEST: Final = 4
"""Steps from an object that a function is given to those inside it."""


def reads_of_call(
    fn: Callable[..., Any], given: Sequence[object], path_of: Callable[[Any], MemberPath | None]
) -> Iterator[tuple[MemberPath, object]]:
    """The attributes that ``fn`` may read of its object and of ``given``, and what they have; ``path_of`` says where objects are."""
    objects = [(path, value) for value in (getattr(fn, "__self__", None), *given) if (path := path_of(value))]
    if not objects:
        return
    names = _Names()
    names.add(fn)
    found: dict[MemberPath, object] = {}
    known = -1
    while known != (known := len(names.found) + len(found)):  # methods that are found name more
        for path, value in objects:
            _collect(names, path, value, found, _DEEPEST)
    yield from found.items()


class _Names:
    """The names in functions, and in the functions that these name."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._seen: set[CodeType] = set()

    def add(self, fn: object) -> None:
        fn = fn.__func__ if isinstance(fn, MethodType) else fn
        if not isinstance(fn, FunctionType) or is_our_module(fn.__module__) or fn.__code__ in self._seen:
            return
        self._seen.add(fn.__code__)
        names = _names_of(fn.__code__)
        self.found |= names
        scope: Mapping[str, object] = fn.__globals__
        for name in names & scope.keys():
            self.add(scope[name])
        for inner in inspect.getclosurevars(fn).nonlocals.values():
            self.add(inner)


def _names_of(code: CodeType) -> set[str]:
    inside = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names_of, inside))


def _collect(names: _Names, path: MemberPath, value: object, found: dict[MemberPath, object], depth: int) -> None:
    if not depth or isinstance(value, (type, ModuleType)) or is_our_module(type(value).__module__):
        return
    for name in sorted(names.found):
        if name.startswith("__"):
            continue
        raw = getattr(type(value), name, None)
        names.add(raw.fget if isinstance(raw, property) else raw)
        try:
            inner = getattr(value, name)
        except Exception:  # noqa: BLE001, S112 - it has no such attribute, or the user's code raises anything
            continue
        found[path.attribute(name)] = inner
        if hasattr(inner, "__dict__"):
            _collect(names, path.attribute(name), inner, found, depth - 1)
