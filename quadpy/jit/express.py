"""The quick way of a call that is like the last one.  Owns: express.  Imports: leaves, ``artifact``, ``runtime``.

A launch on a GPU takes Python longer than the driver, and most of that is looping over arguments.  So for each signature
a function is written that has no loop: it checks, packs, announces and launches, argument by argument.  It does what
``Kernel.__call__``, ``Variants.pick`` and ``GpuPlan.run`` do, for the plainest calls alone; it launches nothing and says
False where a call is any other, and the long way then does it, or says what is wrong with it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from quadpy.errors import ArgumentError, DeviceError
from quadpy.jit.formula import HELPERS, formula_source
from quadpy.jit.gpu_launch import MANY_BLOCKS, MOST_BLOCKS, MOST_THREADS, SPARE_BLOCKS
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.parameters import ArrayParameter, CheckedParameter, Parameter, TemplateParameter, VectorParameter
from quadpy.runtime.ndarray import NDArray
from quadpy.runtime.stream import Stream

__all__ = ["express"]


def express(
    parameters: Sequence[Parameter], args: Sequence[Any], plan: GpuPlan, pairs: Sequence[tuple[int, int]]
) -> Callable[..., bool] | None:
    """A function of a stream and the arguments, for calls with the types of ``args``; None where there is none.

    ``args`` have the views of arrays in place of the arrays.  ``pairs`` are those, by number, that must not overlap.
    """
    views = [given for parameter, given in zip(parameters, args, strict=True) if type(parameter) is ArrayParameter]
    if not plan.plain or any(view.type_key[0] != "device" or not view.writable for view in views):
        return None
    writer = _Writer(parameters, args, plan, pairs)
    names = writer.names
    exec("\n".join(writer.lines()), names)  # noqa: S102 - of this module's own text; no name or value of the user is in it
    found: Callable[..., bool] = names["launch"]
    return found


class _Writer:
    """The text of one function, and the objects that it refers to."""

    def __init__(
        self, parameters: Sequence[Parameter], args: Sequence[Any], plan: GpuPlan, pairs: Sequence[tuple[int, int]]
    ) -> None:
        self.parameters, self.args, self.plan, self.pairs = parameters, args, plan, pairs
        self.lists = [k for k, p in enumerate(parameters) if isinstance(p, (CheckedParameter, VectorParameter))]
        self.arrays = [k for k, parameter in enumerate(parameters) if type(parameter) is ArrayParameter]
        device = plan.device
        self.names: dict[str, Any] = {
            "NDArray": NDArray, "Stream": Stream, "device": device, "life": device.life, "default": device.default_stream,
            "current_stream": device.current_stream, "use": device.memory.use, "submit": device.driver.launch,
            "pack_into": plan.format.pack_into, "take_block": plan.take_block,
            "give_back": plan.spare.append,
            "misfits": (struct.error, OverflowError, TypeError, ArgumentError), "DeviceError": DeviceError, **HELPERS,
        }  # fmt: skip
        for k, (parameter, given) in enumerate(zip(parameters, args, strict=True)):
            match parameter:
                case ArrayParameter():
                    self.names |= {f"key{k}": given.type_key, f"wide{k}": given.wide}
                case TemplateParameter():
                    self.names |= {f"key{k}": parameter.key(given), f"key_of{k}": parameter.key}
                case CheckedParameter() | VectorParameter():
                    self.names[f"values{k}"] = parameter.values

    def lines(self) -> Iterator[str]:
        yield f"def launch(stream, {', '.join(f'a{k}' for k in range(len(self.parameters)))}):"
        yield f"    if {' or '.join(self._guards())}: return False"
        yield from self._ranges()
        yield "    try:"
        yield from self._components()
        yield "        block = take_block()"
        yield f"        pack_into(block.buffer, 0, {', '.join(self._values())})"
        yield from self._grids()
        yield "    except misfits: return False"
        yield "    if stream is None: on = current_stream()"
        yield "    elif type(stream) is Stream and stream.device is device: on = stream"
        yield "    else: return False"
        yield "    timeline, arguments = on.timeline, block.arguments"
        yield "    if on is not default: on._begin()"  # the default stream stays: nobody can destroy it meanwhile
        yield "    try:"
        yield from self._announcements()
        yield from self._launches()
        yield "    except DeviceError as error: raise at.named(error) from error"
        yield "    finally:"
        yield "        if on is not default: on._end()"
        yield "    give_back(block)"
        yield "    return True"

    def _guards(self) -> Iterator[str]:
        """What makes a call another one: the types first, since nothing else is known of what was given."""
        yield "life.ended is not None"
        for k in self.arrays:
            yield f"type(a{k}) is not NDArray or a{k}.type_key is not key{k} or a{k}.wide is not wide{k}"
            yield f"a{k}.device is not device"
        for k, parameter in enumerate(self.parameters):
            if isinstance(parameter, TemplateParameter):
                yield f"key_of{k}(a{k}) != key{k}"

    def _ranges(self) -> Iterator[str]:
        """Arrays that overlap, or lie over a field, have code of their own."""
        compared = sorted(
            {k for pair in self.pairs for k in pair} | (set(range(len(self.arrays))) if self._fields() else set())
        )
        for j in compared:
            yield f"    start{j} = a{self.arrays[j]}.pointer; end{j} = start{j} + a{self.arrays[j]}.nbytes"
        for i, j in self.pairs:
            yield f"    if start{i} < end{j} and start{j} < end{i}: return False"
        for start, nbytes in self._fields():
            for j in compared:
                yield f"    if start{j} < {start + nbytes} and {start} < end{j}: return False"

    def _fields(self) -> list[tuple[int, int]]:
        return [(field.pointer, field.nbytes) for field in self.plan.fields]

    def _components(self) -> Iterator[str]:
        """Vectors, and scalars that are looked at one by one, as lists of values."""
        for k in self.lists:
            yield f"        v{k} = values{k}(a{k})"

    def _values(self) -> Iterator[str]:
        for k, parameter in enumerate(self.parameters):
            if k in self.arrays:
                yield f"a{k}.pointer"
                yield from (f"a{k}.abi[{n}]" for n in range(1, len(self.args[k].abi)))
            elif k in self.lists:
                yield f"*v{k}"
            elif type(parameter) is not TemplateParameter:
                yield f"a{k}"
        yield from (str(start) for start, _ in self._fields())

    def _sources(self) -> list[str]:
        """Each value of the argument block, for the formulas of grids."""
        found: list[str] = []
        for k, parameter in enumerate(self.parameters):
            if k in self.arrays:
                found += [f"a{k}.abi[{n}]" for n in range(len(self.args[k].abi))]
            elif k in self.lists:
                found += [f"int(v{k}[{n}])" for n in range(len(self.names[f"values{k}"](self.args[k])))]
            elif type(parameter) is not TemplateParameter:
                found.append(f"int(a{k})")
        return found

    def _grids(self) -> Iterator[str]:
        sources = self._sources()
        for n, task in enumerate(self.plan.launches):
            if not task.parallel or task.formula is None:
                yield f"        blocks{n} = {task.blocks([])}"
                continue
            threads = task.block[0]
            yield f"        blocks{n} = -(-{formula_source(task.formula, sources)} // {threads})"
            if task.strides:
                yield f"        if blocks{n} > {task.most}: blocks{n} = {task.most}"
            else:
                yield f"        if blocks{n} > {min(MOST_BLOCKS, MOST_THREADS // threads - SPARE_BLOCKS)}: return False"
                if task.tiled_formula is not None:
                    yield f"        if blocks{n} >= {MANY_BLOCKS}:"
                    yield f"            blocks{n} = -(-{formula_source(task.tiled_formula, sources)} // {threads})"

    def _announcements(self) -> Iterator[str]:
        """As ``DeviceMemory.use``, which is called where the stream is new to the memory."""
        places = self.plan.places
        for n, k in enumerate(self.arrays):
            yield f"        memory = a{k}.block"
            yield from self._announcement("memory is not None and ", writes=places.written[n])
        for n, field in enumerate(self.plan.fields):
            if field.block is not None:
                self.names[f"memory{n}"] = field.block
                yield f"        memory = memory{n}"
                yield from self._announcement("", writes=places.written[len(self.arrays) + n])

    def _announcement(self, there: str, *, writes: bool) -> Iterator[str]:
        known = "timeline in memory.writers" if writes else "(memory.home is timeline or timeline in memory.guests)"
        yield f"        if {there}not {known}: use((memory,), timeline, writes={writes})"

    def _launches(self) -> Iterator[str]:
        for n, task in enumerate(self.plan.launches):
            self.names |= {f"task{n}": task, f"function{n}": task.function, f"threads{n}": task.block}
            yield f"        if blocks{n}:"
            yield f"            at = task{n}"
            yield f"            submit(function{n}, (blocks{n}, 1, 1), threads{n}, 0, on._handle, arguments)"
