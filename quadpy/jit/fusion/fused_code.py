"""Code for one launch of several calls."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, Protocol

from quadpy.codegen.abi import layout_of
from quadpy.codegen.schedule import Form
from quadpy.core.artifact import CodeObject
from quadpy.core.dtypes import Scalar, u8, u16, u32, u64
from quadpy.core.source import NOWHERE
from quadpy.core.target import TargetSpec
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir
from quadpy.ir.fuse import fuse
from quadpy.ir.types import array_of
from quadpy.jit.compiler import compiled_code
from quadpy.runtime.device.locks import new_lock

_ARGUMENT_BYTES: Final = 4096
"""The arguments of a launch, in the form that every driver takes."""
_MOST_KNOWN: Final = 64
_known: OrderedDict[tuple[object, ...], CodeObject | str] = OrderedDict()
_lock = new_lock()


class WithKernel(Protocol):
    """The code of one of the calls: its kernel, also as text."""

    @property
    def kernel(self) -> ir.Kernel: ...

    @property
    def text(self) -> str: ...


def fused_code(levels: Sequence[Sequence[WithKernel]], target: TargetSpec) -> CodeObject | str:
    """Machine code for all of ``levels``, or the reason why not; the last ones are remembered."""
    key = (str(target), *(tuple(code.text for code in level) for level in levels))
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    found = compiled_levels([[code.kernel for code in level] for level in levels], target)
    with _lock:
        _known[key] = found
        while len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)
    return found


def compiled_levels(levels: Sequence[Sequence[ir.Kernel]], target: TargetSpec) -> CodeObject | str:
    """Machine code for the kernels of all ``levels``, or the reason why not."""
    try:
        kernel = fuse(levels)
        if (needed := layout_of(kernel).size + 8) > _ARGUMENT_BYTES:
            return f"its arguments together have {needed} bytes; a launch can have at most {_ARGUMENT_BYTES}"
        return compiled_code(kernel, target, Form(fused=True))[1]
    except CodegenError as error:  # also for a kernel that cannot be fused
        return error.message


_BY_SIZE: Final = {1: u8, 2: u16, 4: u32, 8: u64}  # the units of ``call_code.unit_of``


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
