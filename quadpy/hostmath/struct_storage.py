"""The stored form of structs: members of structured NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from quadpy.hostmath.struct_types import StructType, struct_type_of
from quadpy.hostmath.structs import Struct, inside, made_of
from quadpy.runtime.elements.numpy_types import admit, decode, encode
from quadpy.runtime.elements.types import element_of
from quadpy.runtime.elements.values import Elements, wrap


def from_stored(type: StructType, stored: Any, store: Callable[[tuple[str, ...], Any], None] | None = None) -> Struct:
    """A value from the stored form of its members, by name; ``store`` writes a member back."""
    values: dict[str, Any] = {}
    for name, dtype in type.members.items():
        if isinstance(dtype, StructType):
            values[name] = from_stored(dtype, stored[name], inside(store, name))
        else:
            scalar, _ = element_of(dtype)
            part = None if store is None else lambda *_, name=name: store((name,), values[name])
            values[name] = wrap(decode(np.asarray(stored[name]), scalar), scalar, part)
    return made_of(type, values, store)


def to_stored(value: Struct, out: Any) -> None:
    """Writes the members of ``value`` to ``out``, a structured array."""
    for name, dtype in struct_type_of(value).members.items():
        part = value[name]
        if isinstance(part, Struct):
            to_stored(part, out[name])
        else:
            scalar, _ = element_of(dtype)
            numbers = part.to_numpy() if isinstance(part, Elements) else part
            out[name] = encode(admit(numbers, scalar), scalar)
