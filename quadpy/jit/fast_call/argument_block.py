"""The argument block of an express way: what is packed, and where it lies.  Owns: ArgumentBlock.

Imports: leaves, ``runtime``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.parameters import (
    ArrayParameter,
    CheckedParameter,
    Parameter,
    SingleParameter,
    TemplateParameter,
    VectorParameter,
)

__all__ = ["ArgumentBlock"]


class ArgumentBlock:
    """The values of a kernel's arguments ``a0``, ``a1``, … as text, with the ``names`` that this refers to.

    ``nbytes`` are those of the block, with the address of scratch memory at its end where there is any.
    """

    def __init__(self, parameters: Sequence[Parameter], args: Sequence[Any], plan: GpuPlan) -> None:
        self._parameters, self._args, self._plan = parameters, args, plan
        self._lists = [k for k, p in enumerate(parameters) if isinstance(p, (CheckedParameter, VectorParameter))]
        self._slots = plan.code.layout.slots
        self.names: dict[str, Any] = {f"values{k}": parameters[k].values for k in self._lists}  # type: ignore[union-attr]
        self.nbytes = plan.block_bytes
        self._pieces = list(self._packed())

    def format(self, head: str, start: int) -> str:
        """What ``struct`` packs: ``head``, and from byte ``start`` on the block."""
        text, end = head, struct.calcsize(head)
        for offset, code, _ in self._pieces:
            text += f"{start + offset - end}x{code}"
            end = start + offset + struct.calcsize(f"={code}")
        return text

    def components(self, indent: str) -> Iterator[str]:
        """Vectors, and scalars that are looked at one by one, as lists of values."""
        for k in self._lists:
            yield f"{indent}v{k} = values{k}(a{k})"

    def values(self) -> Iterator[str]:
        """What is packed, in the order of the format."""
        return (text for _, _, text in self._pieces)

    def sources(self) -> list[str]:
        """Each value of the argument block, for the formulas of grids."""
        found: list[str] = []
        for k, parameter in enumerate(self._parameters):
            if type(parameter) is ArrayParameter:
                found += [f"a{k}.abi[{n}]" for n in range(len(self._args[k].abi))]
            elif k in self._lists:
                found += [f"int({text})" for text in self._of_list(k)]
            elif type(parameter) is not TemplateParameter:
                found.append(f"int(a{k})")
        return found

    def _packed(self) -> Iterator[tuple[int, str, str]]:
        """Offset, code and value of each piece: an array is one, unless its extents have 64 bits."""
        number = 0
        for texts in self._texts():
            slots = self._slots[number : number + len(texts)]
            number += len(texts)
            if slots and slots[0].part == "pointer" and len(texts) > 1 and all(slot.code == "i" for slot in slots[1:]):
                array = texts[0].partition(".")[0]
                yield slots[0].offset, f"{8 + 4 * (len(texts) - 1)}s", f"{array}.packed"
                continue
            yield from ((slot.offset, slot.code, text) for slot, text in zip(slots, texts, strict=True))

    def _texts(self) -> Iterator[list[str]]:
        """The values of each parameter, then of what the caller does not pass."""
        for k, parameter in enumerate(self._parameters):
            if type(parameter) is ArrayParameter:
                yield [f"a{k}.pointer", *(f"a{k}.abi[{n}]" for n in range(1, len(self._args[k].abi)))]
            elif k in self._lists:
                yield self._of_list(k)
            elif type(parameter) is SingleParameter:
                self.names[f"value{k}"] = parameter.value
                yield [f"a{k} if a{k}.__class__ is float else value{k}(a{k})"]
            elif type(parameter) is not TemplateParameter:
                yield [f"a{k}"]
        yield from ([source] for source in self._plan.hidden.sources(self.names))

    def _of_list(self, k: int) -> list[str]:
        return [f"v{k}[{n}]" for n in range(len(self.names[f"values{k}"](self._args[k])))]
