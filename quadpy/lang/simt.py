"""How a trace handles ``qp.simt``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from quadpy.core.dtypes import Scalar, i32
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.types import Space, array_of
from quadpy.lang.checks import meet
from quadpy.lang.context import Trace
from quadpy.lang.values import ArrayRef, Value, is_vector_type, shape_text


def _shared_array(t: Trace, span: Span, shape: Value, dtype: Value) -> ArrayRef:
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if not extents or not all(type(n) is int and n > 0 for n in extents):
        given = ", ".join(str(n) if isinstance(n, (int, float)) else shape_text(n) for n in extents)
        t.fail_type(f"the shape of a SharedArray must consist of positive integers that are known at compile time, not ({given})",
                    span, "such as constants, block_dim(), template parameters and shapes of fields")  # fmt: skip
    elem, element = _element_type(t, dtype, span)
    type_ = array_of(elem, len(extents), element, extents, space=Space.SHARED)
    name = f"shared${t.shared_count}"
    t.shared_count += 1
    t.loop_around.shared.append(ir.SharedArray(name, type_, span=span))
    return ArrayRef(name, type_, element=type_.element)


def _element_type(t: Trace, dtype: Value, span: Span) -> tuple[Scalar, tuple[int, ...]]:
    if is_vector_type(dtype):
        return t.scalar_type(dtype.dtype or float), tuple(dtype.element_shape)
    scalar = t.scalar_type(dtype)
    if not isinstance(scalar, Scalar):
        t.fail_type(f"the dtype of a SharedArray must be a scalar or vector type, not {shape_text(dtype)}", span)
    return scalar, ()


def _sync(t: Trace, span: Span) -> None:
    meet(t)
    t.build.emit(ir.Barrier(span=span))


def _global_thread_idx(t: Trace, span: Span) -> Value:
    dim = ir.Const(t.loop_around.block_dim, i32, span=span)
    first = ir.BlockIndex(span=span) * dim
    return first + ir.ThreadIndex(span=span)


SIMT_RULES: Final[dict[str, Callable[..., Any]]] = {
    "block.SharedArray": _shared_array,
    "block.sync": _sync,
    "block.mem_fence": lambda t, span: t.build.emit(ir.Fence(span=span)),
    "block.mem_sync": lambda t, span: t.build.emit(ir.Fence(span=span)),
    "grid.mem_fence": lambda t, span: t.build.emit(ir.Fence(ir.Reach.GRID, span=span)),
    "grid.memfence": lambda t, span: t.build.emit(ir.Fence(ir.Reach.GRID, span=span)),
    "block.thread_idx": lambda t, span: ir.ThreadIndex(span=span),
    "block.block_idx": lambda t, span: ir.BlockIndex(span=span),
    "block.block_dim": lambda t, span: t.loop_around.block_dim,
    "block.global_thread_idx": _global_thread_idx,
}
