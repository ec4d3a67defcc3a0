"""The result of a kernel, read from its scratch memory."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quadpy.core.artifact import ResultShape
from quadpy.core.dtypes import BY_NAME, Scalar
from quadpy.errors import ArgumentError
from quadpy.hostmath import ElementType, Struct, StructType, type_of
from quadpy.hostmath.struct_types import struct_type_of
from quadpy.runtime.device.blocks import ThreadValue
from quadpy.runtime.elements.numpy_types import SCALAR_OF, STORAGE, cast, decode
from quadpy.runtime.elements.values import wrap

if TYPE_CHECKING:
    from typing_extensions import Buffer

_CODES: Final = {"b": {1: "?"}, "i": {1: "b", 2: "h", 4: "i", 8: "q"}, "u": {1: "B", 2: "H", 4: "I", 8: "Q"},
                 "f": {2: "e", 4: "f", 8: "d"}}  # fmt: skip
_PACKINGS: Final = {
    scalar: struct.Struct("=" + _CODES[dtype.kind][dtype.itemsize]) for dtype, scalar in SCALAR_OF.items()
}
"""All types except bf16, which Python does not have."""


class ResultReader:
    """Reads the first slots of scratch memory, numbers of ``types``, in the shape that the kernel returned."""

    __slots__ = ("_shape", "_types", "nbytes")

    def __init__(self, types: Iterable[str], shape: ResultShape) -> None:
        self._types, self._shape = tuple(BY_NAME[name] for name in types), shape
        self.nbytes = 8 * len(self._types)

    def read(self, scratch: Buffer) -> object:
        """The result of the launch that wrote ``scratch``."""
        if self._shape == "scalar":
            return _read(scratch, 0, self._types[0])
        return _shaped(self._shape, ((_read(scratch, slot, type), type) for slot, type in enumerate(self._types)))


def _read(scratch: Buffer, slot: int, type: Scalar) -> object:
    """The number in a slot."""
    if (packing := _PACKINGS.get(type)) is not None:
        return packing.unpack_from(scratch, 8 * slot)[0]
    return decode(np.frombuffer(memoryview(scratch), STORAGE[type], 1, 8 * slot), type)[0].item()


def _struct(shape: dict[str, ResultShape], numbers: Iterator[tuple[object, Scalar]]) -> Struct:
    values: dict[str, object] = {}
    types: dict[str, ElementType | StructType] = {}
    for name, part in shape.items():
        if part == "scalar":
            values[name], types[name] = next(numbers)
        else:
            values[name] = value = _shaped(part, numbers)
            types[name] = struct_type_of(value) if isinstance(value, Struct) else type_of(value.dtype, value.shape)  # type: ignore[attr-defined]  # a vector
    return StructType(types)(values)


def _shaped(shape: ResultShape, numbers: Iterator[tuple[object, Scalar]]) -> object:
    """Numbers, each with its type, as a number, a vector or matrix, or a tuple of these."""
    if isinstance(shape, dict):
        return _struct(shape, numbers)
    if isinstance(shape, list):
        return tuple(_shaped(part, numbers) for part in shape)
    if isinstance(shape, tuple):
        flat, types = zip(*itertools.islice(numbers, math.prod(shape)), strict=True)
        return wrap(cast(np.array(flat), types[0]).reshape(shape), types[0])
    return next(numbers)[0]


_adjoint: Final[ThreadValue[Any]] = ThreadValue()

result_has: Final = _adjoint.during
"""Context manager: calls of backward kernels inside begin with this adjoint of the result, an array of one number."""


def adjoint_of_result() -> Any:
    """What the kernel that is called now returns has this adjoint, an array of one number.

    Raises:
        ArgumentError: there is none.
    """
    if (adjoint := _adjoint.get()) is None:
        raise ArgumentError(
            "the backward kernel of a kernel that returns a value is called by hand", hint="use qp.ad.Tape"
        )
    return adjoint
