"""What a replayed function was given, so that two calls can be compared.  Owns: Given, given_to, surroundings.

Imports: dtypes, the runtime's arrays, NumPy.

A call is like another when all that it was given is known to be: an array of quadpy's never changes where it lies and
what shape it has, and a number is its value.  Whatever may have changed inside (a NumPy array's contents, an object of
the user's) makes a call *fluid*: then the function is recorded again, which is always right.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

import numpy as np

from quadpy.dtypes import Scalar
from quadpy.runtime.current import Config
from quadpy.runtime.event import Event
from quadpy.runtime.field import Field
from quadpy.runtime.ndarray import NDArray
from quadpy.runtime.stream import Stream

__all__ = ["Given", "copied", "given_to", "surroundings"]

_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), np.generic)
_FIXED: Final = (
    NDArray,
    Field,
    Stream,
    Event,
    Config,
    Scalar,
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    np.dtype,
)
_DEEPEST: Final = 8


@dataclass(frozen=True, slots=True)
class Given:
    """One look at what a call was given.

    shape   types and extents: what is not alike here may need another graph
    values  numbers by value, objects by themselves; ``own`` of them are of the arguments
    fluid   whether something may have changed that cannot be seen here
    arrays  quadpy's arrays and fields
    """

    shape: Hashable
    values: tuple[object, ...]
    fluid: bool
    arrays: tuple[Any, ...]
    own: int = 0

    def within(self, around: Given) -> Given:
        """With what is read besides the arguments: any of it may change what is done, and none asks for another graph."""
        values = (*self.values, *around.values, ("around", around.shape))
        arrays = (*self.arrays, *around.arrays)
        return Given(self.shape, values, self.fluid or around.fluid, arrays, len(self.values))

    def same(self, other: Given) -> bool:
        """Whether two calls are known to do the same."""
        return self._is_like(other) and _same(self.values, other.values)

    def differs_in_arguments(self, other: Given) -> bool:
        """Whether two calls of one function are known to do the same but for their arguments, of types that are alike."""
        return (
            self._is_like(other) and self.own == other.own and _same(self.values[self.own :], other.values[self.own :])
        )

    def _is_like(self, other: Given) -> bool:
        fluid = self.fluid or other.fluid
        return not fluid and len(self.values) == len(other.values) and self.shape == other.shape


def _same(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    return all(a is b or (type(a) is type(b) is tuple and a == b) for a, b in zip(some, others, strict=True))


def given_to(*roots: object) -> Given:
    """A look at ``roots``, through tuples, lists, dicts and dataclasses."""
    shape: list[Hashable] = []
    values: list[object] = []
    arrays: list[Any] = []
    fluid = [False]
    for root in roots:
        _look(root, shape, values, arrays, fluid, 0)
    return Given(tuple(shape), tuple(values), fluid[0], tuple(arrays))


def _look(
    thing: Any, shape: list[Hashable], values: list[object], arrays: list[Any], fluid: list[bool], depth: int
) -> None:
    if isinstance(thing, NDArray):
        shape.append((thing.type_key, thing.shape, id(thing.device)))
        values.append(thing)
        arrays.append(thing)
    elif isinstance(thing, _PLAIN):
        shape.append(type(thing).__name__)
        values.append((type(thing).__name__, thing.hex() if isinstance(thing, float) else thing))
    elif isinstance(thing, (tuple, list, dict)) and depth < _DEEPEST:
        items = list(thing.items()) if isinstance(thing, dict) else list(thing)
        shape.append((type(thing).__name__, len(items)))
        for item in items:
            _look(item, shape, values, arrays, fluid, depth + 1)
    elif isinstance(thing, (*_FIXED, types.FunctionType)) or _is_quadpys(thing):
        shape.append(("fixed", id(thing)))
        values.append(thing)
        if isinstance(thing, Field):
            arrays.append(thing)
    elif isinstance(thing, np.ndarray):
        shape.append(("host", thing.dtype.str, thing.shape, thing.strides, thing.flags.writeable))
        values.append(thing)
        fluid[0] = True
    elif is_dataclass(thing) and not isinstance(thing, type) and depth < _DEEPEST:
        shape.append(("fixed", id(type(thing))))
        for member in fields(thing):
            _look(getattr(thing, member.name, None), shape, values, arrays, fluid, depth + 1)
    else:
        shape.append(("other", id(type(thing))))
        values.append(thing)
        fluid[0] = True


def _is_quadpys(thing: Any) -> bool:
    """Whether it is a kernel, or a function that is replayed."""
    return hasattr(type(thing), "__quadpy_kernel__") or hasattr(type(thing), "__quadpy_replay__")


def surroundings(function: Callable[..., Any]) -> Callable[[], tuple[object, ...]]:
    """What answers the values that ``function`` reads from around it: its closure, defaults and globals.

    Functions of the user's that are among them are looked through as well, as they are when this is called.
    """
    cells: list[types.CellType] = []
    names: list[tuple[dict[str, Any], str]] = []
    defaults: list[object] = []
    for found in _functions(function, set()):
        cells += found.__closure__ or ()
        defaults += [found.__defaults__, found.__kwdefaults__]
        known = found.__globals__
        names += [(known, name) for name in _names(found.__code__) if name in known and not name.startswith("__")]

    def look() -> tuple[object, ...]:
        contents = tuple(_content(cell) for cell in cells)
        return (*contents, *(space.get(name) for space, name in names), *defaults)

    return look


def _functions(function: Any, seen: set[int]) -> Iterator[types.FunctionType]:
    if hasattr(type(function), "__quadpy_replay__"):
        function = function.__wrapped__
    if not isinstance(function, types.FunctionType) or id(function) in seen or len(seen) > 64:
        return
    seen.add(id(function))
    yield function
    around = [_content(cell) for cell in function.__closure__ or ()]
    around += [function.__globals__.get(name) for name in _names(function.__code__)]
    for thing in around:
        yield from _functions(thing, seen)


def _names(code: types.CodeType) -> list[str]:
    """The names that ``code``, and what is defined in it, may read from globals."""
    inner = [name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names(constant)]
    return list(dict.fromkeys((*code.co_names, *inner)))


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def copied(result: Any) -> Any:
    """``result`` with containers of its own, so that a caller who changes one changes no later call's."""
    if type(result) is tuple:
        return tuple(map(copied, result))
    if type(result) is list:
        return list(map(copied, result))
    if type(result) is dict:
        return {key: copied(value) for key, value in result.items()}
    return result
