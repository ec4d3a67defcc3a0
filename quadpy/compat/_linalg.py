"""``ti.linalg``: sparse matrices that kernels assemble, and solvers over SciPy on the host."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import quadpy as qp
from quadpy.compat._painting import Array, array_of
from quadpy.core.importing import import_extra
from quadpy.errors import ArgumentError, QuadpyError

if TYPE_CHECKING:
    from typing_extensions import Self

_TYPES: Final = {qp.f32: np.float32, qp.f64: np.float64}


def _scipy(module: str) -> Any:
    """A module of SciPy.

    Raises:
        QuadpyError: it is not installed.
    """
    return import_extra(f"scipy.{module}", "sparse matrices", "compat", called="SciPy")


def _numpy_type(dtype: Any) -> Any:
    if dtype not in _TYPES:
        raise ArgumentError(f"sparse matrices have elements of the type f32 or f64, not {dtype}")
    return _TYPES[dtype]


def _order(elements: Array, values: Array) -> Array:
    """By element, then by value: as one number if it fits into 64 bits, which is sorted faster than two."""
    if values.dtype != np.float32 or elements.max(initial=0) >= 1 << 31:
        return np.lexsort((values, elements))
    bits = values.view(np.int32)
    rising = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # integers in the order of the floats
    return np.argsort((elements << 32) + rising)


@qp.data_oriented
class SparseMatrixBuilder:
    """Collects what kernels add to the elements of a matrix, ``builder[i, j] += x``; ``build`` sums it up.

    A kernel's parameter for it is annotated with ``ti.types.sparse_matrix_builder()``.  There is room for
    ``max_num_triplets`` additions before each ``build``.
    """

    def __init__(
        self, num_rows: int, num_cols: int | None = None, max_num_triplets: int = 0, dtype: Any = qp.f32,
        storage_format: str = "col_major",
    ) -> None:  # fmt: skip
        _numpy_type(dtype)
        self.shape = (num_rows, num_rows if num_cols is None else num_cols)
        self.dtype = dtype
        self.places = qp.Vector.field(2, qp.i32, shape=max_num_triplets)
        self.values = qp.field(dtype, shape=max_num_triplets)
        self.count = qp.field(qp.i32, shape=())

    @qp.func
    def __quadpy_add__(self, i, j, x):
        k = qp.atomic_add(self.count[None], 1)
        if k < self.values.shape[0]:
            self.places[k] = [i, j]
            self.values[k] = x

    def triplets(self) -> tuple[Array, Array, Array]:
        """Rows, columns and values, by columns, in an order that does not depend on that of the threads.

        Raises:
            QuadpyError: kernels added more than ``max_num_triplets``.
            ArgumentError: they named an element outside the matrix.
        """
        places, values = self._sorted()
        columns, rows = np.divmod(places, self.shape[0])
        return rows, columns, values

    def _sorted(self) -> tuple[Array, Array]:
        """The numbers of elements, by columns, and the values that were added to them."""
        count, room = int(self.count[None]), self.values.shape[0]
        if count > room:
            raise QuadpyError(
                f"kernels added {count} values to a builder with room for {room}",
                hint=f"SparseMatrixBuilder(…, max_num_triplets={count})",
            )
        places, values = self.places.to_numpy()[:count], self.values.to_numpy()[:count]
        rows, columns = places.view(np.uint32).T  # negative ones are outside, too
        outside = (rows >= self.shape[0]) | (columns >= self.shape[1])
        if outside.any():
            wrong = places[outside]
            i, j = wrong[np.lexsort(wrong.T)[0]]
            raise ArgumentError(f"a kernel added to the element ({i}, {j}) of a matrix of shape {self.shape}")
        elements = columns.astype(np.int64) * self.shape[0] + rows
        order = _order(elements, values)
        return elements[order], values[order]

    def build(self, dtype: Any = None, _format: str = "CSR") -> SparseMatrix:
        """The matrix; the builder is empty afterwards.

        Raises:
            QuadpyError: as ``triplets``.
        """
        elements, values = self._sorted()
        self.count[None] = 0
        first = np.ones(len(elements), bool)  # of the values that belong to one element
        np.not_equal(elements[1:], elements[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        columns, rows = np.divmod(elements[starts], self.shape[0])
        sums = np.add.reduceat(values, starts) if len(values) else values
        begins = np.searchsorted(columns, np.arange(self.shape[1] + 1)).astype(np.int32)
        made = _scipy("sparse").csc_array((sums, rows.astype(np.int32), begins), shape=self.shape)
        return SparseMatrix(matrix=made, dtype=self.dtype if dtype is None else dtype)

    def print_triplets(self) -> None:
        """Print the added values."""
        sys.stdout.writelines(f"({i}, {j}) {x}\n" for i, j, x in zip(*self.triplets(), strict=True))


class SparseMatrix:
    """A sparse matrix on the host; ``matrix`` is SciPy's."""

    def __init__(
        self, n: int = 0, m: int | None = None, sm: object = None, dtype: Any = qp.f32,
        storage_format: str = "col_major", *, matrix: Any = None,
    ) -> None:  # fmt: skip
        self.dtype = dtype
        made = _scipy("sparse").csc_array((n, n if m is None else m)) if matrix is None else matrix
        self.matrix = made.tocsc().astype(_numpy_type(dtype), copy=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.matrix.shape
        return rows, columns

    @property
    def n(self) -> int:
        """Rows."""
        return self.shape[0]

    @property
    def m(self) -> int:
        """Columns."""
        return self.shape[1]

    def _of(self, matrix: Any) -> SparseMatrix:
        return SparseMatrix(matrix=matrix, dtype=self.dtype)

    def __add__(self, other: SparseMatrix) -> SparseMatrix:
        return self._of(self.matrix + other.matrix)

    def __sub__(self, other: SparseMatrix) -> SparseMatrix:
        return self._of(self.matrix - other.matrix)

    def __mul__(self, other: SparseMatrix | float) -> SparseMatrix:
        """Each element times a number, or times that of another matrix."""
        return self._of(self.matrix * (other.matrix if isinstance(other, SparseMatrix) else other))

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Any:
        """Times a matrix, or times a vector: a NumPy array gives one, a field or ndarray an ndarray."""
        if isinstance(other, SparseMatrix):
            return self._of(self.matrix @ other.matrix)
        return _like(other, self.matrix @ array_of(other), self.dtype)

    def __getitem__(self, index: tuple[int, int]) -> float:
        return float(self.matrix[index])

    def __setitem__(self, index: tuple[int, int], value: float) -> None:
        changed = self.matrix.tolil()
        changed[index] = value
        self.matrix = changed.tocsc()

    def transpose(self) -> SparseMatrix:
        """Rows as columns."""
        return self._of(self.matrix.T)

    def build_from_ndarray(self, triplets: Any) -> None:
        """Set the elements from an ndarray of triplets: row, column, value, and so on."""
        rows, columns, values = array_of(triplets).reshape(-1, 3).T
        places = (rows.astype(np.int64), columns.astype(np.int64))
        made = _scipy("sparse").coo_array((values, places), shape=self.shape)
        self.matrix = made.tocsc().astype(_numpy_type(self.dtype))

    def mmwrite(self, filename: str) -> None:
        """Write a Matrix Market file."""
        _scipy("io").mmwrite(filename, self.matrix)

    def __str__(self) -> str:
        return str(self.matrix.toarray())


class SparseSolver:
    """Solves ``A x = b`` directly, by SciPy's SuperLU.  ``solver_type`` says what ``A`` must be.

    ``"LLT"``: symmetric and positive definite; ``"LDLT"``: symmetric; ``"LU"``: any.  ``ordering`` is ignored.
    """

    def __init__(self, dtype: Any = qp.f32, solver_type: str = "LLT", ordering: str = "AMD") -> None:
        if solver_type not in ("LLT", "LDLT", "LU"):
            raise ArgumentError(f"{solver_type!r} is not a solver", hint="LLT, LDLT or LU")
        self._type, self._kind, self._dtype = _numpy_type(dtype), solver_type, dtype
        self._factors: Any = None

    def compute(self, sparse_matrix: SparseMatrix) -> Self:
        """Factorise a matrix."""
        self.factorize(sparse_matrix)
        return self

    def analyze_pattern(self, sparse_matrix: SparseMatrix) -> None:
        """Does nothing: ``factorize`` does it all."""

    def factorize(self, sparse_matrix: SparseMatrix) -> None:
        """Factorise a matrix; ``info`` says whether that was possible."""
        matrix, symmetric = sparse_matrix.matrix.astype(self._type), self._kind != "LU"
        options: dict[str, Any] = {}
        if symmetric:
            options = {"diag_pivot_thresh": 0.0, "permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}}
        try:
            factors = _scipy("sparse.linalg").splu(matrix, **options)
        except RuntimeError:  # singular
            self._factors = None
            return
        definite = self._kind != "LLT" or bool((factors.U.diagonal() > 0).all())
        self._factors = factors if definite else None

    def info(self) -> bool:
        """Whether the last factorisation succeeded."""
        return self._factors is not None

    def solve(self, b: Any) -> Any:
        """``x``: for a NumPy array ``b`` a NumPy array, for a field or ndarray an ndarray.

        Raises:
            QuadpyError: there is no factorisation.
        """
        if self._factors is None:
            raise QuadpyError(
                f"the solver has no {self._kind} factorisation: the matrix is singular, or not positive definite, or factorize() "
                "was not called"
            )
        return _like(b, self._factors.solve(array_of(b).astype(self._type).ravel()), self._dtype)


def _like(given: object, values: Array, dtype: Any) -> Any:
    if isinstance(given, np.ndarray):
        return values
    made = qp.ndarray(dtype, shape=values.shape)
    made.from_numpy(np.ascontiguousarray(values, _numpy_type(dtype)))
    return made
