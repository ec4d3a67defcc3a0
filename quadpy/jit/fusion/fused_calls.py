"""One launch for the tasks of several calls."""

from __future__ import annotations

import ctypes
import struct
from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol

from quadpy.codegen.abi import layout_of
from quadpy.codegen.schedule import Form
from quadpy.core.artifact import AbiLayout, AbiValue, CodeObject
from quadpy.core.dtypes import Scalar, u8, u16, u32, u64
from quadpy.core.source import NOWHERE
from quadpy.core.target import TargetSpec
from quadpy.errors import CodegenError, DeviceError
from quadpy.ir import nodes as ir
from quadpy.ir.fuse import NAME, fuse
from quadpy.ir.types import array_of
from quadpy.jit.compiler import compiled_code
from quadpy.jit.fusion.cooperative import CooperativeLaunch
from quadpy.jit.fusion.worth import why_separate, why_slower
from quadpy.jit.gpu_launch import task_launches
from quadpy.runtime.device.locks import new_lock

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.drivers.driver import StreamHandle
    from quadpy.runtime.launch.fusion import Fuse
    from quadpy.runtime.memory.allocators.block import DeviceBuffer
    from quadpy.runtime.streams.stream import Stream

_ARGUMENT_BYTES: Final = 4096
"""The arguments of a launch, in the form that every driver takes."""
_MOST_KNOWN: Final = 64
_known: OrderedDict[tuple[object, ...], CodeObject | str] = OrderedDict()
_lock = new_lock()


class CallCode(Protocol):
    """The code of one of the calls: its kernel, also as text, and the host's information about its launches."""

    layout: AbiLayout
    loops: bool
    depth: int

    @property
    def kernel(self) -> ir.Kernel: ...

    @property
    def text(self) -> str: ...

    def iterations(self, arguments: bytes, /) -> int:
        """The number of iterations of its longest loop."""
        ...


def fused_code(levels: Sequence[Sequence[CallCode]], target: TargetSpec) -> CodeObject | str:
    """Machine code for all of ``levels``, or the reason why not; the last ones are remembered."""
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
        kernel = fuse(levels)
        if (needed := layout_of(kernel).size + 8) > _ARGUMENT_BYTES:
            return f"its arguments together have {needed} bytes; a launch can have at most {_ARGUMENT_BYTES}"
        return compiled_code(kernel, target, Form(fused=True))[1]
    except CodegenError as error:  # also for a kernel that cannot be fused
        return error.message


class FusedCalls:
    """A ``OneLaunch`` of ``levels`` with initial ``arguments``."""

    def __init__(
        self,
        device: Device,
        code: CodeObject,
        levels: Sequence[Sequence[CallCode]],
        arguments: Sequence[bytes],
        fuse: Fuse,
    ) -> None:
        self.device, self._codes, self._fuse = device, list(chain.from_iterable(levels)), fuse
        self._depth = sum(max(call.depth for call in level) for level in levels)
        self._module = device.modules.load(code)
        (launch,) = task_launches(code, device.driver, self._module, NAME, ())
        self._cooperative = CooperativeLaunch(device, code, launch)
        self.most_blocks = self._most = self._cooperative.most_blocks
        self.description = self._cooperative.description
        self._places = _places(self._codes, code.layout)
        self._values = struct.Struct(code.layout.format)
        self._scratch = code.layout.size
        self._block = ctypes.create_string_buffer(self._scratch + 8)
        self._bytes = memoryview(self._block).cast("B")
        self._arguments = self._cooperative.arguments(ctypes.addressof(self._block))
        self._iterations = [0] * len(self._codes)
        self._blocks = 0
        self._cells: DeviceBuffer | None = None
        for number, block in enumerate(arguments):
            self.bind(number, block)

    @property
    def keep(self) -> tuple[object, ...]:
        return (self._module,)

    def bind(self, number: int, arguments: bytes) -> None:
        """See ``OneLaunch.bind``."""
        for source, target, size in self._places[number]:
            self._bytes[target : target + size] = arguments[source : source + size]
        self._iterations[number] = self._codes[number].iterations(arguments)
        self._blocks = 0

    def why_not(self) -> str:
        """See ``OneLaunch.why_not``."""
        if not self.most_blocks:
            return "not even one of its blocks fits on the device"
        driver, fuse, loops = self.device.driver, self._fuse, any(code.loops for code in self._codes)
        meetings, blocks = self._cooperative.meetings, self._count_blocks()
        too_large = why_separate(driver, max(self._iterations), loops=loops, fuse=fuse)
        return too_large or why_slower(driver, self._depth, meetings, blocks, loops=loops, fuse=fuse)

    def move(self, on: Stream) -> None:
        """See ``OneLaunch.move``."""
        self._cells, self._most = self._cooperative.scratch_on(on), self._cooperative.most_on(on)
        struct.pack_into("Q", self._block, self._scratch, self._cells.pointer)

    def launch(self, stream: StreamHandle) -> None:
        """See ``OneLaunch.launch``."""
        launch, blocks = self._cooperative.launch, min(self._count_blocks(), self._most)
        try:
            self.device.driver.launch_cooperative(
                launch.function, (blocks, 1, 1), launch.block, 0, stream, self._arguments
            )
        except DeviceError as error:
            raise launch.named(error) from error
        if self._cells is not None:
            self._cooperative.order_events_after(self._cells, stream)

    def _count_blocks(self) -> int:
        """The blocks of a launch with the arguments that are bound now."""
        if not self._blocks:
            values = list(self._values.unpack_from(self._block))
            self._blocks = self._cooperative.launch.blocks(values) or self.most_blocks
        return self._blocks


def _places(codes: Sequence[CallCode], fused: AbiLayout) -> list[list[tuple[int, int, int]]]:
    """For each call, the source and target offsets of its values in the fused block, and their sizes."""
    targets = iter(fused.values)

    def one(value: AbiValue) -> tuple[int, int, int]:
        return value.offset, next(targets).offset, struct.calcsize(value.code)

    return [[one(value) for value in code.layout.values] for code in codes]


_BY_SIZE: Final = {1: u8, 2: u16, 4: u32, 8: u64}


def element(*numbers: int) -> int:
    """The largest number of bytes, up to 8, of which all ``numbers`` are multiples."""
    return next(size for size in sorted(_BY_SIZE, reverse=True) if not any(number % size for number in numbers))


def fill_kernel(size: int, index: Scalar, *, fast_math: bool) -> ir.Kernel:
    """``fill(x, v)``: each element of ``size`` bytes becomes v."""
    t = _BY_SIZE[size]
    value = ir.ScalarParam("v", t, span=NOWHERE)
    store = ir.Store(_at("x", t, index), ir.ParamRead("v", t, span=NOWHERE), span=NOWHERE)
    return _kernel("fill", (_array("x", t), value), (store,), index, fast_math)


def copy_kernel(size: int, index: Scalar, *, fast_math: bool) -> ir.Kernel:
    """``copy(x, y)``: each element of x becomes that of y, which has the same number of elements."""
    t = _BY_SIZE[size]
    var = ir.Var("y", t)
    load = ir.Load(var, _at("y", t, index), span=NOWHERE)
    store = ir.Store(_at("x", t, index), ir.VarRead(var, span=NOWHERE), span=NOWHERE)
    return _kernel("copy", (_array("x", t), _array("y", t)), (load, store), index, fast_math)


def _array(name: str, t: Scalar) -> ir.ArrayParam:
    return ir.ArrayParam(name, array_of(t, 1), span=NOWHERE)


def _at(name: str, t: Scalar, index: Scalar) -> ir.Element:
    return ir.Element(name, (ir.VarRead(ir.Var("i", index), span=NOWHERE),), 0, t, span=NOWHERE)


def _kernel(
    name: str,
    params: tuple[ir.Param, ...],
    stmts: tuple[ir.Stmt, ...],
    index: Scalar,
    fast_math: bool,
) -> ir.Kernel:
    zero, one = (ir.Const(value, index, span=NOWHERE) for value in (0, 1))
    axis = ir.Axis(ir.Var("i", index), zero, ir.ShapeOf("x", 0, index, span=NOWHERE), one, span=NOWHERE)
    body = ir.Block(stmts, span=NOWHERE)
    task = ir.ParallelTask(f"{name}_t0", (axis,), body, span=NOWHERE)
    empty = ir.Block((), span=NOWHERE)
    return ir.Kernel(name, params, (), (), empty, (task,), index=index, fast_math=fast_math, span=NOWHERE)
