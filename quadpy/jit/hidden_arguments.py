"""The arguments that a launch adds to the caller's: where their values come from, and how they are packed.

A hidden argument is a row of ``ROWS``, and is read in code generation: by ``Functions.hidden_argument`` in the language's
rules, or as an operand of its name where ``codegen.abi.appended`` lists it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quadpy.artifact import CodeObject
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.device.current import next_launch

if TYPE_CHECKING:
    from typing_extensions import Buffer as WriteableBuffer

__all__ = ["ROWS", "HiddenArguments", "Row"]


_WORD: Final = struct.Struct("=Q")


@dataclass(frozen=True, slots=True)
class Origins:
    """What the values of one plan are taken from: the fields, in the order of the parameters, and ``qp.init``'s seed."""

    fields: Iterator[Field]
    seed: int


@dataclass(frozen=True, slots=True)
class Row:
    """One hidden argument.

    of_plan    gives the value that all launches of a plan share
    of_launch  gives the value of the next launch
    Without either it is the address of memory that each launch allocates on its stream (``HiddenArguments.memory``).
    """

    of_plan: Callable[[Origins], int] | None = None
    of_launch: Callable[[], int] | None = None


ROWS: Final = {
    "field": Row(of_plan=lambda origins: next(origins.fields).pointer),
    "seed": Row(of_plan=lambda origins: origins.seed),
    "launch": Row(of_launch=next_launch),
    "scratch": Row(),
}


class HiddenArguments:
    """The hidden arguments of one plan.

    fields  the kernel's fields, which its code names
    draws   whether a value depends on how many launches there were before
    memory  where the address of scratch memory goes in the argument block; None for a kernel without any
    """

    __slots__ = ("_parts", "_values", "draws", "fields", "memory", "seed")

    def __init__(self, code: CodeObject, fields: Iterable[Field] = (), seed: int = 0) -> None:
        self.fields, self.seed = tuple(fields), seed
        origins = Origins(iter(self.fields), seed)
        self._parts: list[int | Callable[[], int]] = []
        self.memory: int | None = None
        for hidden in code.hidden:
            row = ROWS[hidden.name]
            if row.of_plan is not None:
                self._parts.append(row.of_plan(origins))
            elif row.of_launch is not None:
                self._parts.append(row.of_launch)
            else:
                self.memory = hidden.offset
        self._values = tuple(part for part in self._parts if isinstance(part, int))
        self.draws = len(self._values) < len(self._parts)

    def values(self) -> Sequence[int]:
        """The values of the next launch, which come after the caller's in the layout."""
        return [part if isinstance(part, int) else part() for part in self._parts] if self.draws else self._values

    def pack_memory(self, block: WriteableBuffer, address: int) -> None:
        """Put the address of scratch memory into an argument block."""
        assert self.memory is not None
        _WORD.pack_into(block, self.memory, address)

    def with_memory(self, block: bytes, address: int) -> bytes:
        """``block``, which ends with the layout, and after it the address of scratch memory."""
        assert self.memory is not None
        return block.ljust(self.memory, b"\0") + _WORD.pack(address)

    def sources(self, names: dict[str, object]) -> Iterator[str]:
        """The same as Python expressions over ``names``, to which this adds."""
        for number, part in enumerate(self._parts):
            if isinstance(part, int):
                yield str(part)
            else:
                names[f"hidden{number}"] = part
                yield f"hidden{number}()"
