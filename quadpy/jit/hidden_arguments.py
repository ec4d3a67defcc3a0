"""The arguments that a launch adds to the caller's: the sources of their values, and their packing.

A hidden argument is a row of ``ROWS`` and a use: ``lang.hidden.hidden_argument`` in a rule of the language, or an operand
that ``codegen.abi.hidden_of`` adds after the layout.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from quadpy.core.artifact import CodeObject
from quadpy.core.light import dataclass
from quadpy.jit.plan import ArgumentValue
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.device.current import next_launch, repeated_launch
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.faults import host_record, number_of_first

if TYPE_CHECKING:
    from typing_extensions import Buffer


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a plan finds values: its code, the fields in the order of the parameters, ``qp.init``'s seed, the GPU or None."""

    code: CodeObject
    fields: Iterator[FieldMemory]
    seed: int
    device: Device | None


@dataclass(frozen=True, slots=True)
class Row:
    """One hidden argument: a word that all launches of a plan share, or one that each launch computes.

    ``of_memory`` says that it is the address of memory that a launch gets from the host; ``jit.launch_memory`` fills
    it in.  With none of these it is the address of scratch memory, which each launch allocates on its stream, or of the
    memory for results: the beginning of scratch memory, if nothing else is given.
    """

    of_plan: Callable[[Sources], int] | None = None
    of_launch: Callable[[], int] | None = None
    of_memory: bool = False


ROWS: Final = {
    "field": Row(of_plan=lambda sources: next(sources.fields).pointer),
    "seed": Row(of_plan=lambda sources: sources.seed),
    "launch": Row(of_launch=next_launch),
    "repeated": Row(of_launch=repeated_launch),
    "print": Row(of_memory=True),
    "shadow": Row(of_memory=True),
    "fault": Row(of_plan=lambda sources: sources.device.faults.record() if sources.device else host_record()),
    "sites": Row(of_plan=lambda sources: number_of_first(sources.code.sites)),
    "scratch": Row(),
    "results": Row(),
}

_WORD: Final = struct.Struct("=Q")


class HiddenArguments:
    """The hidden arguments of one plan.

    fields          those that the kernel uses
    constants       the values in the layout, where they come after the caller's; 0 for those that each launch computes
    counts          whether a value depends on how many launches there were before
    scratch_offset  where the address of scratch memory goes in the argument block; None for a kernel without any
    results_offset  the same for the memory for results
    """

    __slots__ = ("_computed", "_memory", "constants", "counts", "fields", "results_offset", "scratch_offset", "seed")

    def __init__(
        self, code: CodeObject, fields: Iterable[FieldMemory] = (), seed: int = 0, device: Device | None = None
    ) -> None:
        self.fields, self.seed = tuple(fields), seed
        sources = Sources(code, iter(self.fields), seed, device)
        self.constants: list[int] = []
        self._computed: list[tuple[int, Callable[[], int]]] = []  # which of the values each launch computes
        self.scratch_offset: int | None = None
        self.results_offset: int | None = None
        self._memory: dict[str, tuple[int, int]] = {}  # row -> number among the values, offset in the argument block
        for hidden in code.hidden:
            row = ROWS[hidden.name]
            if row.of_launch is not None:
                self._computed.append((len(self.constants), row.of_launch))
                self.constants.append(0)
            elif row.of_memory:
                self._memory[hidden.name] = len(self.constants), hidden.offset
                self.constants.append(0)
            elif row.of_plan is not None:
                self.constants.append(row.of_plan(sources))
            elif hidden.name == "results":
                self.results_offset = hidden.offset
            else:
                self.scratch_offset = hidden.offset
        self.counts = bool(self._computed)

    def values(self) -> Sequence[int]:
        """``constants``, and what the next launch computes."""
        if not self.counts:
            return self.constants
        values = self.constants.copy()
        for index, compute in self._computed:
            values[index] = compute()
        return values

    def expressions(self, names: dict[str, object]) -> Iterator[str]:
        """The same as Python expressions over ``names``, to which this adds."""
        computed = dict(self._computed)
        for index, value in enumerate(self.constants):
            names[f"hidden{index}"] = computed.get(index, value)
            yield f"hidden{index}()" if index in computed else str(value)

    def set_address(self, row: str, values: list[ArgumentValue], address: int) -> None:
        """Puts the address of a launch's memory into ``values``, which end with ``self.values()``."""
        values[self._memory[row][0] - len(self.constants)] = address

    def with_address(self, row: str, block: bytes, address: int) -> bytes:
        """``block`` with the address of a launch's memory."""
        start = self._memory[row][1]
        return block[:start] + _WORD.pack(address) + block[start + _WORD.size :]

    def pack_scratch(self, block: Buffer, address: int) -> None:
        """Puts the address of scratch memory, which begins with the results, into an argument block."""
        assert self.scratch_offset is not None
        _WORD.pack_into(block, self.scratch_offset, address)
        if self.results_offset is not None:
            _WORD.pack_into(block, self.results_offset, address)

    def with_scratch(self, block: bytes, address: int) -> bytes:
        """``block``, which ends with the layout, and after it the address of scratch memory."""
        assert self.scratch_offset is not None
        words = 1 if self.results_offset is None else 2
        return block.ljust(self.scratch_offset, b"\0") + words * _WORD.pack(address)
