"""``qp.tensor``: fields and ndarrays by one call."""

from __future__ import annotations

import enum
from typing import Any

from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.dense import shape_of
from quadpy.runtime.arrays.derivatives import DIFFERENTIATED, require_floats
from quadpy.runtime.arrays.field import Field, field
from quadpy.runtime.arrays.field_layout import AXIS_NAMES
from quadpy.runtime.arrays.ndarray import NDArray, ndarray
from quadpy.runtime.arrays.ordered import OrderedNDArray, order_of_layout
from quadpy.runtime.elements.types import DType, element_of


class Backend(enum.Enum):
    """The kinds of arrays that ``qp.tensor`` creates."""

    FIELD = "field"
    NDARRAY = "ndarray"


@public
def tensor(
    dtype: DType,
    shape: int | tuple[int, ...],
    *,
    backend: Backend = Backend.NDARRAY,
    layout: tuple[int, ...] | None = None,
    **options: Any,
) -> Field | NDArray | OrderedNDArray:
    """Create a field or an ndarray of zeros, which parameters of the type ``qp.Tensor`` take.

    Args:
        dtype: a scalar, vector, matrix or struct type.
        shape: an int or a tuple of ints.
        backend: whether to make an ndarray or a field.
        layout: the axes from the outermost to the innermost in memory, as ``order`` of a field: ``(1, 0)`` is column-major.
            Indices stay as they are.
        options: those of ``qp.field`` or ``qp.ndarray``.

    Raises:
        ArgumentError: as ``qp.field`` and ``qp.ndarray``; or ``layout`` is not an order of the axes, or that of an ndarray
            of structs.
    """
    extents = shape_of(shape)
    order = order_of_layout(layout, len(extents))
    in_c_order = order == tuple(range(len(extents)))
    if not isinstance(backend, Backend):
        raise ArgumentError(f"backend={backend!r}", hint="pass qp.Backend.FIELD or qp.Backend.NDARRAY")
    if backend is Backend.FIELD:
        letters = None if in_c_order else "".join(AXIS_NAMES[axis] for axis in order)
        return field(dtype, extents, order=letters, **options)
    if in_c_order:
        return ndarray(dtype, extents, **options)
    if getattr(dtype, "__quadpy_constructor__", None) == "struct":
        raise ArgumentError("an ndarray of structs is in C order", hint="pass backend=qp.Backend.FIELD")
    return _ordered(dtype, extents, order, **options)


def _ordered(
    dtype: DType, shape: tuple[int, ...], order: tuple[int, ...], *, needs_grad: bool = False, stream: object = None
) -> OrderedNDArray:
    scalar, element = element_of(dtype)
    made = OrderedNDArray(scalar, shape, element, order, stream)
    if needs_grad:
        require_floats(scalar)
        made.grad = OrderedNDArray(scalar, shape, element, order, stream)
        DIFFERENTIATED.add(made)
    return made
