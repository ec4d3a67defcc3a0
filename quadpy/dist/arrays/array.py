"""Arrays that kernels take as parameters; each rank has its own block of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from quadpy.core.completion import shows
from quadpy.core.dtypes import Scalar, element_text
from quadpy.core.messages import no_attribute
from quadpy.core.public import made_by
from quadpy.dist.arrays.halo_state import HaloState
from quadpy.dist.arrays.host_access import HostAccess
from quadpy.dist.arrays.memory import again, allocated, kept_of
from quadpy.dist.boxes import Widths
from quadpy.dist.division import Division
from quadpy.dist.lattice import Lattice
from quadpy.errors import ArgumentError, CaptureError
from quadpy.runtime.arrays.foreign_host import DISTRIBUTED, is_wide, type_key
from quadpy.runtime.arrays.view import TypeKey

if TYPE_CHECKING:
    from typing_extensions import Self


@made_by("the ndarray(dtype) of a qp.dist.Grid makes one")
@shows(
    "block", "copy_from", "device", "dtype", "element_shape", "fill", "from_numpy", "grid", "halo", "lattice", "local", "nbytes", "ndim",
    "needs", "owned_from_numpy", "owned_to_numpy", "shape", "size", "start", "to_numpy",
)  # fmt: skip
class DistributedArray(HostAccess):
    """An array that kernels take as a parameter; made by ``grid.ndarray``.

    Kernels see the global shape and global indices.  From the host, all ranks read and write it together; only
    ``owned_to_numpy`` may be called on one rank alone.

    lattice     which elements it has, and which of them each rank owns
    local       the rank's block and its halo
    start       the global index of the first local element; it may be outside the grid
    halo        how many cells of other ranks are there along each axis, below and above the block
    halo_state  which of these cells have the current values of their owners
    needs       how far loops read, and the exchange that this requires with this halo
    serial      its number among the arrays of the grid, the same on all ranks
    """

    __slots__ = (
        "__weakref__",
        "abi",
        "block",
        "device",
        "dtype",
        "element_shape",
        "grid",
        "halo",
        "halo_state",
        "lattice",
        "local",
        "nbytes",
        "ndim",
        "needs",
        "numbers",
        "pointer",
        "serial",
        "shape",
        "size",
        "start",
        "type_key",
        "wide",
    )

    __quadpy_array__: ClassVar[bool] = True  # a kernel that finds one in an argument takes it as a parameter
    __quadpy_view__: ClassVar[bool] = True  # it is an ArrayView itself
    writable: ClassVar[bool] = True
    _kind: ClassVar[str] = "ndarray"

    def __init__(self, grid: Division, lattice: Lattice, dtype: Scalar, element: tuple[int, ...]) -> None:
        self.grid, self.lattice, self.dtype, self.element_shape = grid, lattice, dtype, element
        self.shape, self.ndim, self.size = lattice.shape, grid.ndim, math.prod(lattice.shape)
        self.halo: Widths = ((0, 0),) * grid.ndim
        self.halo_state = HaloState()
        self.serial = next(grid.serials)
        self.needs: dict[tuple[Widths, ...], tuple[Widths, ...]] = {}
        staggered = "".join(str(m - n) for m, n in zip(lattice.shape, grid.shape, strict=True))
        name, shape = self._key
        self.type_key: TypeKey = type_key(DISTRIBUTED + staggered, name, grid.ndim, shape)
        self._allocate()

    @property
    def _key(self) -> tuple[str, tuple[int, ...]]:
        """The name of the elements' numbers and the shape of an element, in keys of types."""
        return self.dtype.name, self.element_shape

    def _like(self) -> Self:
        """A new array with elements of the same type."""
        return type(self)(self.grid, self.lattice, self.dtype, self.element_shape)

    # ------------------------------------------------------------------- halos

    def reserve(self, reaches: Iterable[Widths]) -> None:
        """Have a halo for all of these; where it grows, the block moves to new memory.

        Raises:
            CaptureError: a graph uses the memory.
        """
        wanted = [self.halo, *reaches]
        halo = tuple(
            (max(each[axis][0] for each in wanted), max(each[axis][1] for each in wanted)) for axis in range(self.ndim)
        )
        if halo != self.halo:
            if self.halo_state.in_graph:
                raise CaptureError(
                    f"this call reads further around its cells than earlier calls, so {self!r} would move in memory, but a "
                    "graph uses it",
                    hint="make the call once before the first capture",
                )
            owned = self._owned()
            self.halo = halo
            self._allocate()
            self._write_block(owned)

    def used_in(self, capture: object | None) -> None:
        """Note that a call uses the array, in ``capture`` or, for None, outside of captures."""
        state = self.halo_state
        if capture is None and state.is_captured:
            parts = [kept_of(self.local), kept_of(self.numbers)]
            self.local, self.numbers = again(self.local)  # the graph has the others for itself
            state.lend(parts)
        state.used_in(capture)

    def _allocate(self) -> None:
        self.needs.clear()
        extents = tuple(
            n + below + above for n, (below, above) in zip(self.lattice.block.shape, self.halo, strict=True)
        )
        self.local, self.numbers = allocated(self.dtype, extents, self.element_shape)
        self.pointer, self.nbytes, self.device, self.block = (
            self.local.pointer, self.local.nbytes, self.local.device, self.local.block,
        )  # fmt: skip
        self.abi, self.wide = (self.pointer, *self.shape), is_wide(self.shape, self.nbytes)
        self.start = tuple(a - below for a, (below, _) in zip(self.lattice.block.low, self.halo, strict=True))

    def __copy__(self) -> Self:
        """A separate array with the same elements; all ranks make it together."""
        made = self._like()
        made._write_block(self._owned())  # noqa: SLF001 - of the same class
        return made

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ArgumentError(
            f"{self!r} cannot be pickled: each rank has only a part of it",
            hint="pickle to_numpy(), which all ranks call",
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise no_attribute(f"a distributed {self._kind}", name, getattr(type(self), "__shown__", ()))

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise ArgumentError(
            f"NumPy cannot take {self!r}, of which each rank has only a part", hint="to_numpy() has all elements"
        )

    def __iter__(self) -> Iterator[Any]:
        raise ArgumentError(f"a loop over {self!r} belongs in a kernel", hint="to_numpy() has all elements")

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        element = element_text(self.dtype, self.element_shape)
        return f"distributed {self._kind}({element}, shape={self.shape})"
