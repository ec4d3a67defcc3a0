"""Products of matrices: what users pass, the tile that the device likes, and the launch."""

from __future__ import annotations

from math import prod
from typing import Any, Final, NamedTuple

from quadpy.algorithms.operands import refuse_overlap
from quadpy.algorithms.runs import Run
from quadpy.core.dtypes import BY_NAME, Scalar, f32, f64, i32, i64, u32, u64
from quadpy.core.messages import shown
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.linalg.kernels.products import products
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.foreign_device import describe_device_array, is_on_gpu
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import State
from quadpy.runtime.device.devices import current_device
from quadpy.simt.tiles import Tile, TileType

_UNITS: Final = 128
"""Units of a large GPU, each of which makes tiles one after another."""

SHAPES: Final[dict[str, dict[int, tuple[tuple[int, int, int, float], ...]]]] = {
    "cpu": dict.fromkeys((4, 8), ((32, 32, 64, 1.0), (16, 16, 16, 1.3))),
    "cuda": {
        4: ((128, 256, 256, 1.0), (64, 128, 128, 1.1), (64, 64, 64, 1.4), (32, 32, 64, 3.0)),
        8: ((64, 128, 128, 1.0), (64, 64, 128, 1.1), (32, 32, 64, 2.0)),
    },
    "amdgpu": {
        4: ((128, 128, 256, 1.0), (64, 64, 128, 1.3), (32, 32, 64, 3.0)),
        8: ((64, 64, 128, 1.0), (32, 32, 64, 2.0)),
    },
}
"""Rows, columns and threads of tiles, and what an element costs in them, by the backend and the bytes of a number.

Costs of f32 on CUDA are ratios of times on an H200, 29 November 2026, except that of 32 x 32; the others are estimates.
Tiles of AMD GPUs leave registers for two waves or more on each SIMD.
"""

SUMS: Final = (f32, f64, i32, i64, u32, u64)
"""The types that sums may have."""


@public
def matmul(
    a: Any, b: Any, *, out: Any = None, transpose_a: bool = False, transpose_b: bool = False, accumulate: bool = False,
    epilogue: Any = None, dtype: Scalar | None = None, stream: object = None,
) -> Any:  # fmt: skip
    """The product of two matrices, or of as many pairs of matrices as the first axis counts.

    Each element starts at 0 and gets one ``qp.fma(a[i, k], b[k, j], element)`` for each k, in ascending order.  Therefore
    it has the same bits on every device, whatever the sizes, strides and tiles.

    Args:
        a: an array of shape (m, k) or (count, m, k); a view with any strides, too.
        b: an array of shape (k, n) or (count, k, n).  If only one of ``a`` and ``b`` has three axes, or its count is 1, the
            other's single matrix is a factor of each product.
        out: where to put the result, an array of shape (m, n) or (count, m, n), which must not overlap ``a`` and ``b``; by
            default a new ``qp.ndarray``.
        transpose_a: the matrices of ``a`` are stored transposed, with shape (k, m).
        transpose_b: the matrices of ``b`` are stored transposed, with shape (n, k).
        accumulate: the sums start at what ``out`` contains, instead of 0.
        epilogue: a ``@qp.func`` that makes the result of the finished sum and its index, ``f(value, i, j)`` or
            ``f(value, number, i, j)``; or an object whose class has such a ``__call__``, with arrays among its attributes.
        dtype: the type of the sums, f32, f64 or an integer type; by default the wider of the types of ``a`` and ``b``, but f32
            for f16 and bf16, and i32 for narrower integers.
        stream: where the work runs; by default the calling thread's stream.

    Raises:
        ArgumentError: shapes or types do not fit, or an argument has an invalid value.
    """
    run = Run(stream)
    left, right = _factor_of(run, a, "a", transpose_a), _factor_of(run, b, "b", transpose_b)
    shape = _shape(left, right)
    sums = _type_of_sums(dtype, left, right)
    if out is None:
        if accumulate:
            raise ArgumentError("matmul: accumulate=True adds to out, which is missing", hint="pass out=")
        out = run.result(sums, shape)
    found = _described(run, out, "out")
    if found.shape != shape:
        raise ArgumentError(f"matmul: out has shape {found.shape}, and the product {shape}")
    for name, each in (("a", left), ("b", right)):
        refuse_overlap(found.view, each.view, f"matmul: out and {name}")
    count = shape[0] if len(shape) == 3 else 1
    tile, threads = _tile_for(shape, sums)
    launched = count * -(-shape[-2] // tile.shape[0]) * -(-shape[-1] // tile.shape[1]) * threads
    if launched >= 1 << 31:
        raise ArgumentError(f"matmul: a product of shape {shape} takes {launched} threads, more than one launch has",
                            hint="multiply a part of the matrices at a time")  # fmt: skip
    if prod(shape):
        turned = (left.is_turned, right.is_turned)
        run.launch(products, left.array, right.array, out, tile, threads, turned, bool(accumulate), epilogue, count)
    return out


class _Matrices(NamedTuple):
    """An array of matrices, which are stored transposed if ``is_turned``; ``view`` says where it begins and ends."""

    array: Any
    dtype: Scalar
    shape: tuple[int, ...]
    view: Any
    is_turned: bool = False


def _described(run: Run, given: Any, name: str) -> _Matrices:
    if given is None or isinstance(given, (int, float, complex, str, bytes, dict, list, tuple)):
        raise ArgumentError(f"matmul: {name} takes an array of matrices, not {shown(given)}")
    if isinstance(given, (NDArray, Field)):
        if given.element_shape or not isinstance(given.dtype, Scalar):
            raise ArgumentError(f"matmul: {name} takes an array of numbers, not {given!r}")
        found = _Matrices(given, given.dtype, tuple(given.shape), given)
    else:
        is_there = run.on_gpu and is_on_gpu(given)
        view: Any = describe_device_array(given, current_device()) if is_there else describe_host_array(given)
        kind, scalar, ndim, _ = view.type_key
        is_column = kind == "strided" and ndim in (2, 3) and view.abi[2 * ndim - 1] == 1 != view.abi[2 * ndim]
        found = _Matrices(given, BY_NAME[scalar], view.abi[1 : 1 + ndim], view, is_column)
    if len(found.shape) not in (2, 3):
        raise ArgumentError(f"matmul: {name} takes an array of two or three axes, not of shape {found.shape}",
                            hint="reshape it: the first of three axes counts the matrices")  # fmt: skip
    return found


def _factor_of(run: Run, given: Any, name: str, is_transposed: bool) -> _Matrices:
    """``shape`` is that of the factor; of a view of columns the array is the transposed view, whose rows are in memory."""
    found = _described(run, given, name)
    *before, rows, columns = found.shape
    array = found.array.swapaxes(-1, -2) if found.is_turned else found.array
    shape = (*before, columns, rows) if is_transposed else (*before, rows, columns)
    return _Matrices(array, found.dtype, shape, found.view, found.is_turned != bool(is_transposed))


def _shape(a: _Matrices, b: _Matrices) -> tuple[int, ...]:
    """The shape of the product."""
    counts = {each.shape[0] for each in (a, b) if len(each.shape) == 3}
    if a.shape[-1] != b.shape[-2] or len(counts - {1}) > 1:
        raise ArgumentError(f"matmul: matrices of shapes {a.shape} and {b.shape} have no product")
    count = max(counts - {1}, default=1)
    return (*((count,) if counts else ()), a.shape[-2], b.shape[-1])


def _type_of_sums(dtype: Scalar | None, a: _Matrices, b: _Matrices) -> Scalar:
    if dtype is None:
        floats = [each.dtype for each in (a, b) if each.dtype.is_float] or [a.dtype, b.dtype]
        widest = max(floats, key=lambda t: t.bits)
        return (f32 if widest.is_float else i32) if widest.bits < 32 else widest
    if dtype not in SUMS:
        raise ArgumentError(
            f"matmul: dtype takes a number type of 32 or 64 bits, not {shown(dtype)}", hint="such as qp.f32 or qp.f64"
        )
    return dtype


def _tile_for(shape: tuple[int, ...], dtype: Scalar) -> tuple[TileType, int]:
    """The tile with the lowest cost: elements with those beyond the edges, of the unit that makes the most tiles."""
    *count, rows, columns = shape

    def cost(m: int, n: int, _threads: int, each: float) -> float:
        tiles = prod(count) * -(-rows // m) * -(-columns // n)
        return -(-tiles // _UNITS) * m * n * each

    m, n, threads, _ = min(SHAPES.get(State.device[0], SHAPES["amdgpu"])[dtype.nbytes], key=lambda shape: cost(*shape))
    return Tile[m, n, dtype], threads
