"""The options of ``qp.kernel``."""

from __future__ import annotations

from typing import NamedTuple

from quadpy.core.derivatives import Derivative
from quadpy.core.public import require_switch
from quadpy.errors import ArgumentError
from quadpy.runtime.device.current import require_wave_size
from quadpy.runtime.launch.fusion import Fuse, require_fuse


class KernelOptions(NamedTuple):
    """As ``qp.kernel`` describes them; ``as_taichi`` is for programs of Taichi's: floats become integers where the
    annotation says so, and a name that the block has not assigned means the module's.  Accesses of a ``guarded`` kernel
    outside arrays do nothing; ``derivative`` is what it computes.
    """

    graph: bool = False
    fuse: Fuse = "auto"
    wave_size: int | None = None
    debug: bool | None = None
    as_taichi: bool = False
    checkpoints: bool = False
    guarded: bool = False
    derivative: Derivative = Derivative()

    def require(self) -> KernelOptions:
        """The same; ArgumentError for an option that a kernel cannot have."""
        require_switch(self.graph, "graph")
        require_switch(self.debug, "debug")
        require_switch(self.checkpoints, "checkpoints")
        if self.checkpoints and not self.graph:
            raise ArgumentError(
                "checkpoints are parts of graph kernels", hint="write @qp.kernel(graph=True, checkpoints=True)"
            )
        require_fuse(self.fuse, graph=bool(self.graph))
        require_wave_size(self.wave_size)
        return self
