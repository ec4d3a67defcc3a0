"""Every function and operation of the language as one row.

Everything that depends on the list of functions is made from the rows: the names of ``qp`` and ``qp.simt`` and their
stubs, the trace's dispatch, the verifier, the lowering's dispatch, the reference page and the tests.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from quadpy.core.completion import shows
from quadpy.core.importing import import_late
from quadpy.core.messages import shown
from quadpy.errors import ArgumentError, KernelSyntaxError
from quadpy.intrinsics import atomics, block, control, math, waves
from quadpy.intrinsics.rows import Row

__all__ = ["BUILTINS", "BY_NAME", "GROUPS", "INSTRUCTIONS", "INTERNAL", "ROWS", "Builtin", "namespace"]


def _ndrange(*ranges: Any, axes: Any = None) -> Iterator[tuple[int, ...]]:
    """The indices of ``ndrange`` outside kernels."""
    order, axes = axes, []
    for given in ranges:
        ends = given if isinstance(given, (tuple, list)) else (0, given)
        if len(ends) != 2 or not all(hasattr(end, "__index__") for end in ends):
            raise ArgumentError(f"ndrange takes integers and pairs of integers, not {shown(given)}")
        axes.append(range(*ends))
    if any(axis and abs(axis[-1]) >> 63 for axis in axes):
        raise ArgumentError("ndrange takes integers of up to 64 bits")
    if order is None:
        return itertools.product(*axes)
    if not isinstance(order, (tuple, list)) or sorted(order) != list(range(len(axes))):
        raise ArgumentError(f"axes={shown(order)} must name each of the {len(axes)} ranges once, by number")
    visits = itertools.product(*(axes[k] for k in order))
    return (tuple(at[order.index(k)] for k in range(len(axes))) for at in visits)


_ON_HOST: Final[Mapping[str, Callable[..., Any]]] = {
    "ndrange": _ndrange,
    "ad.stop": lambda x: float(x) if isinstance(x, float) else x,
    "static": lambda *values: values if len(values) != 1 else values[0],
    "subgroup.group_size": lambda: import_late("quadpy.capabilities").lanes_of_waves(),
    "subgroup.log2_group_size": lambda: import_late("quadpy.capabilities").lanes_of_waves().bit_length() - 1,
}
"""Builtins that Python itself computes outside kernels."""


@shows()
class Builtin:
    """An object that users name, such as ``qp.sin``: a function of the kernel language, defined by its row."""

    on_host: ClassVar[Callable[[Builtin, tuple[Any, ...], Mapping[str, Any]], Any]]
    """Calls it outside kernels; set by ``jit``, which has the compiler."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.__name__ = self.__qualname__ = row.name
        self.__module__ = "quadpy"
        self.__doc__ = f"{row.signature}\n\n{row.doc}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Outside kernels: the result that the call has in a kernel, as Python numbers, vectors and matrices."""
        if (plain := _ON_HOST.get(self.__name__)) is not None:
            return plain(*args, **kwargs)
        if self.row.is_kernel_only:
            raise KernelSyntaxError(
                f"{self.__name__} exists inside kernels only", hint="call it from a @qp.kernel or a @qp.func function"
            )
        return Builtin.on_host(self, args, kwargs)

    def __repr__(self) -> str:
        return f"<quadpy builtin {self.__name__}>"

    def __quadpy_fingerprint__(self) -> str:
        return f"builtin:{self.__name__}"


GROUPS: Final[dict[str, tuple[Row, ...]]] = {
    **math.GROUPS, **atomics.GROUPS, **control.GROUPS, **block.GROUPS, **waves.GROUPS,
}  # fmt: skip
"""The builtins that users can name, by the headings of the reference page."""
BUILTINS: Final = {row.name: Builtin(row) for rows in GROUPS.values() for row in rows}
INTERNAL: Final = {row.name: Builtin(row) for row in math.INTERNAL}
"""The builtins that the math library and the language's own rules call."""
ROWS: Final = (*(builtin.row for builtin in BUILTINS.values()), *math.INTERNAL)
BY_NAME: Final = {row.name: row for row in ROWS}
INSTRUCTIONS: Final = {row.name: row for row in ROWS if row.is_instruction}
"""The rows that an ``Intrinsic`` of the IR may name."""


def namespace(prefix: str) -> dict[str, Builtin]:
    """The builtins whose names begin with ``prefix`` and a dot, by what follows; for "", those without a dot."""
    parts = ((*name.rpartition("."), builtin) for name, builtin in BUILTINS.items())
    return {last: builtin for first, _, last, builtin in parts if first == prefix}
