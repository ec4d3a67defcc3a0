"""One launch of several calls' tasks.  Owns: Code, what a call's code was made of; ``code_of``, JoinedLaunch.

Imports: leaves, ``ir``, ``codegen`` (and so LLVM), ``runtime``.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from quadpy.artifact import AbiLayout, AbiSlot, CodeObject, Formula
from quadpy.codegen.abi import layout_of
from quadpy.codegen.extent import extent_of
from quadpy.codegen.teller import TELLER, teller_code
from quadpy.dtypes import Scalar
from quadpy.errors import CodegenError, DeviceError, DriverError
from quadpy.ir import nodes as ir
from quadpy.ir.passes.join import NAME, join
from quadpy.ir.printer import print_ir
from quadpy.jit.formula import Evaluator, compile_formula
from quadpy.jit.fused_plan import BLOCKS_OF_UNIT, has_loop, why_separate
from quadpy.jit.fused_scratch import FusedScratch
from quadpy.jit.gpu_launch import task_launches
from quadpy.jit.joined_memory import copy_kernel, element, fill_kernel
from quadpy.jit.specialise import compiled_code
from quadpy.runtime.graph_driver import CopyWork, FillWork
from quadpy.target import TargetSpec, parse_target

if TYPE_CHECKING:
    from quadpy.runtime.device import Device
    from quadpy.runtime.driver import FunctionHandle, StreamHandle
    from quadpy.runtime.fusion import Call, Fuse
    from quadpy.runtime.stream import Stream

__all__ = ["Code", "JoinedLaunch", "code_of"]

_ARGUMENT_BYTES: Final = 4096
"""What every driver takes as the arguments of a launch."""


class Code:
    """The code of a call on ``device``: an ``Origin``.

    ``extents`` count the iterations of its loops, as far as the host can; ``mode`` is its index type, and whether it is
    fast rather than exact; ``trace`` gives the IR, when it is first asked.
    """

    def __init__(
        self,
        device: Device,
        name: str,
        layout: AbiLayout,
        extents: Sequence[Formula],
        launches: int,
        *,
        loops: bool,
        mode: tuple[Scalar, bool],
        trace: Callable[[], ir.Kernel],
    ) -> None:
        self.mode = mode
        self.device, self.name, self.layout, self.launches, self.loops = device, name, layout, launches, loops
        self._extents: list[Evaluator] = [compile_formula(extent) for extent in extents]
        self._values = struct.Struct(layout.format)
        self._trace = trace

    @functools.cached_property
    def kernel(self) -> ir.Kernel:
        return self._trace()

    @functools.cached_property
    def text(self) -> str:
        """The IR, printed: what code there is, by value."""
        return print_ir(self.kernel)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Code) and self.device is other.device and self.text == other.text)

    def __hash__(self) -> int:
        return hash((self.name, self.layout))

    def iterations(self, arguments: bytes) -> int:
        """Of its longest loop, among those that the host can count."""
        values = self._values.unpack_from(arguments)
        return max((extent(values) for extent in self._extents), default=0)

    def join(self, levels: Sequence[Sequence[Call]], fuse: Fuse) -> JoinedLaunch | str:
        """As ``Origin.join``."""
        codes = [[_own(origin) for origin, _ in level] for level in levels]
        every = list(chain.from_iterable(codes))
        arguments = [block for level in levels for _, block in level]
        if sum(code.launches for code in every) < 2 and not any(code.loops for code in every):
            return "there is one launch only"
        if any(code.mode != self.mode for code in every):
            return "some of its kernels count in 32 bits or are exact, and others are not"
        iterations = max(code.iterations(block) for code, block in zip(every, arguments, strict=True))
        if why := why_separate(self.device.driver, iterations, loops=any(code.loops for code in every), fuse=fuse):
            return why
        found = _joined_code(codes, parse_target(self.device.driver.info.arch))
        if isinstance(found, str):
            return found
        try:
            return JoinedLaunch(self.device, found, every, arguments, fuse)
        except DriverError as error:  # an older library has no such call
            return error.message

    @functools.cached_property
    def why_not_alone(self) -> str:
        """As ``Origin.why_not_alone``; the values of a call do not matter."""
        found = self.join([[(self, bytes(self.layout.size))]], True)
        return found if isinstance(found, str) else found.why_not()

    def of(self, work: FillWork | CopyWork) -> Call | str:
        """As ``Origin.of``."""
        index, fast_math = self.mode
        nbytes = work.nbytes if isinstance(work, CopyWork) else work.width * work.element
        if nbytes >= 1 << 31 and index.bits < 64:
            return f"is {nbytes} bytes, for one launch with kernels that count in {index.bits} bits"
        if isinstance(work, CopyWork):
            size = element(work.target, work.source, nbytes)
            kernel = copy_kernel(size, index, fast_math=fast_math)
            values: tuple[int, ...] = (work.target, nbytes // size, work.source, nbytes // size)
        else:
            size = element(work.target, nbytes)
            if size % work.element:
                return f"begins at {work.target:#x}, between elements of {work.element} bytes"
            bits = work.value.to_bytes(work.element, "little") * (size // work.element)
            kernel = fill_kernel(size, index, fast_math=fast_math)
            values = (work.target, nbytes // size, int.from_bytes(bits, "little"))
        layout = layout_of(kernel)
        (task,) = kernel.tasks
        assert isinstance(task, ir.ParallelTask)
        extent = extent_of(task, layout)
        assert extent is not None
        code = Code(self.device, kernel.name, layout, [extent], 1, loops=False, mode=self.mode, trace=lambda: kernel)
        return code, struct.pack(layout.format, *values)

    def teller(self) -> FunctionHandle:
        """As ``Origin.teller``."""
        code = teller_code(parse_target(self.device.driver.info.arch))
        return self.device.modules.load(code).function(TELLER)


def code_of(
    device: Device, name: str, code: CodeObject, mode: tuple[Scalar, bool], trace: Callable[[], ir.Kernel]
) -> Code:
    """What ``code`` was made of, which ``trace`` gives."""
    extents = [task.extent for task in code.tasks if task.extent is not None]
    return Code(device, name, code.layout, extents, len(code.tasks), loops=has_loop(code.flow), mode=mode, trace=trace)


def _own(origin: Any) -> Code:
    assert isinstance(origin, Code)
    return origin


_MOST_KNOWN: Final = 64
_known: OrderedDict[tuple[object, ...], CodeObject | str] = OrderedDict()
_lock = threading.Lock()


def _joined_code(levels: Sequence[Sequence[Code]], target: TargetSpec) -> CodeObject | str:
    """Machine code for all of ``levels``, or why there is none; the last ones are remembered, and what they were made of."""
    key = (str(target), *(tuple(code.text for code in level) for level in levels))
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    found = _compiled([[code.kernel for code in level] for level in levels], target)
    with _lock:
        _known[key] = found
        while len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)
    return found


def _compiled(levels: Sequence[Sequence[ir.Kernel]], target: TargetSpec) -> CodeObject | str:
    try:
        kernel = join(levels)
        if (needed := layout_of(kernel).size + 8) > _ARGUMENT_BYTES:
            return f"its arguments together have {needed} bytes; {_ARGUMENT_BYTES} are the most of one launch"
        return compiled_code(kernel, target)[1]
    except CodegenError as error:  # of one that cannot be fused, too
        return error.message


class JoinedLaunch:
    """A ``OneLaunch`` of ``codes`` with ``arguments``, which are what it begins with."""

    def __init__(
        self, device: Device, code: CodeObject, codes: Sequence[Code], arguments: Sequence[bytes], fuse: Fuse
    ) -> None:
        self.device, self._codes, self._fuse = device, codes, fuse
        self._module = device.modules.load(code)
        (launch,) = task_launches(code, device.driver, self._module, NAME, ())
        resident = device.driver.max_blocks(launch.function, launch.block[0], 0)
        self.most_blocks = min(resident, BLOCKS_OF_UNIT * device.driver.info.units)
        self._launch = replace(launch, most=self.most_blocks)
        self._counters = FusedScratch(device, 8 * code.slots)
        self._places = _places(codes, code.layout)
        self._values = struct.Struct(code.layout.format)
        self._scratch = code.layout.size
        self._block = ctypes.create_string_buffer(self._scratch + 8)
        self._bytes = memoryview(self._block).cast("B")
        offsets = [*(slot.offset for slot in code.layout.slots), self._scratch]
        self._arguments = device.driver.cooperative_arguments(ctypes.addressof(self._block), offsets)
        self._iterations = [0] * len(codes)
        self._blocks = 0
        for number, block in enumerate(arguments):
            self.bind(number, block)

    @property
    def keep(self) -> tuple[object, ...]:
        return (self._module,)

    def bind(self, number: int, arguments: bytes) -> None:
        """As ``OneLaunch.bind``."""
        for source, target, size in self._places[number]:
            self._bytes[target : target + size] = arguments[source : source + size]
        self._iterations[number] = self._codes[number].iterations(arguments)
        self._blocks = 0

    def place(self, number: int, offset: int) -> int | None:
        """As ``OneLaunch.place``."""
        return next((target for source, target, _ in self._places[number] if source == offset), None)

    def patch(self, place: int, found: bytes) -> None:
        """As ``OneLaunch.patch``."""
        self._bytes[place : place + len(found)] = found

    def why_not(self) -> str:
        """As ``OneLaunch.why_not``."""
        if not self.most_blocks:
            return "not even one of its blocks fits on the device"
        loops = any(code.loops for code in self._codes)
        return why_separate(self.device.driver, max(self._iterations), loops=loops, fuse=self._fuse)

    def move(self, on: Stream) -> None:
        """As ``OneLaunch.move``."""
        struct.pack_into("Q", self._block, self._scratch, self._counters.on(on).pointer)

    def launch(self, stream: StreamHandle) -> None:
        """As ``OneLaunch.launch``."""
        launch = self._launch
        if not self._blocks:
            self._blocks = launch.blocks(list(self._values.unpack_from(self._block))) or self.most_blocks
        try:
            self.device.driver.launch_cooperative(
                launch.function, (self._blocks, 1, 1), launch.block, 0, stream, self._arguments
            )
        except DeviceError as error:
            raise launch.named(error) from error


def _places(codes: Sequence[Code], joined: AbiLayout) -> list[list[tuple[int, int, int]]]:
    """For each call, from where to where in the joined block each of its values goes, and its bytes."""
    slots = iter(joined.slots)

    def one(slot: AbiSlot) -> tuple[int, int, int]:
        return slot.offset, next(slots).offset, struct.calcsize(slot.code)

    return [[one(slot) for slot in code.layout.slots] for code in codes]
