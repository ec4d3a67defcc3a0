"""Fast calls on a GPU: a generated function for calls that are like the last one.

A launch on a GPU takes Python longer than the driver, and most of that is looping over arguments.  Therefore, for each signature
a function without loops is generated: it checks, announces, packs and launches, argument by argument, all tasks at once.
It replaces ``Kernel.__call__``, ``Specialisation.pick`` and ``GpuPlan.run``, but only for the plainest calls.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from quadpy.jit.fast_call.arguments import Arguments, Bind, FastCall, PackedArguments, define
from quadpy.jit.fast_call.launch_records import LaunchRecords
from quadpy.jit.fast_call.native_launch import HEAD
from quadpy.jit.fast_call.observed import Tell
from quadpy.jit.formula import HELPERS, formula_source
from quadpy.jit.gpu_launch import MOST_BLOCKS, MOST_THREADS, SPARE_BLOCKS
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.parameters import Argument, Parameter
from quadpy.runtime.arrays.foreign_host import DEVICE_KINDS
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import State, current_config
from quadpy.runtime.device.life import THREAD
from quadpy.runtime.streams.stream import Stream


class GpuCalls:
    """Generates functions for calls whose arguments are like ``args``, which have views in place of arrays.

    ``pairs`` are arrays, by number, that must not overlap.
    """

    def __init__(
        self, parameters: Sequence[Parameter], args: Sequence[Argument], plan: GpuPlan, pairs: Sequence[tuple[int, int]]
    ) -> None:
        self.arguments, self.plan = Arguments(parameters, args, plan.hidden), plan
        self.arrays, self.names = self.arguments.arrays, self.arguments.names
        self.pairs = [(self.arrays[i], self.arrays[j]) for i, j in pairs]
        self.packed = PackedArguments(self.arguments, plan.code.layout.values)
        self.names |= {"State": State, "config": current_config(), "use": plan.device.memory.use, **HELPERS}

    @property
    def _are_plain(self) -> bool:
        """Whether a call consists of launches in order, with arrays that are on the device, contiguous and writable."""
        device, views = self.plan.device, [self.arguments.view(k) for k in self.arrays]
        ready = (v.type_key[0] in DEVICE_KINDS and v.device is device and v.writable for v in views)
        return self.plan.is_straight and all(ready)

    def fast_call(self, observed: FastCall) -> FastCall | None:
        """The fast call; None if there is none.  During observation or capture it is ``observed``."""
        self.names["observed"] = observed
        args = "".join(f", a{k}" for k in range(len(self.arguments.parameters)))
        head = f"    if not life.direct: return observed(stream{args}, *more)"
        return define(self.launching(head), self.names) if self._are_plain else None  # type: ignore[return-value]  # by its text

    def telling(self, tell: Tell) -> FastCall | None:
        """The same, but reports each call before its launch; only for quadpy's arrays, without a result."""
        self.names |= {"tell": tell, "NDArray": NDArray}
        head = f"    if {' or '.join(['more', *(f'type(a{k}) is not NDArray' for k in self.arrays)])}: return False"
        arrays = "".join(f"a{k}, " for k in self.arrays)
        values = ", ".join(
            f"*a{k}.abi" if k in self.arrays else text
            for k, texts in enumerate(self.arguments.values)
            for text in (texts[:1] if k in self.arrays else texts)
        )
        told = f"    told = tell(on, ({arrays}), [{values}])", "        told.done()"
        is_plain = self._are_plain and self.plan.result is None
        return define(self.launching(head, told), self.names) if is_plain else None  # type: ignore[return-value]  # by its text

    def bind(self) -> Bind | None:
        """A function that packs and announces, but launches nothing; None if there is none."""
        is_plain = self._are_plain and self.plan.result is None
        return define(self.binding(), self.names) if is_plain else None  # type: ignore[return-value]  # by its text

    def launching(self, head: str, told: tuple[str, str] = ("", "")) -> Iterator[str]:
        """The text of a function that begins with ``head``, and has the lines of ``told`` before and after the launch."""
        plan, device = self.plan, self.plan.device
        records = LaunchRecords(device.driver, plan.launches, plan.block_bytes)
        self.names |= {
            "Stream": Stream, "device": device, "life": device.life, "move_last": device.timelines.move_last,
            "drain": device.reaper.drain, "here": device.streams.thread, "thread": THREAD, "spare": records.spare,
            "pack_into": struct.Struct(self.packed.format(records.head.format, records.start - HEAD)).pack_into,
            "take": records.spare.pop, "give_back": records.spare.append, "make": records.make, "settle": records.settle,
        }  # fmt: skip
        yield self.arguments.head("stream")
        yield head
        yield "    try:"
        yield f"        if {self._guards()}: return False"
        yield "        if stream is None: on = here.uses[-1].stream"
        yield "        else: on = stream if type(stream) is Stream and not thread.in_host_function else None"
        yield "        if on is None or on.device is not device: return False"
        yield from self._checks()
        yield "        owner = on._ref.owner"  # the handle lives as long as this
        yield "        if owner is None: return False"
        yield "        record = take() if spare else make()"  # IndexError: another thread took the last one meanwhile
        yield "        block, submit, _ = record"
        values = ", ".join([*self._blocks(), *self.packed.values()])
        yield f"        pack_into(block, {HEAD}, owner.handle, {values})"
        yield "    except refusals: return False"
        yield "    timeline = on.timeline"
        yield told[0]
        yield "    try:"
        yield from (f"    {line}" for line in self._announcements())
        if plan.hidden.scratch_offset is not None:
            self.names |= {"allocate": device.allocate, "put_address": struct.Struct("=Q").pack_into}
            yield f"        scratch = allocate({8 * plan.code.slots}, on)"
            yield f"        put_address(block, {records.start + plan.hidden.scratch_offset}, scratch.pointer)"
        lands = False
        if (offset := plan.hidden.results_offset) is not None:
            lands, staging, where = "mapped" in device.driver.features, device.staging, "scratch.pointer"
            if lands:
                self.names |= {"landing": staging.landing, "landed": staging.landed, "broken": staging.settle}
                yield "        landed_at = landing()"
                where = "landed_at.buffers[0].pointer"
            yield f"        put_address(block, {records.start + offset}, {where})"
        yield "        code = submit()"
        yield "        if code and not settle(record, code): return False"
        yield told[1]
        if plan.result is not None:
            self.names |= {
                "fetch": device.staging.fetch,
                "raise_first": device.faults.raise_first,
                "read": plan.result.read,
            }
            found = "landed(landed_at" if lands else "fetch(scratch.pointer"
            yield f"        found = {found}, {plan.result.nbytes}, owner.handle); raise_first(owner.handle)"
        if lands:
            yield "    except BaseException: broken(owner.handle); raise"
        yield "    finally:"
        yield "        if timeline.ending: move_last(timeline, owner); owner = None; drain()"  # as Stream._call
        yield "    give_back(record)"
        yield f"    return {'True' if plan.result is None else '(read(found),)'}"

    def binding(self) -> Iterator[str]:
        self.names["pack"] = struct.Struct(self.packed.format("=", 0)).pack
        yield self.arguments.head("timeline")
        yield "    try:"
        yield f"        if {self._guards()}: return None"
        yield from self._checks()
        grids = "".join(f"{one}, " for one in self._blocks())
        arrays = "".join(f"a{k}, " for k in self.arrays)
        yield f"        bound = Bound(pack({', '.join(self.packed.values())}), ({grids}), ({arrays}))"
        yield "    except refusals: return None"
        yield from self._announcements()
        yield "    return bound"

    def _guards(self) -> str:
        """Conditions that distinguish other calls.  An array's form is one object for its type, device and layout."""
        return f"State.config is not config or {self.arguments.guards(self._array_guard)}"

    def _array_guard(self, k: int) -> str:
        view = self.arguments.view(k)
        own = self.plan.device.form(view.type_key, wide=view.wide, lent=False)
        self.names[f"form{k}"] = getattr(view, "form", own)  # a view of another library's array has none
        return f"a{k}.form is not form{k}"

    def _checks(self) -> Iterator[str]:
        """Arrays that overlap each other or a field need other code; quadpy's arrays overlap if they share a block."""
        if self.arrays:
            yield f"        {'; '.join(f'm{k} = a{k}.block' for k in self.arrays)}"
        blocks = {k: self.arguments.view(k).block for k in self.arrays}
        lent = {k for k, block in blocks.items() if block is not None and block.lent}
        for i, j in self.pairs:
            if not {i, j} & lent:
                yield f"        if m{i} is m{j} and m{i} is not None: return None"
        fields = [(field.pointer, field.nbytes) for field in self.plan.fields]
        yield from self.arguments.overlaps([pair for pair in self.pairs if lent.intersection(pair)], lent, fields)
        yield from self.arguments.components()
        yield from self._grids()

    def _blocks(self) -> Iterator[str]:
        return (f"blocks{n}" for n in range(len(self.plan.launches)))

    def _grids(self) -> Iterator[str]:
        sources = self.arguments.sources()
        for suspicion in self.plan.limits.suspicions(sources):
            yield f"        if {suspicion}: return None"
        for info in self.plan.code.tasks:
            if info.has_barrier and info.extent is not None:
                yield f"        if {formula_source(info.extent, sources)} % {info.block_dim}: return None"
        for n, (info, launch) in enumerate(zip(self.plan.code.tasks, self.plan.launches, strict=True)):
            if not launch.parallel or info.extent is None:
                yield f"        blocks{n} = {launch.blocks([])}"
                continue
            threads = launch.block[0]
            yield f"        blocks{n} = -(-{formula_source(info.extent, sources)} // {threads})"
            if launch.grid_stride:
                yield f"        if blocks{n} > {launch.max_blocks}: blocks{n} = {launch.max_blocks}"
                continue
            yield f"        if blocks{n} > {min(MOST_BLOCKS, MOST_THREADS // threads - SPARE_BLOCKS)}: return None"
            if info.coarsened is not None:
                yield f"        if blocks{n} >= {launch.coarsen_from}:"
                coarsened = formula_source(info.coarsened, sources)
                yield f"            blocks{n} = min(blocks{n}, -(-{coarsened} // {threads}))"

    def _announcements(self) -> Iterator[str]:
        """Like ``DeviceMemory.use``, which is called if the stream is new to the memory."""
        written = iter(self.plan.arrays.written)
        for k in self.arrays:
            yield self._announcement(f"m{k}", f"m{k} is not None and ", writes=next(written))
        for n, (field, writes) in enumerate(zip(self.plan.fields, written, strict=True)):
            if field.block is not None:
                self.names[f"memory{n}"] = field.block
                yield self._announcement(f"memory{n}", "", writes=writes)

    def _announcement(self, memory: str, there: str, *, writes: bool) -> str:
        known = f"{memory}.home is timeline or timeline in {memory}.guests"
        known = f"timeline in {memory}.writers" if writes else f"({known})"
        return f"    if {there}not {known}: use(({memory},), timeline, writes={writes})"
