"""Vectors outside kernels.  Owns: Vector.  Imports: hostmath's own modules; the runtime when an array is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from quadpy.errors import ArgumentError
from quadpy.hostmath.descriptors import VectorType
from quadpy.hostmath.dtype import ScalarLike
from quadpy.hostmath.values import Elements, full, wrap

if TYPE_CHECKING:
    from quadpy.runtime.arrays.field import Field
    from quadpy.runtime.arrays.ndarray import NDArray

__all__ = ["SWIZZLES", "Vector"]

SWIZZLES: Final = ("xyzw", "rgba", "stpq")
"""The three sets of names that components have; a swizzle takes one to four names out of one set."""


class Vector(Elements):
    """``n`` numbers of one type: ``qp.Vector([x, y, ...], dt=None)``.

    Without ``dt`` the type is that of the array given, or the default of what the list holds.
    """

    __slots__ = ()
    RANK: ClassVar[int] = 1

    def __getattr__(self, name: str) -> Any:
        """Components by name: ``v.x`` is a number, ``v.zyx`` a vector."""
        for names in SWIZZLES:
            if len(name) <= 4 and set(name) <= set(names[: self.n]):
                picked = [names.index(letter) for letter in name]
                return self[picked[0]] if len(picked) == 1 else self[picked]
        raise AttributeError(f"a Vector of {self.n} has no attribute {name!r}")

    def dot(self, other: Vector) -> Any:
        return self @ other

    def cross(self, other: Vector) -> Any:
        """A number in two dimensions, a vector in three."""
        if self.n != other.n or self.n not in (2, 3):
            raise ArgumentError(f"cross is there for two vectors of 2 or of 3, not of {self.n} and {other.n}")
        if self.n == 2:
            return (self * other.yx)[0] - (self * other.yx)[1]
        return self.yzx * other.zxy - self.zxy * other.yzx

    def outer_product(self, other: Vector) -> Any:
        """The matrix of ``self[i] * other[j]``."""
        columns = [self * other[j] for j in range(other.n)]
        return wrap(np.stack([column.to_numpy() for column in columns], axis=1), columns[0].dtype)

    @staticmethod
    def zero(dt: ScalarLike, n: int) -> Vector:
        return full((n,), 0, dt)  # type: ignore[no-any-return]

    @staticmethod
    def one(dt: ScalarLike, n: int) -> Vector:
        return full((n,), 1, dt)  # type: ignore[no-any-return]

    @staticmethod
    def unit(n: int, i: int, dt: ScalarLike | None = None) -> Vector:
        """1 at ``i``, 0 elsewhere; of the default integer type without ``dt``."""
        return Vector([int(k == i) for k in range(n)], int if dt is None else dt)

    @staticmethod
    def field(n: int, dtype: ScalarLike, shape: Any = None, **options: Any) -> Field:
        """A field of vectors; ``options`` as in ``qp.field``."""
        return VectorType(n, dtype).field(shape=shape, **options)

    @staticmethod
    def ndarray(n: int, dtype: ScalarLike, shape: Any) -> NDArray:
        """An array of vectors."""
        return VectorType(n, dtype).ndarray(shape=shape)
