"""Values with derivatives: arguments that kernels take by value, and what kernels return on a tape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from quadpy.core.dtypes import f64
from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError
from quadpy.hostmath import Elements, Struct
from quadpy.hostmath.descriptors import type_of
from quadpy.hostmath.struct_types import struct_type_of
from quadpy.runtime.arrays.ndarray import NDArray, ndarray

if TYPE_CHECKING:
    from typing_extensions import Self


class Carrier:
    """A value whose derivatives are those of ``array``, an array of one element."""

    __slots__ = ()

    size, shape = 1, ()
    array: NDArray

    @property
    def grad(self) -> NDArray | None:
        """The gradient, an array of one element."""
        return self.array.grad

    @property
    def dual(self) -> NDArray | None:
        """The derivative along a direction, or several, of values made with ``needs_dual``."""
        return self.array.dual

    def has_grad(self) -> bool:
        """Always true."""
        return True

    def has_dual(self) -> bool:
        """Whether it was made with ``needs_dual``."""
        return self.dual is not None

    def __quadpy_number__(self, *others: Any, **options: Any) -> NoReturn:
        """Marks values with derivatives; raises ArgumentError, where these would be lost."""
        raise ArgumentError(
            f"{self!r} has a gradient, which Python would lose", call_site(),
            hint="compute with it in a kernel; or with float(number) or value.bare, which are constants",
        )  # fmt: skip

    for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul"):
        locals()[f"__{_name}__"] = locals()[f"__r{_name}__"] = __quadpy_number__
    __neg__ = __abs__ = __array__ = __array_ufunc__ = __quadpy_number__


class Number(Carrier, float):
    """``k = qp.ad.Number(0.3)``: a number to pass to kernels as a scalar argument, with a gradient ``k.grad[None]``.

    A kernel that returns a float returns one on a tape.  Arithmetic of Python with it is an error, as its derivative would be
    lost: ``float(k)`` is the bare number.  Functions such as ``math.sin(k)`` also take it as a bare number.  With
    ``needs_dual``, as for ``qp.ndarray``, it also has a derivative in forward mode, ``k.dual``.
    """

    element_shape = ()

    @public
    def __new__(cls, value: float = 0.0, *, needs_dual: bool | int = False) -> Self:
        return cls.of(value, ndarray(f64, (), needs_grad=True, needs_dual=needs_dual))

    @classmethod
    def of(cls, value: float, array: NDArray) -> Self:
        """``value`` with the gradient of ``array``."""
        made = super().__new__(cls, value)
        made.array = array
        return made

    def __float__(self) -> float:
        return float.__add__(self, 0.0) if self else float.__abs__(self)

    def __repr__(self) -> str:
        return f"Number({float.__repr__(self)})"


class Value(Carrier):
    """``v = qp.ad.Value(qp.Vector([1.0, 2.0]))``: a vector, matrix or struct to pass to kernels by value, with a gradient.

    ``v.grad[None]`` is a vector or matrix of f64, or a struct of the same type.  ``v.bare`` is the vector itself.  It does not
    change: it holds what ``held`` was.

    Raises:
        ArgumentError: ``held`` is something else, or has no floats.
    """

    __slots__ = (
        "__quadpy_bare__",
        "__weakref__",
        "array",
        "element_shape",
    )  # an attribute x would not be that of the vector

    @public
    def __init__(self, held: Any, *, needs_dual: bool | int = False) -> None:
        if isinstance(held, Struct):
            dtype: Any = struct_type_of(held)
        elif isinstance(held, Elements) and held.dtype.is_float:
            dtype = type_of(f64, held.shape)
        else:
            raise ArgumentError(f"{held!r} is not a vector, matrix or struct of floats", call_site())
        self.__quadpy_bare__ = _copy_of(held)
        self.array = ndarray(dtype, (), needs_grad=True, needs_dual=needs_dual)
        self.element_shape = self.array.element_shape

    @property
    def bare(self) -> Any:
        """A copy of what it holds."""
        return _copy_of(self.__quadpy_bare__)

    def __repr__(self) -> str:
        return f"Value({self.__quadpy_bare__!r})"


def _copy_of(held: Elements | Struct) -> Any:
    return struct_type_of(held)(held) if isinstance(held, Struct) else held.cast(held.dtype)
