"""Vectors outside kernels."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from quadpy.core.importing import import_late
from quadpy.core.messages import no_attribute
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.hostmath.descriptors import VectorType
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.elements.types import ScalarLike
from quadpy.runtime.elements.values import Elements, full, require_extents, wrap

SWIZZLES: Final = ("xyzw", "rgba", "stpq")
"""The three sets of component names; a swizzle takes one to four names from one set."""


class Vector(Elements):
    """``n`` numbers of one type: ``qp.Vector([x, y, ...], dt=None)``.

    Without ``dt``, the type is that of the given array, or the default for the numbers in the list.
    """

    __slots__ = ()
    RANK: ClassVar[int] = 1

    def __getattr__(self, name: str) -> Any:
        """Components by name: ``v.x`` is a number, ``v.zyx`` a vector."""
        for names in SWIZZLES:
            if len(name) <= 4 and set(name) <= set(names[: self.n]):
                picked = [names.index(letter) for letter in name]
                return self[picked[0]] if len(picked) == 1 else self[picked]
        instead = {} if name.startswith("_") else import_late("quadpy.core.elsewhere").INSTEAD
        raise no_attribute(f"a Vector of {self.n}", name, dir(type(self)), instead)

    def __setattr__(self, name: str, value: object) -> None:
        """``v.x = 1`` and ``v.xy = [1, 2]``."""
        for names in SWIZZLES:
            if len(name) <= 4 and set(name) <= set(names[: self.n]):
                picked = [names.index(letter) for letter in name]
                if len(set(picked)) < len(picked):
                    raise ArgumentError(f"{name!r} names the same component twice")
                self[picked[0] if len(picked) == 1 else picked] = value
                return
        super().__setattr__(name, value)

    def dot(self, other: Vector) -> float:
        """The sum of the products of corresponding numbers of this vector and ``other``."""
        return self @ other  # type: ignore[no-any-return]  # a number of the wider type

    def cross(self, other: Any) -> Any:
        """The cross product with ``other``: a number in two dimensions, a vector in three."""
        other = other if isinstance(other, Vector) else Vector(other)
        if self.n != other.n or self.n not in (2, 3):
            raise ArgumentError(f"cross takes two vectors of 2 or of 3 numbers, not of {self.n} and {other.n}")
        if self.n == 2:
            return (self * other.yx)[0] - (self * other.yx)[1]
        return self.yzx * other.zxy - self.zxy * other.yzx

    def outer_product(self, other: Any) -> Any:
        """The matrix of ``self[i] * other[j]``."""
        other = other if isinstance(other, Vector) else Vector(other)
        columns = [self * other[j] for j in range(other.n)]
        return wrap(np.stack([column.to_numpy() for column in columns], axis=1), columns[0].dtype)

    @staticmethod
    @public
    def zero(dt: ScalarLike, n: int) -> Vector:
        """``n`` zeros of type ``dt``."""
        return full((n,), 0, dt)  # type: ignore[no-any-return]  # of one rank: a Vector

    @staticmethod
    @public
    def one(dt: ScalarLike, n: int) -> Vector:
        """``n`` ones of type ``dt``."""
        return full((n,), 1, dt)  # type: ignore[no-any-return]  # of one rank: a Vector

    @staticmethod
    @public
    def unit(n: int, i: int, dt: ScalarLike | None = None) -> Vector:
        """``n`` numbers, 1 at ``i`` and 0 elsewhere; without ``dt``, of the default integer type."""
        require_extents(n)
        if not 0 <= i < n:
            raise ArgumentError(f"a vector of {n} numbers has no component {i}", hint=f"pass 0 to {n - 1}")
        return Vector([int(k == i) for k in range(n)], int if dt is None else dt)

    @staticmethod
    @public
    def field(n: int, dtype: ScalarLike, shape: Any = None, **options: Any) -> Field:
        """A field of vectors of ``n`` numbers; ``dtype``, ``shape`` and ``options`` as in ``qp.field``."""
        return VectorType(n, dtype).field(shape=shape, **options)

    @staticmethod
    @public
    def ndarray(n: int, dtype: ScalarLike, shape: Any, **options: Any) -> NDArray:
        """An array of vectors of ``n`` numbers; ``dtype``, ``shape`` and ``options`` as in ``qp.ndarray``."""
        return VectorType(n, dtype).ndarray(shape, **options)

    @staticmethod
    @public
    def tensor(n: int, dtype: ScalarLike, shape: Any, **options: Any) -> Field | NDArray | OrderedNDArray:
        """A field or an ndarray of vectors of ``n`` numbers; ``dtype``, ``shape`` and ``options`` as in ``qp.tensor``."""
        return VectorType(n, dtype).tensor(shape, **options)
