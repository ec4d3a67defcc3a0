"""Dataclasses that cost little at import: their methods compare and show fields without code of their own.

``dataclasses`` compiles up to six functions for each class, which took a sixth of a first call without the cache.  Here
only ``__init__`` is compiled, when the first instance is made.  Type checkers see ``dataclasses.dataclass``.
"""

from __future__ import annotations

import dataclasses
import reprlib
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, **options: bool) -> Any:
        """Like ``dataclasses.dataclass``, for its options ``frozen``, ``eq``, ``repr``, ``slots`` and ``kw_only``."""

        def decorate(cls: type, *, eq: bool = options.pop("eq", True), show: bool = options.pop("repr", True)) -> type:
            undocumented = cls.__doc__ is None
            if undocumented:
                cls.__doc__ = cls.__name__  # otherwise dataclasses would make one of the signature
            made = dataclasses.dataclass(init=False, repr=False, eq=False, **options)(cls)
            if undocumented:
                made.__doc__ = None
            for name, method in _methods(made, frozen=frozen, eq=eq, show=show).items():
                if made.__dict__.get(name) is None:  # a class with its own __eq__ has None as __hash__
                    setattr(made, name, method)
            return made

        return decorate if cls is None else decorate(cls)


__all__ = ["dataclass"]


def _methods(cls: Any, *, frozen: bool, eq: bool, show: bool) -> dict[str, Any]:
    """The methods of a class with these options, by name."""
    found: dict[str, Any] = {"__init__": _first_init(cls, frozen=frozen)}
    if show:
        found["__repr__"] = _show
    if eq:
        key = _key([f.name for f in dataclasses.fields(cls) if f.compare])

        def equal(self: object, other: object) -> bool:
            return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

        found |= {"__eq__": equal, "__hash__": (lambda self: hash(key(self))) if frozen else None}
    if frozen:
        names = frozenset(f.name for f in dataclasses.fields(cls))

        def assign(self: object, name: str, value: object) -> None:
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def delete(self: object, name: str) -> None:
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        found |= {"__setattr__": assign, "__delattr__": delete}
        if "__slots__" in cls.__dict__:
            found |= {"__getstate__": _state, "__setstate__": _set_state}
    return found


def _key(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    """What tells the values of ``names`` in an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _first_init(cls: Any, *, frozen: bool) -> Callable[..., None]:
    """``__init__`` for the first instance: it compiles the one for all others, and puts it into its place."""

    def __init__(self: object, *args: object, **named: object) -> None:  # noqa: N807 - the name that errors show
        cls.__init__ = _compiled_init(cls, frozen=frozen)
        cls.__init__(self, *args, **named)

    return __init__


def _compiled_init(cls: Any, *, frozen: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
    params: dict[bool, list[str]] = {False: [], True: []}
    lines: list[str] = []
    for f in dataclasses.fields(cls):
        value = f.name
        default = "" if f.default is dataclasses.MISSING else f"=_default_{f.name}"
        known[f"_default_{f.name}"] = f.default
        if f.default_factory is not dataclasses.MISSING:
            known[f"_make_{f.name}"], default = f.default_factory, "=_missing"
            value = f"_make_{f.name}() if {f.name} is _missing else {f.name}"
        params[f.kw_only is True].append(f.name + default)
        lines.append(f"_set(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    given = ", ".join(["self", *params[False], *["*"] * bool(params[True]), *params[True]])
    exec(f"def __init__({given}):\n " + "\n ".join(lines or ["pass"]), known)  # noqa: S102 - made of names of fields
    init: Callable[..., None] = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


@reprlib.recursive_repr()
def _show(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _state(self: Any) -> list[object]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
