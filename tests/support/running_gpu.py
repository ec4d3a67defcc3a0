"""A simulated GPU of AMD's that runs every kernel, by the same kernel's machine code for the CPU; and GPUs with defects.

``python running_gpu.py FAULT …`` is a child of the self-test on such a device, see ``quadpy.selftest.child``.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import numpy as np
from simulated_gpu.driver import RecordedKernel, RecordingDriver

from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.predication import predication_of
from quadpy.codegen.support.argument_upload import UPLOAD_SIZES, upload_name
from quadpy.core.target import parse_target, with_waves
from quadpy.errors import DriverError
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk
from quadpy.jit import compiler
from quadpy.runtime.cpu.loader import load_object
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, set_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.known import off_on
from quadpy.runtime.drivers.graph_driver import KernelWork

_KERNELS: dict[bytes, dict[str, RecordedKernel]] = {}
"""By the image of a code object: what its functions do."""


class RunningDriver(RecordingDriver):
    """A simulated device whose functions are those of the code that was loaded."""

    def __init__(self, **options):
        super().__init__(history=False, **options)
        self._images = {}

    def module_load(self, image):
        module = super().module_load(image)
        self._images[module] = _KERNELS.get(image, UPLOADS)
        return module

    def module_function(self, module, name):
        with self.lock:
            self.kernels = self._images[module]
            return super().module_function(module, name)


def _upload(nbytes):
    def run(block):
        (address,) = struct.unpack_from("Q", block)
        ctypes.memmove(address, block[8 : 8 + nbytes], nbytes)

    return RecordedKernel(run)


UPLOADS = {upload_name(nbytes): _upload(nbytes) for nbytes in UPLOAD_SIZES}


class Running:
    """The tasks of one code object, which the CPU runs."""

    def __init__(self, kernel, spec, form, code, flushing):
        self._kernel, self._spec, self._form, self._code, self._flushing = kernel, spec, form, code, flushing
        self._scratch = {}
        self._found = predication_of(kernel.flow) if form.predicated else None
        self.functions = {task.symbol: RecordedKernel(functools.partial(self._run, task)) for task in code.tasks}
        self._merged = {task.symbol for task in code.tasks if task.symbol.endswith("_merge")}

    @functools.cached_property
    def _host(self):
        host = compile_kernel(self._kernel, with_waves(parse_target("cpu"), self._spec.wave_size))
        loaded = load_object(host.image)
        call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32)
        return host, loaded, call(loaded.address(host.entry))

    def _run(self, task, block):
        if self._form.indirect:
            (address,) = struct.unpack_from("Q", block)
            block = ctypes.string_at(address, self._code.layout.size + 8)
        scratch = next(
            (struct.unpack_from("Q", block, h.offset)[0] for h in self._code.hidden if h.name == "scratch"), 0
        )
        if self._form.fused:
            self._call(block, scratch, 0)
            return
        if task.latch:
            self._latch(task, block, scratch)
            return
        if task.symbol + "_merge" in self._merged:
            return  # all of it runs with the merge
        own = [task.symbol.removesuffix("_merge"), *task.joined]
        numbers = sorted(int(symbol.rpartition("_t")[2]) for symbol in own)
        if self._found and self._found.segments.get(numbers[0]) not in (None, self._turn(scratch)[0]):
            return
        for number in numbers:
            self._call(block, scratch, ~number)
        if self._flushing and not self._spec.exchanges:
            self._flush(numbers, block)

    def _call(self, block, scratch, first):
        host, loaded, entry = self._host
        cells = self._scratch.setdefault(scratch, (ctypes.c_uint64 * max(1, host.slots))())
        result = entry(block[: self._code.layout.size], cells, first)
        while first == 0 and result >= 0:  # a loop on memory that takes long lets signals through
            result = entry(block[: self._code.layout.size], cells, result)
        assert result >= -1, (self._kernel.name, result, loaded)
        if host.results:
            hidden = {each.name: each.offset for each in self._code.hidden}
            where = hidden.get("results", hidden.get("scratch"))
            ctypes.memmove(struct.unpack_from("Q", block, where)[0], cells, 8 * len(host.results))

    def _turn(self, scratch):
        return (ctypes.c_int32 * 2).from_address(scratch + 8 * (self._code.slots - 1))

    def _latch(self, task, block, scratch):
        latch, turn = self._found.latches[int(task.symbol.rpartition("_latch")[2])], self._turn(scratch)
        if turn[0] != latch.segment:
            return
        turn[1] += bool(latch.decisions)
        going = (to for name, to in latch.decisions if self._arrays(block)[name][0] != 0)
        turn[0] = next(going, latch.otherwise)

    def _arrays(self, block):
        """The arrays among the arguments, as NumPy arrays of one axis."""
        values = struct.unpack_from(self._code.layout.format, block)
        found = {}
        for slot, value in zip(self._code.layout.values, values, strict=True):
            found.setdefault(slot.param, []).append(value)
        types = {param.name: param.type.elem for param in self._kernel.params if isinstance(param, ir.ArrayParam)}
        return {name: _memory(types[name], *found[name]) for name in types}

    def _flush(self, numbers, block):
        """What memory units that flush subnormal numbers leave of the sums of floats."""
        arrays = self._arrays(block)
        for number in numbers:
            for node in walk(self._kernel.tasks[number]):
                if isinstance(node, ir.Atomic) and isinstance(node.place, ir.Element):
                    array = arrays.get(node.place.array)
                    if array is not None and array.dtype.kind == "f":
                        array[np.abs(array) < np.finfo(array.dtype).tiny] = 0


def _memory(scalar, pointer, *extents):
    own = {"bf16": "uint16", "u1": "bool"}  # NumPy has no bf16
    dtype = np.dtype(own.get(scalar.name) or {"i": "int", "u": "uint", "f": "float"}[scalar.name[0]] + scalar.name[1:])
    count = int(np.prod(extents, dtype=int))
    return np.ctypeslib.as_array((ctypes.c_uint8 * (count * dtype.itemsize)).from_address(pointer)).view(dtype)


def run_everything(*, flushing=False):
    """From now on, code that is compiled for a GPU can run on a ``RunningDriver``.  The cache must be off."""

    def compiled(kernel, spec, form=compiler.PLAIN, **options):
        code = compile_kernel(kernel, spec, form, **options)
        if spec.family != "cpu":
            _KERNELS[code.image] = Running(kernel, spec, form, code, flushing).functions
        return code

    compiler.compile_kernel = compiled


# Defects: each is named after the capability that it takes away, or after what it is.


class NoGraphs(RunningDriver):
    """The driver refuses every graph."""

    def __init__(self):
        super().__init__()
        self.graphs.instantiate = self._refuse

    def _refuse(self, *_, **__):
        raise DriverError("hipGraphInstantiate failed: hipErrorNotSupported")


class BrokenPool(RunningDriver):
    """The pool returns memory that another stream still has."""

    def __init__(self):
        super().__init__()
        self.default_allocator = "pool"
        self._given = {}

    def alloc_async(self, nbytes, stream):
        if nbytes in self._given:
            return self._given.pop(nbytes)
        found = super().alloc_async(nbytes, stream)
        self._given[nbytes] = found
        return found

    def free_async(self, pointer, stream):
        """Leaks, so that the memory stays valid."""


class StaleNodes(RunningDriver):
    """Kernel nodes after the 200th keep the arguments of the first of the same function."""

    def __init__(self):
        super().__init__()
        add, counts, first = self.graphs.add, {}, {}

        def stale(graph, dependencies, work):
            if isinstance(work, KernelWork):
                counts[graph] = counts.get(graph, 0) + 1
                before = first.setdefault((graph, work.function), work.arguments)
                if counts[graph] > 200:
                    work = replace(work, arguments=before)
            return add(graph, dependencies, work)

        self.graphs.add = stale


class FixedNodes(RunningDriver):
    """Changes and switches of nodes are accepted, and have no effect."""

    def __init__(self):
        super().__init__()
        self.graphs.update = lambda *_: True
        self.graphs.enable = lambda *_, **__: None


class NoOrderOfBranches(RunningDriver):
    """Nodes that depend on several others wait for none."""

    def __init__(self):
        super().__init__()
        add = self.graphs.add
        self.graphs.add = lambda graph, after, work: add(graph, after if len(after) < 2 else (), work)
        self.simulation.finish_all = self._finish_the_last_first

    def _finish_the_last_first(self):
        while queues := list(self.simulation._queues.values()):
            self.simulation.finish_queue(queues[-1])


class NoCooperative(RunningDriver):
    """Cooperative launches are offered, and refused."""

    def launch_cooperative(self, *_):
        raise DriverError("hipModuleLaunchCooperativeKernel failed: hipErrorCooperativeLaunchTooLarge")


class NoParts(RunningDriver):
    """Streams on a part are offered, and refused."""

    def stream_create_on(self, *_):
        raise DriverError("hipExtStreamCreateWithCUMask failed: hipErrorInvalidValue")


class DeadParts(RunningDriver):
    """Work on a part never completes, as on an XCC without units."""

    def stream_synchronize(self, stream):
        if self.queue_of(stream).units:
            time.sleep(1e6)
        super().stream_synchronize(stream)

    def event_synchronize(self, event):
        if (last := self.event_of(event).last) is not None and last.queue.units:
            time.sleep(1e6)
        super().event_synchronize(event)


class LostParts(RunningDriver):
    """Kernels on a part do not run."""

    def launch(self, function, grid, block, shared, stream, arguments):
        if not self.queue_of(stream).units:
            super().launch(function, grid, block, shared, stream, arguments)


class WaitingForAll(RunningDriver):
    """A wait for one stream waits for all."""

    def stream_synchronize(self, stream):
        super().stream_synchronize(stream)
        self.simulation.finish_all()


class NoClock(RunningDriver):
    """Events have no time."""

    def event_elapsed(self, start, end):
        return 0.0 * super().event_elapsed(start, end)


class NoFaults(RunningDriver):
    """What kernels leave in the record of faults is lost."""

    def launch(self, function, grid, block, shared, stream, arguments):
        super().launch(function, grid, block, shared, stream, arguments)
        if (buffer := next(iter(devices._open.values())).faults._buffer) is not None:
            self.fill(buffer.pointer, 0, buffer.nbytes, stream)


class SlowParts(RunningDriver):
    """A kernel takes longer on a part, as it should."""

    def launch(self, function, grid, block, shared, stream, arguments):
        super().launch(function, grid, block, shared, stream, arguments)
        if units := self.queue_of(stream).units:
            begin = time.perf_counter()
            self.stream_synchronize(stream)
            time.sleep((self.info.units / units - 1) * (time.perf_counter() - begin))


class Small(RunningDriver):
    """A device with 2 MiB of memory."""

    def __init__(self):
        super().__init__(capacity=2 << 20)

    def alloc_pinned(self, nbytes):
        """It is the host's."""
        self.memory.capacity += nbytes
        return super().alloc_pinned(nbytes)


class Hanging(RunningDriver):
    """A graph never ends."""

    def __init__(self):
        super().__init__()
        self.graphs.launch = lambda *_: time.sleep(1e6)


class Crashing(RunningDriver):
    """A graph ends the process."""

    def __init__(self):
        super().__init__()
        self.graphs.launch = lambda *_: os.abort()


DRIVERS = {
    "none": RunningDriver, "flushing": RunningDriver, "graphs": NoGraphs, "pool": BrokenPool, "stale": StaleNodes,
    "updates": FixedNodes, "branches": NoOrderOfBranches, "cooperative": NoCooperative, "small": Small,
    "hang": Hanging, "crash": Crashing, "refused-parts": NoParts, "dead-parts": DeadParts, "lost-parts": LostParts,
    "slow-parts": SlowParts, "waiting": WaitingForAll, "no-clock": NoClock, "no-faults": NoFaults,
}  # fmt: skip


@contextlib.contextmanager
def running(fault="none"):
    """Make a device with ``fault`` the current one."""
    run_everything(flushing=fault == "flushing")
    driver = DRIVERS[fault]()
    devices._open["recording", 0] = device = Device(driver, None, off_on(driver))
    set_config(Config(arch="recording"))
    yield device


def main():
    from quadpy.selftest import child

    fault = sys.argv.pop(1)
    child.main(prepare=lambda: running(fault).__enter__())


if __name__ == "__main__":
    main()
