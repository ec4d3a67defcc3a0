"""The common base of vectors and matrices on the host: functions and products have the types of the language."""

from __future__ import annotations

import functools
import math
import warnings
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from quadpy.core.dtypes import BY_NAME, Scalar, promote, u1
from quadpy.core.messages import shown
from quadpy.core.public import public
from quadpy.errors import ArgumentError, BoundsError
from quadpy.runtime.device.current import current_config
from quadpy.runtime.elements.numpy_types import SCALAR_OF, VALUES, Numbers, admit, cast, refuse_derivatives
from quadpy.runtime.elements.types import ScalarLike, scalar_of

MOST_COMPONENTS: Final = 65_536
"""The largest extent of a vector or matrix; more numbers belong in an array."""

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from typing_extensions import Self  # typing has it from Python 3.11 on

_CLASSES: Final[dict[int, type[Elements]]] = {}


class Elements(NDArrayOperatorsMixin):
    """A small vector or matrix.  Its numbers can be set; every operation returns a new one.

    If it was read from an array or field, setting a number also writes it to that element.

    Arithmetic and comparison are element-wise, in the same types as in kernels; a Python number is a literal of the
    default type.
    """

    __slots__ = ("_data", "_store", "dtype")
    __quadpy_value__: ClassVar[bool] = True  # a kernel that names one uses its numbers
    __quadpy_constructor__: ClassVar[str] = "entries"  # calls of the class inside kernels are compiled
    RANK: ClassVar[int]

    _data: Numbers
    _store: Callable[[Any, Numbers], None] | None
    dtype: Scalar

    if TYPE_CHECKING:  # the operators of NumPy's mixin, whose results are of this type

        def __add__(self, other: Any, /) -> Self: ...
        def __radd__(self, other: Any, /) -> Self: ...
        def __sub__(self, other: Any, /) -> Self: ...
        def __rsub__(self, other: Any, /) -> Self: ...
        def __mul__(self, other: Any, /) -> Self: ...
        def __rmul__(self, other: Any, /) -> Self: ...
        def __truediv__(self, other: Any, /) -> Self: ...
        def __rtruediv__(self, other: Any, /) -> Self: ...
        def __floordiv__(self, other: Any, /) -> Self: ...
        def __rfloordiv__(self, other: Any, /) -> Self: ...
        def __mod__(self, other: Any, /) -> Self: ...
        def __rmod__(self, other: Any, /) -> Self: ...
        def __pow__(self, other: Any, /) -> Self: ...
        def __rpow__(self, other: Any, /) -> Self: ...
        def __and__(self, other: Any, /) -> Self: ...
        def __rand__(self, other: Any, /) -> Self: ...
        def __or__(self, other: Any, /) -> Self: ...
        def __ror__(self, other: Any, /) -> Self: ...
        def __xor__(self, other: Any, /) -> Self: ...
        def __rxor__(self, other: Any, /) -> Self: ...
        def __lshift__(self, other: Any, /) -> Self: ...
        def __rlshift__(self, other: Any, /) -> Self: ...
        def __rshift__(self, other: Any, /) -> Self: ...
        def __rrshift__(self, other: Any, /) -> Self: ...
        def __neg__(self) -> Self: ...

    def __init_subclass__(cls) -> None:
        _CLASSES[cls.RANK] = cls

    if TYPE_CHECKING:  # types such as vec3 are called with their components

        def __init__(self, *entries: Any, dt: ScalarLike | None = None) -> None: ...
    else:

        @public
        def __init__(self, entries: object, dt: ScalarLike | None = None) -> None:
            numbers, own = _typed(entries)
            scalar = own if dt is None else scalar_of(dt)
            data = admit(numbers, scalar)
            if data.ndim != self.RANK or 0 in data.shape:
                raise ArgumentError(
                    f"qp.{type(self).__name__} cannot be made from numbers of shape {data.shape}",
                    hint="qp.Vector takes [x, y, ...], qp.Matrix takes rows [[a, b], [c, d]]",
                )
            self._fill_in(data, scalar)

    def _fill_in(self, data: Numbers, dtype: Scalar, store: Callable[[Any, Numbers], None] | None = None) -> None:
        object.__setattr__(self, "_data", data.copy())
        object.__setattr__(self, "_store", store)
        object.__setattr__(self, "dtype", dtype)

    def __quadpy_fingerprint__(self) -> str:
        """What the compiled code of a kernel that names it depends on: type, shape and bits."""
        return f"{type(self).__name__}:{self.dtype}:{self.shape}:{self._data.tobytes().hex()}"

    @property
    def entries(self) -> tuple[Any, ...]:
        """All numbers as Python numbers, in row-major order."""
        return tuple(self._data.ravel().tolist())

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n,)`` or ``(n, m)``."""
        return self._data.shape

    @property
    def n(self) -> int:
        """The number of entries of a vector, or of rows of a matrix."""
        return len(self._data)

    @property
    def m(self) -> int:
        """The number of columns; a vector has one."""
        return self._data.shape[1] if self.RANK == 2 else 1

    def get_shape(self) -> tuple[int, ...]:
        """The same as ``shape``."""
        return self.shape

    def to_list(self) -> list[Any]:
        """The numbers as (nested) lists."""
        numbers: list[Any] = self._data.tolist()
        return numbers

    def to_numpy(self) -> Numbers:
        """A copy as an array of shape ``shape``; bf16 becomes float32."""
        return self._data.copy()

    def cast(self, dtype: ScalarLike) -> Self:
        """The same numbers in ``dtype``: integers wrap, float to integer saturates, NaN becomes 0."""
        scalar = scalar_of(dtype)
        return wrap(cast(self._data, scalar), scalar)  # type: ignore[no-any-return]  # of one rank: of one class

    # numpy.sum(v) and its like pass axis, dtype and out, all of them None: then the whole is reduced.
    def sum(self, *_numpy: None, **_options: None) -> Any:
        """The sum of all numbers, from the first to the last."""
        return wrap(np.add.accumulate(self._data.ravel(), dtype=self._data.dtype)[-1], self.dtype)

    def max(self, *_numpy: None, **_options: None) -> Any:
        """The largest number; any number wins over a NaN."""
        return np.fmax.reduce(self._data, axis=None).item()

    def min(self, *_numpy: None, **_options: None) -> Any:
        """The smallest number; any number wins over a NaN."""
        return np.fmin.reduce(self._data, axis=None).item()

    def any(self, *_numpy: None, **_options: None) -> bool:
        """Whether any number is not 0."""
        return bool(self._data.any())

    def all(self, *_numpy: None, **_options: None) -> bool:
        """Whether no number is 0."""
        return bool(self._data.all())

    def norm_sqr(self) -> float:
        """The sum of the squares."""
        return (self * self).sum()  # type: ignore[no-any-return]  # a number of the type of the components

    def norm(self, eps: float = 0) -> float:
        """The square root of the sum of the squares plus ``eps``; for integers, in the default float type."""
        square = self._in_float().norm_sqr() + eps
        return self._rounded(math.sqrt(square) if square >= 0 else math.nan)

    def norm_inv(self, eps: float = 0) -> float:
        """``1 / norm(eps)``; infinity if the norm is 0."""
        norm = self.norm(eps)
        return self._rounded(1 / norm) if norm else math.inf

    def normalized(self, eps: float = 0) -> Self:
        """The value divided by its norm plus ``eps``; NaN if both are 0."""
        return self / (self.norm() + eps)

    def _in_float(self) -> Self:
        return self if self.dtype.is_float else self.cast(float)

    def _rounded(self, value: float) -> float:
        return float(cast(np.asarray(value), self._in_float().dtype))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Implements all operators and NumPy's element-wise functions (``numpy.sin(v)``)."""
        if method != "__call__" or kwargs.keys() - {"out"} or not all(map(_is_operand, inputs)):
            return NotImplemented  # `v += w` passes out=v, and gives a new value, as in kernels
        results = tuple(wrap(*result) for result in apply(ufunc, [_typed(x) for x in inputs]))
        return results if ufunc.nout > 1 else results[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        return self._data.copy() if dtype is None else self._data.astype(dtype)

    def __bool__(self) -> bool:
        if current_config().as_taichi:
            warnings.warn(
                f"every {type(self).__name__} is true, as in Taichi: call .all() or .any()", RuntimeWarning, 2
            )
            return True
        raise ArgumentError(
            f"a {type(self).__name__} is neither true nor false: comparison is element-wise",
            hint="call .all() or .any()",
        )

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        """``v[i]`` and ``m[i, j]`` are numbers; a row ``m[i]`` and slices are vectors and matrices.

        Setting a number of a row sets it in the matrix; slices are copies.
        """
        store = functools.partial(self._set_in_row, index) if isinstance(index, int) else None
        try:
            return wrap(self._data[index], self.dtype, store)
        except IndexError as error:
            raise BoundsError(f"{type(self).__name__} of shape {self.shape}: {error}") from None

    def __setitem__(self, index: Any, value: object) -> None:
        """``v[i] = x``, ``m[i, j] = x``, ``m[i] = w``: numbers are cast to the type of the vector or matrix."""
        values = admit(value, self.dtype)
        try:
            self._data[index] = values
        except IndexError as error:
            raise BoundsError(f"{type(self).__name__} of shape {self.shape}: {error}") from None
        except ValueError:
            raise ArgumentError(f"{shown(value)} does not have the shape of this part of {self!r}") from None
        if self._store is not None:
            self._store(index, values)

    def fill(self, value: object) -> None:
        """Sets all numbers to ``value``."""
        self[:] = np.full(self.shape, admit(value, self.dtype))

    def _set_in_row(self, row: int, index: Any, values: Numbers) -> None:
        numbers = self._data[row].copy()
        numbers[index] = values
        self[row] = numbers

    def __setattr__(self, name: str, value: object) -> None:
        raise ArgumentError(f"{name!r} of a {type(self).__name__} cannot be set", hint="its numbers can: v[i] = x")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._data.copy(), self.dtype.name)

    def __repr__(self) -> str:
        numbers = np.array2string(self._data, separator=", ").replace("\n", "")
        return f"{type(self).__name__}({numbers}, dt={self.dtype})"


def wrap(data: Any, dtype: Scalar, store: Callable[[Any, Numbers], None] | None = None) -> Any:
    """Values of ``dtype`` as a Python number, a Vector or a Matrix, by their rank.

    ``store`` is called for each part of a vector or matrix that is set, with its index and its values.
    """
    if not np.ndim(data):
        return data.item()
    made = object.__new__(_CLASSES[data.ndim])
    made._fill_in(data, dtype, store)  # without the constructor's checks: these are values of the type
    return made


def full(shape: tuple[int, ...], value: float, dt: ScalarLike) -> Any:
    """A vector or matrix with all numbers the same."""
    require_extents(*shape)
    scalar = scalar_of(dt)
    return wrap(np.broadcast_to(admit(value, scalar), shape), scalar)


def require_extents(*extents: object) -> None:
    """Raises an ArgumentError unless a vector or matrix can have these extents."""
    if not all(isinstance(n, int) and n >= 1 for n in extents):
        given = " by ".join(map(shown, extents))
        raise ArgumentError(f"the extents of a vector or matrix are integers from 1 on, not {given}")
    if math.prod(n for n in extents if isinstance(n, int)) > MOST_COMPONENTS:
        raise ArgumentError(
            f"a vector or matrix has at most {MOST_COMPONENTS:,} components, not {' by '.join(map(shown, extents))}",
            hint="use an array: qp.ndarray or qp.field",
        )


def _restored(data: Numbers, dtype: str) -> Any:
    return wrap(data, BY_NAME[dtype])


def _is_operand(x: object) -> bool:
    return isinstance(x, (bool, int, float, np.generic, np.ndarray, Elements, list, tuple))


def _typed(x: object) -> Typed:
    """The numbers of ``x`` and their type: an array has its own type, Python numbers have the default types."""
    if isinstance(x, Elements):
        return x._data, x.dtype  # noqa: SLF001 - of the same class
    refuse_derivatives(x)
    try:
        numbers = np.asarray(x)
    except ValueError:
        raise ArgumentError(f"{shown(x)} is neither a vector nor a matrix: its rows have different lengths") from None
    if isinstance(x, (list, tuple)) and any(isinstance(part, Elements) for part in x):
        return numbers, meeting_type([_typed(part)[1] for part in x])
    if isinstance(x, (np.ndarray, np.generic)) and numbers.dtype in SCALAR_OF:
        return numbers, SCALAR_OF[numbers.dtype]
    scalar = scalar_of({"b": bool, "i": int, "u": int}.get(numbers.dtype.kind, float))
    return numbers, scalar


Typed: TypeAlias = tuple[Numbers, Scalar]
"""Numbers, and their type in the language."""


def apply(ufunc: np.ufunc, operands: Sequence[Typed]) -> list[Typed]:
    """The results of ``ufunc``, computed in the same type as in a kernel.

    Raises:
        ArgumentError: incompatible shapes, or a literal that the common type cannot hold.
    """
    scalar = meeting_type([own for _, own in operands])
    if ufunc is np.true_divide and not scalar.is_float:
        scalar = scalar_of(float)
    values = [cast(admit(numbers, own), scalar) for numbers, own in operands]
    with np.errstate(all="ignore"):  # as in kernels, 1 / 0 is infinity and integers wrap
        if ufunc is np.matmul:
            return [(cast(_product(*values), scalar), scalar)]
        shapes = {x.shape for x in values if x.ndim}
        if len(shapes) > 1:
            raise ArgumentError(f"values of shapes {sorted(shapes)} cannot be combined element by element")
        results = ufunc(*values)
    return [_settle(np.asarray(x), scalar) for x in (results if ufunc.nout > 1 else (results,))]


def meeting_type(types: Sequence[Scalar]) -> Scalar:
    """The common type of ``types``."""
    return reduce(promote, types, u1)


def _settle(values: Numbers, scalar: Scalar) -> Typed:
    """A result in the types of the language: comparisons give u1, ``sin`` of integers gives the default float type."""
    if values.dtype.kind == "b":
        return values, u1
    final = scalar if scalar.is_float or values.dtype == VALUES[scalar] else scalar_of(float)
    return cast(values, final), final


def _product(a: Numbers, b: Numbers) -> Any:
    """``a @ b``; each sum is taken from the first term to the last."""
    if not a.ndim or a.shape[-1:] != b.shape[:1]:
        raise ArgumentError(f"shapes {a.shape} and {b.shape} are incompatible in a product")
    return reduce(np.add, (np.multiply.outer(a[..., k], b[k]) for k in range(len(b))))
