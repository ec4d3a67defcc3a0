"""NumPy's operators and methods, for views that programs use as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from quadpy.runtime.arrays.dense import DenseArray


class LikeNumPy(NDArrayOperatorsMixin, DenseArray):
    """Operators give NumPy arrays, and methods of NumPy arrays are those of a copy that cannot be written.

    ``view += 1`` and functions of NumPy with ``out=view`` write the memory of the view.
    """

    __slots__ = ()
    __hash__ = object.__hash__  # NumPy's ``==`` compares elements

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, out: tuple[Any, ...] = (), **options: Any) -> Any:
        values = [np.asarray(each) if isinstance(each, DenseArray) else each for each in given]
        if not any(isinstance(each, DenseArray) for each in out):
            return getattr(ufunc, method)(*values, **({"out": out} if out else {}), **options)
        target = out[0]
        target.from_numpy(
            np.broadcast_to(getattr(ufunc, method)(*values, **options), target.shape + target.element_shape)
        )
        return target

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise self.missing(name)
        copy = self.to_numpy()
        copy.flags.writeable = False
        return getattr(copy, name)
