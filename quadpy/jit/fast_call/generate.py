"""The quick way of a call that is like the last one.  Owns: express, packer.  Imports: leaves, ``artifact``, ``runtime``.

A launch on a GPU takes Python longer than the driver, and most of that is looping over arguments.  So for each signature
a function is written that has no loop: it checks, announces, packs and launches, argument by argument, all tasks at once.
It does what ``Kernel.__call__``, ``Specialisation.pick`` and ``GpuPlan.run`` do, for the plainest calls alone; it launches
nothing and says False where a call is any other, and the long way then does it, or says what is wrong with it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from quadpy.errors import ArgumentError
from quadpy.jit.fast_call.argument_block import ArgumentBlock
from quadpy.jit.fast_call.launch_records import LaunchRecords
from quadpy.jit.fast_call.native_launch import HEAD
from quadpy.jit.formula import HELPERS, formula_source
from quadpy.jit.gpu_launch import MOST_BLOCKS, MOST_THREADS, SPARE_BLOCKS
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.parameters import ArrayParameter, Parameter, TemplateParameter
from quadpy.runtime.arrays.foreign_host import DEVICE_KINDS
from quadpy.runtime.device.current import State, current_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.life import THREAD
from quadpy.runtime.launch.launch import Bound
from quadpy.runtime.streams.stream import Stream

__all__ = ["express", "packer"]

_MISSING: Final = object()


def express(
    parameters: Sequence[Parameter], args: Sequence[Any], plan: GpuPlan, pairs: Sequence[tuple[int, int]]
) -> Callable[..., bool] | None:
    """A function of a stream and the arguments, for calls with the types of ``args``; None where there is none.

    ``args`` have the views of arrays in place of the arrays.  ``pairs`` are those, by number, that must not overlap.
    """
    return _written(parameters, args, plan, pairs, _Writer.lines)


def packer(
    parameters: Sequence[Parameter], args: Sequence[Any], plan: GpuPlan, pairs: Sequence[tuple[int, int]]
) -> Callable[..., Any] | None:
    """As ``express``, a function of a timeline and the arguments that launches nothing, as ``Binder.bind``."""
    return _written(parameters, args, plan, pairs, _Writer.packing)


def _written(
    parameters: Sequence[Parameter], args: Sequence[Any], plan: GpuPlan, pairs: Sequence[tuple[int, int]],
    lines: Callable[[_Writer], Iterator[str]],
) -> Callable[..., Any] | None:  # fmt: skip
    views = [given for parameter, given in zip(parameters, args, strict=True) if type(parameter) is ArrayParameter]
    if not plan.plain or not all(_is_plain(view, plan.device) for view in views):
        return None
    names: dict[str, Any] = {}
    text = "\n".join(lines(_Writer(parameters, args, plan, pairs, names)))
    exec(text, names)  # noqa: S102 - of this module's own text; no name or value of the user is in it
    found: Callable[..., Any] = names["launch"]
    return found


def _is_plain(view: Any, device: Device) -> bool:
    """Whether an array is there already, in one piece, for reading and writing."""
    return view.type_key[0] in DEVICE_KINDS and view.device is device and bool(view.writable)


class _Writer:
    """The text of one function, and in ``names`` the objects that it refers to."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        args: Sequence[Any],
        plan: GpuPlan,
        pairs: Sequence[tuple[int, int]],
        names: dict[str, Any],
    ) -> None:
        self.parameters, self.args, self.plan, self.pairs, self.names = parameters, args, plan, pairs, names
        self.arrays = [k for k, parameter in enumerate(parameters) if type(parameter) is ArrayParameter]
        self.block = ArgumentBlock(parameters, args, plan)
        self.records = LaunchRecords(plan.device.driver, plan.launches, self.block.nbytes)
        packed = struct.Struct(self.block.format(self.records.head.format, self.records.start - HEAD))
        device = plan.device
        names |= {
            "Stream": Stream, "device": device, "life": device.life, "move_last": device.timelines.move_last,
            "drain": device.reaper.drain,
            "here": device.streams.thread, "thread": THREAD, "State": State, "config": current_config(), "use": device.memory.use,
            "pack_into": packed.pack_into, "spare": self.records.spare, "take": self.records.spare.pop,
            "give_back": self.records.spare.append, "make": self.records.make, "settle": self.records.settle,
            "misfits": (struct.error, OverflowError, TypeError, AttributeError, ArgumentError, IndexError),
            "missing": _MISSING, **HELPERS, **self.block.names,
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        yield f"def launch(stream, {''.join(f'a{k}=missing, ' for k in range(len(self.parameters)))}*more):"
        yield "    try:"
        yield f"        if not life.direct or {' or '.join(self._guards())}: return False"  # closed, or perhaps captured
        yield "        if stream is None: on = here.uses[-1].stream"
        yield "        else: on = stream if type(stream) is Stream and not thread.in_host_function else None"
        yield "        if on is None or on.device is not device: return False"
        yield from self._memory()
        yield from self._overlaps()
        yield from self.block.components("        ")
        yield from self._grids()
        yield "        owner = on._ref.owner"  # the handle lives as long as this
        yield "        if owner is None: return False"
        yield "        record = take() if spare else make()"  # IndexError: another thread took the last one meanwhile
        yield "        block, submit, _ = record"
        yield f"        pack_into(block, {HEAD}, owner.handle, {', '.join([*self._blocks(), *self.block.values()])})"
        yield "    except misfits: return False"
        yield "    timeline = on.timeline"
        yield "    try:"
        yield from self._announcements()
        yield from self._submission()
        yield "    finally:"
        yield "        if timeline.ending: move_last(timeline, owner); owner = None; drain()"  # as Stream._call
        yield "    give_back(record)"
        yield "    return True"

    def packing(self) -> Iterator[str]:
        """As ``lines``, for ``packer``."""
        self.names |= {"pack": struct.Struct(self.block.format("=", 0)).pack, "Bound": Bound}
        yield f"def launch(timeline, {''.join(f'a{k}=missing, ' for k in range(len(self.parameters)))}*more):"
        yield "    try:"
        yield f"        if {' or '.join(self._guards())}: return False"
        yield from self._memory()
        yield from self._overlaps()
        yield from self.block.components("        ")
        yield from self._grids()
        grids = f"({''.join(f'{one}, ' for one in self._blocks())})"
        arrays = f"({''.join(f'a{k}, ' for k in self.arrays)})"
        yield f"        bound = Bound(pack({', '.join(self.block.values())}), {grids}, {arrays})"
        yield "    except misfits: return None"
        yield from (line[4:] for line in self._announcements())
        yield "    return bound"

    def _guards(self) -> Iterator[str]:
        """What makes a call another one.  An array's form is one object for its type, its device and how it lies there."""
        yield "more"
        yield "State.config is not config"
        for k, parameter in enumerate(self.parameters):
            if k in self.arrays:
                self.names[f"form{k}"] = self._form(self.args[k])
                yield f"a{k}.form is not form{k}"
            elif isinstance(parameter, TemplateParameter):
                given = self.args[k]
                self.names |= {f"given{k}": given, f"key{k}": parameter.key(given), f"key_of{k}": parameter.key}
                yield f"a{k} is not given{k} and key_of{k}(a{k}) != key{k}"

    def _form(self, view: Any) -> object:
        """That of quadpy's own arrays, where another library's was given by itself."""
        own = self.plan.device.form(view.type_key, wide=view.wide, lent=False)
        return getattr(view, "form", own)

    def _memory(self) -> Iterator[str]:
        if self.arrays:
            yield f"        {'; '.join(f'm{k} = a{k}.block' for k in self.arrays)}"

    def _overlaps(self) -> Iterator[str]:
        """Arrays that overlap, or lie over a field, have code of their own; quadpy's do where they share a block."""
        lent = {k for k in self.arrays if getattr(getattr(self.args[k], "block", None), "lent", False)}
        pairs = [(self.arrays[i], self.arrays[j]) for i, j in self.pairs]
        fields = [(field.pointer, field.nbytes) for field in self.plan.fields]
        for i, j in pairs:
            if not {i, j} & lent:
                yield f"        if m{i} is m{j} and m{i} is not None: return False"
        for k in sorted({k for pair in pairs if set(pair) & lent for k in pair} | (lent if fields else set())):
            yield f"        start{k} = a{k}.pointer; end{k} = start{k} + a{k}.nbytes"
        for i, j in pairs:
            if {i, j} & lent:
                yield f"        if start{i} < end{j} and start{j} < end{i}: return False"
        for start, nbytes in fields:
            for k in sorted(lent):
                yield f"        if start{k} < {start + nbytes} and {start} < end{k}: return False"

    def _blocks(self) -> Iterator[str]:
        yield from (f"blocks{n}" for n in range(len(self.plan.launches)))

    def _grids(self) -> Iterator[str]:
        sources = self.block.sources()
        for info in self.plan.code.tasks:
            if info.has_barrier and info.extent is not None:
                yield f"        if {formula_source(info.extent, sources)} % {info.block_dim}: return False"
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
                    yield f"        if blocks{n} >= {task.many}:"
                    yield f"            blocks{n} = min(blocks{n}, -(-{formula_source(task.tiled_formula, sources)} // {threads}))"

    def _announcements(self) -> Iterator[str]:
        """As ``DeviceMemory.use``, which is called where the stream is new to the memory."""
        written = self.plan.places.written
        for n, k in enumerate(self.arrays):
            yield from self._announcement(f"m{k}", f"m{k} is not None and ", writes=written[n])
        for n, field in enumerate(self.plan.fields):
            if field.block is not None:
                self.names[f"memory{n}"] = field.block
                yield from self._announcement(f"memory{n}", "", writes=written[len(self.arrays) + n])

    def _announcement(self, memory: str, there: str, *, writes: bool) -> Iterator[str]:
        known = f"{memory}.home is timeline or timeline in {memory}.guests"
        known = f"timeline in {memory}.writers" if writes else f"({known})"
        yield f"        if {there}not {known}: use(({memory},), timeline, writes={writes})"

    def _submission(self) -> Iterator[str]:
        slots, offset = self.plan.code.slots, self.plan.hidden.memory
        if offset is not None:
            self.names |= {"allocate": self.plan.device.allocate, "put_address": struct.Struct("=Q").pack_into}
            yield f"        scratch = allocate({8 * slots}, on)"
            yield f"        put_address(block, {self.records.start + offset}, scratch.pointer)"
        yield "        code = submit()"
        yield "        if code and not settle(record, code): return False"
