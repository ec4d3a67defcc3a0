"""Python functions that run while compiling: a warm start calls them again, with the same arguments.

Of the arguments, a record has plain values and containers of these, and of other objects where they come from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

PLAIN: Final = (type(None), bool, int, float, str)


def packed_call(
    line: int, args: Sequence[Any], kwargs: Mapping[str, Any], spot_of: Callable[[Any], list[int] | None]
) -> str | None:
    """A call at ``line`` as text; None if it has an argument whose origin is unknown, or one list in two places.

    ``spot_of`` says where an object comes from.
    """
    seen: set[int] = set()

    def packed(value: Any) -> Any:
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind in (list, dict):
            if id(value) in seen:
                raise ValueError  # the function could see that they are one
            seen.add(id(value))
        if kind in (list, tuple):
            return [kind.__name__, *map(packed, value)]
        if kind is dict:
            return ["dict", *map(packed, value.items())]
        if (spot := spot_of(value)) is None:
            raise ValueError
        return ["at", *spot]

    try:
        return json.dumps([line, packed(tuple(args)), packed(dict(kwargs))], separators=(",", ":"))
    except ValueError:  # also of an integer with too many digits
        return None


def unpacked_call(text: str, at: Callable[[list[int]], Any]) -> tuple[int, Sequence[Any], Mapping[str, Any]]:
    """The line and the arguments of a call, from its text; ``at`` gives the object at a spot."""

    def unpacked(value: Any) -> Any:
        if type(value) is not list:
            return value
        kind, *items = value
        return at(items) if kind == "at" else _MADE[kind](map(unpacked, items))

    line, args, kwargs = json.loads(text)
    return line, unpacked(args), unpacked(kwargs)


_MADE: Final[dict[str, Callable[[Any], Any]]] = {"list": list, "tuple": tuple, "dict": dict}
