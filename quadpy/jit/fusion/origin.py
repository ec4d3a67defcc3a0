"""The origin of calls' code, for fusing several calls into one launch."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from quadpy.artifact import AbiLayout, CodeObject
from quadpy.codegen.abi import layout_of
from quadpy.codegen.extent import extent_of
from quadpy.codegen.support.loop_condition import CONDITION_SETTER, condition_setter_code
from quadpy.dtypes import Scalar
from quadpy.errors import CodegenError, DriverError
from quadpy.flow import has_loop
from quadpy.formula import Formula
from quadpy.ir import nodes as ir
from quadpy.ir.printer import print_ir
from quadpy.jit.formula import Evaluator, compile_formula
from quadpy.jit.fusion.fused_calls import FusedCalls, copy_kernel, element, fill_kernel, fused_code
from quadpy.jit.fusion.plan import why_separate
from quadpy.runtime.drivers.graph_driver import CopyWork, FillWork
from quadpy.target import parse_target, with_waves

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.drivers.driver import FunctionHandle
    from quadpy.runtime.launch.fusion import Call, Fuse, Origin

__all__ = ["Code", "code_of"]


class Code:
    """The code of a call on ``device``: an ``Origin``.

    ``extents`` count the iterations of its loops, as far as the host can; ``mode`` is its index type, whether it is
    fast rather than exact, and the size of its waves; ``trace`` gives the IR, when it is first asked.
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
        mode: tuple[Scalar, bool, int],
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
        """The printed IR, which identifies the code by value."""
        return print_ir(self.kernel)

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Code):
            return self is other
        try:
            return self.device is other.device and self.text == other.text
        except CodegenError:  # the IR of one of them cannot be traced again
            return False

    def __hash__(self) -> int:
        return hash((self.name, self.layout))

    def iterations(self, arguments: bytes) -> int:
        """The iterations of its longest loop, among those that the host can count."""
        values = self._values.unpack_from(arguments)
        return max((extent(values) for extent in self._extents), default=0)

    def fuse(self, levels: Sequence[Sequence[Call]], fuse: Fuse) -> FusedCalls | str:
        """See ``Origin.fuse``."""
        codes = [[_own(origin) for origin, _ in level] for level in levels]
        every = list(chain.from_iterable(codes))
        arguments = [block for level in levels for _, block in level]
        if sum(code.launches for code in every) < 2 and not any(code.loops for code in every):
            return "there is only one launch"
        if any(code.mode != self.mode for code in every):
            return "its kernels differ in the width of their indices, in fast_math, or in their wave size"
        iterations = max(code.iterations(block) for code, block in zip(every, arguments, strict=True))
        if why := why_separate(self.device.driver, iterations, loops=any(code.loops for code in every), fuse=fuse):
            return why
        try:
            found = fused_code(codes, with_waves(parse_target(self.device.driver.info.arch), self.mode[2]))
            if isinstance(found, str):
                return found
            return FusedCalls(self.device, found, every, arguments, fuse)
        except (CodegenError, DriverError) as error:  # it cannot be traced again; or an older library has no such call
            return error.message

    @functools.cached_property
    def why_not_alone(self) -> str:
        """Like ``Origin.why_not_alone``; the values of a call do not matter."""
        found = self.fuse([[(self, bytes(self.layout.size))]], True)
        return found if isinstance(found, str) else found.why_not()

    def of(self, work: FillWork | CopyWork) -> Call | str:
        """See ``Origin.of``."""
        index, fast_math, _ = self.mode
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

    def condition_setter(self) -> FunctionHandle:
        """See ``Origin.condition_setter``."""
        code = condition_setter_code(parse_target(self.device.driver.info.arch))
        return self.device.modules.load(code).function(CONDITION_SETTER)


def code_of(
    device: Device, name: str, code: CodeObject, mode: tuple[Scalar, bool, int], trace: Callable[[], ir.Kernel]
) -> Code:
    """The origin of ``code``, from the IR that ``trace`` gives."""
    extents = [task.extent for task in code.tasks if task.extent is not None]
    return Code(device, name, code.layout, extents, len(code.tasks), loops=has_loop(code.flow), mode=mode, trace=trace)


def _own(origin: Origin) -> Code:
    assert isinstance(origin, Code)
    return origin
