"""Matrices outside kernels.

Their determinants and inverses are computed by the operations of ``quadpy.lang.elimination``, so the bits are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, overload

import numpy as np

from quadpy.core.dtypes import Scalar, promote
from quadpy.core.importing import import_late
from quadpy.core.messages import no_attribute, shown
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.hostmath.descriptors import MatrixType, VectorType
from quadpy.hostmath.vector import Vector
from quadpy.runtime.elements.numpy_types import Numbers, cast
from quadpy.runtime.elements.types import ScalarLike, scalar_of
from quadpy.runtime.elements.values import Elements, full, require_extents, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quadpy.runtime.arrays.field import Field
    from quadpy.runtime.arrays.ndarray import NDArray
    from quadpy.runtime.arrays.ordered import OrderedNDArray


class Matrix(Elements):
    """``n`` rows of ``m`` numbers of one type: ``qp.Matrix([[a, b], [c, d]], dt=None)``.

    Without ``dt``, the type is that of the given array, or the default for the numbers in the lists.
    """

    __slots__ = ()
    RANK: ClassVar[int] = 2

    if TYPE_CHECKING:

        @overload
        def __matmul__(self, other: Matrix, /) -> Matrix: ...
        @overload
        def __matmul__(self, other: Vector, /) -> Vector: ...
        def __matmul__(self, other: Any, /) -> Any: ...

    def __getattr__(self, name: str) -> NoReturn:
        instead = {} if name.startswith("_") else import_late("quadpy.core.elsewhere").INSTEAD
        raise no_attribute("a Matrix", name, dir(type(self)), instead)

    def transpose(self) -> Matrix:
        """Rows as columns."""
        return wrap(self._data.T, self.dtype)  # type: ignore[no-any-return]  # of two ranks: a Matrix

    def trace(self) -> Any:
        """The sum of the diagonal."""
        self._need_square("trace")
        return Vector(self._data.diagonal(), self.dtype).sum()

    def determinant(self) -> float:
        """As in a kernel, to the bit; for integers the exact determinant, which wraps."""
        self._need_square("determinant")
        return wrap(determinant(self._data, self.dtype), self.dtype)  # type: ignore[no-any-return]  # a number

    def inverse(self) -> Matrix:
        """As in a kernel, to the bit; for integers in the default float type.

        Raises:
            ArgumentError: the matrix is singular, or not square.
        """
        self._need_square("inverse")
        if not self.dtype.is_float:
            return self.cast(float).inverse()
        found = inverse(self._data, self.dtype)
        if np.isfinite(self._data).all() and not np.isfinite(found).all():
            raise ArgumentError(f"{self!r} is singular: it has no inverse")
        return wrap(found, self.dtype)  # type: ignore[no-any-return]  # of two ranks: a Matrix

    def solve(self, right: Any) -> Vector | Matrix:
        """``x`` with ``self @ x = right``, as in a kernel, to the bit; a singular matrix gives infinities and NaNs.

        Raises:
            ArgumentError: the matrix is not square, or ``right`` has another number of rows.
        """
        self._need_square("solve")
        if not isinstance(right, (Vector, Matrix)) or right.n != self.n:
            raise ArgumentError(f"solve needs a vector or matrix of {self.n} rows, not {right!r}")
        floats = [each.dtype if each.dtype.is_float else scalar_of(float) for each in (self, right)]
        scalar = promote(*floats)
        found = solution(self.cast(scalar).to_numpy(), right.cast(scalar).to_numpy().reshape(self.n, -1), scalar)
        return wrap(found.reshape(right.shape), scalar)  # type: ignore[no-any-return]  # of two ranks: a Matrix

    def frobenius_inner(self, other: Matrix) -> Any:
        """The sum of the products of corresponding numbers of this matrix and ``other``."""
        return (self * other).sum()

    def _need_square(self, what: str) -> None:
        if self.n != self.m:
            raise ArgumentError(f"{what} needs a square matrix, not one of {self.n} by {self.m}")

    @staticmethod
    @public
    def zero(dt: ScalarLike, n: int, m: int | None = None) -> Any:
        """``n`` by ``m`` zeros of type ``dt``; a vector without ``m``."""
        return full((n,) if m is None else (n, m), 0, dt)

    @staticmethod
    @public
    def one(dt: ScalarLike, n: int, m: int | None = None) -> Any:
        """``n`` by ``m`` ones of type ``dt``; a vector without ``m``."""
        return full((n,) if m is None else (n, m), 1, dt)

    @staticmethod
    @public
    def identity(dt: ScalarLike, n: int) -> Matrix:
        """``n`` by ``n`` numbers of type ``dt``: 1 on the diagonal, 0 elsewhere."""
        require_extents(n, n)
        return Matrix(np.eye(n), dt)

    @staticmethod
    @public
    def unit(n: int, i: int, dt: ScalarLike | None = None) -> Vector:
        """Unit vector ``i`` of ``n`` numbers of type ``dt``."""
        return Vector.unit(n, i, dt)

    @staticmethod
    @public
    def diag(dim: int, val: float) -> Matrix:
        """``val`` on the diagonal of ``dim`` rows and columns, 0 elsewhere."""
        require_extents(dim, dim)
        return Matrix([[val if i == j else type(val)(0) for j in range(dim)] for i in range(dim)])

    @staticmethod
    @public
    def rows(rows: Sequence[Any]) -> Matrix:
        """The matrix whose rows are the vectors (or lists) ``rows``."""
        return Matrix(list(rows))

    @staticmethod
    @public
    def cols(cols: Sequence[Any]) -> Matrix:
        """The matrix whose columns are the vectors (or lists) ``cols``."""
        return Matrix.rows(cols).transpose()

    @staticmethod
    @public
    def field(
        n: int, m: int, dtype: ScalarLike, shape: Any = None, *, ndim: int | None = None, **options: Any
    ) -> Field:
        """A field of matrices of ``n`` by ``m``; ``dtype``, ``shape`` and ``options`` as in ``qp.field``.

        With ``ndim=1`` and ``m=1``, its elements are vectors.
        """
        if ndim not in (None, 1, 2) or (ndim == 1 and m != 1):
            raise ArgumentError(f"ndim={shown(ndim)} is not the number of axes of elements of {n} by {m}")
        return (VectorType(n, dtype) if ndim == 1 else MatrixType(n, m, dtype)).field(shape=shape, **options)

    @staticmethod
    @public
    def ndarray(n: int, m: int, dtype: ScalarLike, shape: Any, **options: Any) -> NDArray:
        """An array of matrices of ``n`` by ``m``; ``dtype``, ``shape`` and ``options`` as in ``qp.ndarray``."""
        return MatrixType(n, m, dtype).ndarray(shape, **options)

    @staticmethod
    @public
    def tensor(n: int, m: int, dtype: ScalarLike, shape: Any, **options: Any) -> Field | NDArray | OrderedNDArray:
        """A field or an ndarray of matrices of ``n`` by ``m``; ``dtype``, ``shape``, ``options`` as in ``qp.tensor``."""
        return MatrixType(n, m, dtype).tensor(shape, **options)


Matrix.rows.__quadpy_constructor__ = "entries"  # type: ignore[attr-defined]  # compiled inside kernels
Matrix.cols.__quadpy_constructor__ = "cols"  # type: ignore[attr-defined]


def determinant(m: Numbers, scalar: Scalar) -> Numbers:
    """The determinant of a square matrix; for integers it is exact, and wrapped to the type."""
    n = len(m)
    if not scalar.is_float:
        return _wrapped(_integer_determinant([[int(x) for x in row] for row in m]), scalar)
    with np.errstate(all="ignore"):
        if n == 2:
            return _minus_product(_rounded(m[0, 0] * m[1, 1], scalar), m[0, 1], m[1, 0], scalar)
        rows, swaps = _triangular(m, scalar, singular=True)
        value = rows[0, 0]
        for k in range(1, n):
            value = _rounded(value * rows[k, k], scalar)
    return np.asarray(-value if swaps % 2 else value)


def inverse(m: Numbers, scalar: Scalar) -> Numbers:
    """The inverse of a square matrix of floats; infinities and NaNs if it is singular."""
    n = len(m)
    with np.errstate(all="ignore"):
        rows, _ = _triangular(np.hstack([m, np.eye(n, dtype=m.dtype)]), scalar, singular=False)
        for i in reversed(range(n)):
            for j in range(i + 1, n):
                rows[i, n:] = _minus_product(rows[i, n:], rows[i, j], rows[j, n:], scalar)
            reciprocal = _rounded(m.dtype.type(1) / rows[i, i], scalar)
            rows[i, n:] = _rounded(rows[i, n:] * reciprocal, scalar)
    return rows[:, n:]


def solution(m: Numbers, right: Numbers, scalar: Scalar) -> Numbers:
    """``x`` with ``m @ x = right``, columns of the same float type; infinities and NaNs if the matrix is singular."""
    n = len(m)
    with np.errstate(all="ignore"):
        rows, _ = _triangular(np.hstack([m, right]), scalar, singular=False)
        for i in reversed(range(n)):
            for j in range(i + 1, n):
                rows[i, n:] = _minus_product(rows[i, n:], rows[i, j], rows[j, n:], scalar)
            rows[i, n:] = _rounded(rows[i, n:] / rows[i, i], scalar)
    return rows[:, n:]


def _triangular(m: Numbers, scalar: Scalar, *, singular: bool) -> tuple[Numbers, int]:
    """The rows after elimination with partial pivoting, and the number of row exchanges."""
    rows, swaps = m.copy(), 0
    for k in range(len(rows) - 1):
        for i in range(k + 1, len(rows)):
            if abs(rows[i, k]) > abs(rows[k, k]):
                rows[[k, i], k:] = rows[[i, k], k:]
                swaps += 1
        pivot = m.dtype.type(1) if singular and rows[k, k] == 0 else rows[k, k]
        for i in range(k + 1, len(rows)):
            factor = _rounded(rows[i, k] / pivot, scalar)
            rows[i, k + 1 :] = _minus_product(rows[i, k + 1 :], factor, rows[k, k + 1 :], scalar)
    return rows, swaps


def _minus_product(a: Any, b: Any, c: Any, scalar: Scalar) -> Numbers:
    """``a - b * c``, rounded twice."""
    return _rounded(a - _rounded(b * c, scalar), scalar)


def _rounded(values: Numbers, scalar: Scalar) -> Numbers:
    return cast(np.asarray(values), scalar)


def _integer_determinant(rows: list[list[int]]) -> int:
    """By elimination whose divisions have no remainder (Bareiss, 1968)."""
    sign, before = 1, 1
    for k in range(len(rows) - 1):
        chosen = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if chosen is None:
            return 0
        if chosen != k:
            rows[k], rows[chosen], sign = rows[chosen], rows[k], -sign
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, len(rows)):
                rows[i][j] = (rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]) // before
        before = rows[k][k]
    return sign * rows[-1][-1]


def _wrapped(value: int, scalar: Scalar) -> Numbers:
    return cast(np.asarray(value % 2**64, np.uint64), scalar)
