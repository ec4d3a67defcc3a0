"""Numbers with gradients: scalar arguments of kernels, and what kernels return on a tape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from quadpy.core.dtypes import f64
from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.ndarray import NDArray, ndarray

if TYPE_CHECKING:
    from typing_extensions import Self


class Number(float):
    """``k = qp.ad.Number(0.3)``: a number to pass to kernels as a scalar argument, with a gradient ``k.grad[None]``.

    A kernel that returns a float returns one on a tape.  Arithmetic of Python with it is an error, as its derivative would be
    lost: ``float(k)`` is the bare number.  Functions such as ``math.sin(k)`` also take it as a bare number.
    """

    __quadpy_number__ = True
    size, shape, element_shape = 1, (), ()
    array: NDArray

    @public
    def __new__(cls, value: float = 0.0) -> Self:
        return cls.of(value, ndarray(f64, (), needs_grad=True))

    @classmethod
    def of(cls, value: float, array: NDArray) -> Self:
        """``value`` with the gradient of ``array``."""
        made = super().__new__(cls, value)
        made.array = array
        return made

    @property
    def grad(self) -> NDArray | None:
        """The gradient, an array of one number."""
        return self.array.grad

    def has_grad(self) -> bool:
        """Always true."""
        return True

    def __float__(self) -> float:
        return float.__add__(self, 0.0) if self else float.__abs__(self)

    def __repr__(self) -> str:
        return f"Number({float.__repr__(self)})"

    def _refuse(self, *others: Any) -> NoReturn:
        raise ArgumentError(
            f"{self!r} has a gradient, which arithmetic of Python would lose", call_site(),
            hint="compute with it in a kernel; or with float(number), which is a constant",
        )  # fmt: skip

    for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow"):
        locals()[f"__{_name}__"] = locals()[f"__r{_name}__"] = _refuse
    __neg__ = __abs__ = _refuse
