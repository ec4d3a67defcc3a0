"""The arguments of a generated function as Python text: its checks and the packed values."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Final, TypeAlias

from quadpy.core.artifact import AbiValue
from quadpy.errors import QuadpyError
from quadpy.jit.hidden_arguments import HiddenArguments
from quadpy.jit.misfits import MISFITS
from quadpy.jit.parameters import (
    Argument,
    ArrayParameter,
    CheckedParameter,
    Parameter,
    SingleParameter,
    StructParameter,
    VectorParameter,
)
from quadpy.runtime.arrays.view import ArrayView
from quadpy.runtime.launch.launch import Bound

FastCall: TypeAlias = Callable[..., "bool | tuple[object] | None"]
"""A function of a stream and the arguments, which launches calls like the one for which it was generated.

Returns True, or the result in a tuple.  For any other call it returns False or None and launches nothing: the plan then
launches the call, or reports its error.
"""

Bind: TypeAlias = Callable[..., Bound | None]
"""Packs the arguments of such a call: a function of a timeline and the arguments; None for any other call."""

_MISSING: Final = object()
REFUSALS: Final = (*MISFITS, AttributeError, IndexError, QuadpyError)
"""Exceptions of wrong arguments: the call itself then reports the error."""


class Arguments:
    """The parameters ``a0``, ``a1``, … of the function, and in ``names`` the objects that its text refers to.

    ``given`` are the arguments of the call that it repeats, with views in place of arrays; ``arrays`` are the numbers of
    those.
    """

    def __init__(self, parameters: Sequence[Parameter], given: Sequence[Argument], hidden: HiddenArguments) -> None:
        self.parameters, self.given = parameters, given
        self.arrays = [k for k, parameter in enumerate(parameters) if isinstance(parameter, ArrayParameter)]
        self.names: dict[str, object] = {"missing": _MISSING, "refusals": REFUSALS, "Bound": Bound}
        self.hidden = list(hidden.expressions(self.names))
        self.values = [self._values(k, parameter) for k, parameter in enumerate(parameters)]

    def head(self, first: str) -> str:
        """The line that begins the function."""
        return f"def call({first}, {''.join(f'a{k}=missing, ' for k in range(len(self.parameters)))}*more):"

    def view(self, k: int) -> ArrayView:
        """Array ``k`` of the call."""
        found: ArrayView = self.given[k]
        return found

    def guards(self, array: Callable[[int], str] | None = None) -> str:
        """An expression that is true of other calls; ``array`` gives that of an array, None if its type does not matter."""
        fewer = [f"a{len(self.parameters) - 1} is missing"] if self.parameters else []
        return " or ".join(["more", *fewer, *(map(array, self.arrays) if array else ())])

    def overlaps(
        self, pairs: Iterable[tuple[int, int]], arrays: Iterable[int], fields: Sequence[tuple[int, int]]
    ) -> Iterator[str]:
        """Lines that leave the function if memory overlaps: in ``pairs`` of arrays, or of ``arrays`` and ``fields``."""
        pairs, arrays = list(pairs), sorted(arrays if fields else ())
        for k in sorted({k for pair in pairs for k in pair}.union(arrays)):
            yield f"        start{k} = a{k}.pointer; end{k} = start{k} + a{k}.nbytes"
        for i, j in pairs:
            yield f"        if start{i} < end{j} and start{j} < end{i}: return None"
        for start, nbytes in fields:
            for k in arrays:
                yield f"        if start{k} < {start + nbytes} and {start} < end{k}: return None"

    def components(self) -> Iterator[str]:
        """Lines that compute the values of vectors, and of scalars that are checked one by one."""
        return (f"        v{k} = values{k}(a{k})" for k in range(len(self.parameters)) if f"values{k}" in self.names)

    def sources(self) -> list[str]:
        """Each value of the argument block as an integer, for the formulas of grids."""
        parts = zip(self.parameters, self.values, strict=True)
        return [
            text if isinstance(parameter, ArrayParameter) else f"int({text})"
            for parameter, texts in parts
            for text in texts
        ]

    def _values(self, k: int, parameter: Parameter) -> list[str]:
        """The values of parameter ``k`` in the argument block."""
        if isinstance(parameter, ArrayParameter):
            return [f"a{k}.pointer", *(f"a{k}.abi[{n}]" for n in range(1, len(self.view(k).abi)))]
        if isinstance(parameter, (CheckedParameter, VectorParameter, StructParameter)):
            self.names[f"values{k}"] = parameter.values
            return [f"v{k}[{n}]" for n in range(len(parameter.values(self.given[k])))]
        if isinstance(parameter, SingleParameter):
            self.names[f"value{k}"] = parameter.value
            return [f"a{k} if a{k}.__class__ is float else value{k}(a{k})"]
        return [f"a{k}"]


class PackedArguments:
    """The argument block for a GPU in few pieces: an array is one, unless its extents have 64 bits."""

    def __init__(self, arguments: Arguments, values: Sequence[AbiValue]) -> None:
        self._pieces: list[tuple[int, str, str]] = []  # offset, code of ``struct``, value
        rest = iter(values)
        for k, texts in enumerate([*arguments.values, *([text] for text in arguments.hidden)]):
            mine = [next(rest) for _ in texts]
            if k in arguments.arrays and len(texts) > 1 and all(value.code == "i" for value in mine[1:]):
                self._pieces.append((mine[0].offset, f"{8 + 4 * (len(texts) - 1)}s", f"a{k}.packed"))
            else:
                self._pieces += [(value.offset, value.code, text) for value, text in zip(mine, texts, strict=True)]

    def format(self, head: str, start: int) -> str:
        """The format for ``struct``: ``head``, and the block from byte ``start`` on."""
        text, end = head, struct.calcsize(head)
        for offset, code, _ in self._pieces:
            text += f"{start + offset - end}x{code}"
            end = start + offset + struct.calcsize(f"={code}")
        return text

    def values(self) -> Iterator[str]:
        """The packed values, in the order of the format."""
        return (text for _, _, text in self._pieces)


_FILE: Final = f"{__file__}: generated"
"""A file of this package, so that messages look for the user's line further out."""


@functools.lru_cache(256)
def _compiled(text: str) -> CodeType:
    """Kernels with equal parameters have equal texts."""
    return compile(text, _FILE, "exec")


def define(lines: Iterable[str], names: dict[str, object]) -> Callable[..., object]:
    """The function ``call`` of generated ``lines``, which refer to ``names``."""
    exec(_compiled("\n".join(lines)), names)  # noqa: S102 - text of this package; of the user's it holds names of attributes at most
    found = names["call"]
    assert callable(found)
    return found
