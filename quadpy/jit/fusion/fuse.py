"""One launch of the calls of several kernels, copies and fills: the code for it is compiled."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from quadpy.codegen.abi import layout_of
from quadpy.codegen.extent import extent_of
from quadpy.core.target import parse_target, with_waves
from quadpy.errors import CodegenError, DriverError
from quadpy.ir import nodes as ir
from quadpy.jit.fusion.call_code import unit_of
from quadpy.jit.fusion.fused_calls import FusedCalls
from quadpy.jit.fusion.fused_code import copy_kernel, fill_kernel, fused_code
from quadpy.jit.fusion.origin import Code
from quadpy.jit.fusion.worth import why_separate
from quadpy.runtime.drivers.graph_driver import CopyWork, FillWork

if TYPE_CHECKING:
    from quadpy.runtime.launch.fusion import Fuse
    from quadpy.runtime.launch.launch import Call, Origin


def fuse_calls(first: Code, levels: Sequence[Sequence[Call]], fuse: Fuse) -> FusedCalls | str:
    """``Origin.fuse`` of ``first``."""
    codes = [[_own(origin) for origin, _ in level] for level in levels]
    every = list(chain.from_iterable(codes))
    arguments = [block for level in levels for _, block in level]
    if sum(code.launches for code in every) < 2 and not any(code.loops for code in every):
        return "there is only one launch"
    if any(code.mode != first.mode for code in every):
        return "its kernels differ in the width of their indices, in fast_math, or in their wave size"
    iterations = max(code.iterations(block) for code, block in zip(every, arguments, strict=True))
    if why := why_separate(first.device.driver, iterations, loops=any(code.loops for code in every), fuse=fuse):
        return why
    try:
        found = fused_code(codes, with_waves(parse_target(first.device.driver.info.arch), first.mode[2]))
        if isinstance(found, str):
            return found
        return FusedCalls(first.device, found, codes, arguments, fuse)
    except (CodegenError, DriverError) as error:  # it cannot be traced again; or an older library has no such call
        return error.message


def call_of(like: Code, work: FillWork | CopyWork) -> Call | str:
    """``Origin.of`` of ``like``."""
    index, fast_math, _ = like.mode
    nbytes = work.nbytes if isinstance(work, CopyWork) else work.width * work.element
    if nbytes >= 1 << 31 and index.bits < 64:
        return f"is {nbytes} bytes, for one launch with kernels that count in {index.bits} bits"
    if isinstance(work, CopyWork):
        size = unit_of(work.target, work.source, nbytes)
        kernel = copy_kernel(size, index, fast_math=fast_math)
        values: tuple[int, ...] = (work.target, nbytes // size, work.source, nbytes // size)
    else:
        size = unit_of(work.target, nbytes)
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
    code = Code(
        like.device, kernel.name, layout, [extent], 1, depth=1, loops=False, mode=like.mode, trace=lambda: kernel
    )
    return code, struct.pack(layout.format, *values)


def _own(origin: Origin) -> Code:
    assert isinstance(origin, Code)
    return origin
