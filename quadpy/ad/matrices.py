"""Jacobians and Hessians, of which columns that share no row are computed in one direction.

A. R. Curtis, M. J. D. Powell and J. K. Reid: On the estimation of sparse Jacobian matrices, IMA Journal of Applied Mathematics 13
(1974), 117-119.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from quadpy.ad.arrays import storages_of
from quadpy.ad.copies import copy_of
from quadpy.ad.forward import FwdMode, directions_of
from quadpy.ad.functions import has
from quadpy.ad.tape import Tape
from quadpy.core.importing import import_late
from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError, QuadpyError


class SparsityError(QuadpyError):
    """A pattern of a matrix lacks elements that are not 0."""


class Csr(NamedTuple):
    """A sparse matrix by rows, where SciPy is not installed: those of ``scipy.sparse.csr_array``, in its order."""

    data: Any
    indices: Any
    indptr: Any


@public
def jacobian(
    function: Callable[..., Any], args: Sequence[Any], param: Any, output: Any, *, sparsity: Any = None
) -> Any:
    """The derivatives of each number of ``output``, which ``function(*args)`` writes, by each one of ``param``: a row each.

    ``sparsity`` is the pattern: a matrix of SciPy or NumPy that is not 0 where a derivative may be.  Then columns without a
    common row share a direction, and the result is a ``scipy.sparse.csr_array``, or a ``Csr`` without SciPy; otherwise it is
    a NumPy array.  Both arrays have duals; with ``needs_dual=8``, 8 directions are computed in one pass.  One more direction,
    a random one, checks the pattern.  The arguments, ``param`` and ``output`` are left as they were.

    Raises:
        SparsityError: the pattern lacks an element that is not 0.
        ArgumentError: an array without a dual, or a pattern of another shape.
    """

    def run() -> Any:
        function(*args)
        return output.dual

    return _Matrix(args, param, output, "dual", run).computed(lambda seeds: FwdMode(output, param, seeds), sparsity)


@public
def hessian(function: Callable[..., Any], args: Sequence[Any], param: Any, loss: Any, *, sparsity: Any = None) -> Any:
    """The second derivatives of ``loss``, which ``function(*args)`` writes, by the numbers of ``param``.

    As ``jacobian``, of the gradient, with the same ``sparsity``: ``param`` and ``loss`` have both gradients and duals.

    Raises:
        SparsityError: the pattern lacks an element that is not 0.
        ArgumentError: an array without a gradient or a dual, or a pattern of another shape.
    """

    def run() -> Any:
        with Tape(loss):
            function(*args)
        return param.grad.dual

    return _Matrix(args, param, loss, "grad", run, param).computed(lambda seeds: FwdMode(loss, param, seeds), sparsity)


class _Matrix:
    """``run`` computes the products with the directions of the block around."""

    def __init__(
        self, args: Sequence[Any], param: Any, output: Any, needs: str, run: Callable[[], Any], rows: Any = None
    ) -> None:
        for each in (param, output):
            for kind in ("dual", needs):
                if not has(each, kind):
                    raise ArgumentError(f"{each!r} has no {kind}", call_site(), hint=f"make it with needs_{kind}=True")
        self.run = run
        self.at_once = directions_of([param, output])
        self.shape = tuple(_count(each) for each in (output if rows is None else rows, param))
        arrays = dict.fromkeys((*(each for each in args if storages_of(each)), param, output))
        self.before = [copy_of(storage, None) for each in arrays for storage in storages_of(each)]
        self.tolerance = 1e-6 if param.dtype.bits == 64 else 1e-2

    def products(self, begin: Callable[[Any], Any], directions: Any) -> Any:
        """The matrix times each of the directions, one in each row."""
        size = self.at_once or 1
        found = []
        try:
            for first in range(0, len(directions), size):
                part = directions[first : first + size]
                seeds = np.concatenate([part, np.zeros((size - len(part), self.shape[1]))])
                for each in self.before:
                    each.restore(None)
                with begin(seeds):
                    made = self.run()
                found.append(made.to_numpy().astype(np.float64).reshape(size, self.shape[0])[: len(part)])
        finally:
            for each in self.before:
                each.restore(None)
        return np.concatenate(found)

    def computed(self, begin: Callable[[Any], Any], sparsity: Any) -> Any:
        if sparsity is None:
            return self.products(begin, np.eye(self.shape[1])).T
        rows, columns = _pattern(sparsity, self.shape)
        colours = coloured(rows, columns, self.shape)
        directions = np.zeros((int(colours.max(initial=-1)) + 2, self.shape[1]))
        directions[colours, np.arange(self.shape[1])] = 1
        directions[-1] = np.random.default_rng(0).uniform(0.5, 1.5, self.shape[1])
        found = self.products(begin, directions)
        values = found[colours[columns], rows]
        self.check(rows, columns, values, directions[-1], found[-1])
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.shape[0]))])
        try:
            sparse: Any = import_late("scipy.sparse")
        except ImportError:
            return Csr(values, columns, indptr)
        return sparse.csr_array((values, columns, indptr), shape=self.shape)

    def check(self, rows: Any, columns: Any, values: Any, way: Any, expected: Any) -> None:
        parts = values * way[columns]
        sums, sizes = (np.bincount(rows, each, minlength=self.shape[0]) for each in (parts, np.abs(parts)))
        wrong = np.flatnonzero(~(np.abs(sums - expected) <= self.tolerance * (sizes + np.abs(expected))))
        if wrong.size:
            raise SparsityError(
                f"sparsity lacks elements of row {wrong[0]}: the matrix times a random direction is {expected[wrong[0]]:.9g} there, "
                f"and {sums[wrong[0]]:.9g} by its elements", call_site(),
                hint="the pattern needs each element that may not be 0, at all values",
            )  # fmt: skip


def _count(array: Any) -> int:
    return int(np.prod((*array.shape, *array.element_shape), dtype=int))


def _pattern(sparsity: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The rows and columns of the elements, by rows."""
    if tuple(getattr(sparsity, "shape", ())) != shape:
        raise ArgumentError(
            f"sparsity has the shape {getattr(sparsity, 'shape', None)}, and the matrix {shape}", call_site()
        )
    rows, columns = sparsity.nonzero()
    order = np.lexsort((columns, rows))
    return np.asarray(rows)[order], np.asarray(columns)[order]


def coloured(rows: Any, columns: Any, shape: tuple[int, ...]) -> Any:
    """A number for each column, so that columns with a common row differ; the fullest columns choose first."""
    of_row = np.split(columns, np.cumsum(np.bincount(rows, minlength=shape[0]))[:-1])
    by_column = np.argsort(columns, kind="stable")
    counts = np.bincount(columns, minlength=shape[1])
    of_column = np.split(rows[by_column], np.cumsum(counts)[:-1])
    colours = np.full(shape[1], -1)
    for column in np.argsort(-counts, kind="stable"):
        taken = {int(colours[other]) for row in of_column[column] for other in of_row[row]}
        colours[column] = next(colour for colour in range(len(taken) + 1) if colour not in taken)
    return colours
