"""The protocol of ways to launch a kernel, and the types of its data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from quadpy.core.artifact import CodeObject
from quadpy.core.importing import import_late
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.view import ArrayView
from quadpy.runtime.launch.fusion import Fusion
from quadpy.runtime.launch.launch import HostLaunch, Prepared
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from quadpy.jit.compilation import Request
    from quadpy.jit.footprints import KernelFootprints

ArgumentValue: TypeAlias = int | float
"""One value of the argument block, as ``struct`` packs it."""

Values: TypeAlias = list[ArgumentValue]
"""The caller's part of the argument block; a plan adds the hidden arguments to it."""

Views: TypeAlias = Sequence[ArrayView]
"""The arrays among the arguments, in their order."""


Footprints: TypeAlias = "Callable[[], KernelFootprints]"
"""The footprints of a plan's launches, computed on first use."""


Elsewhere: TypeAlias = "Callable[..., Request]"
"""Takes a target and the names of arrays that begin at multiples of 16 bytes; gives the request for code there that does
the same, without checks.  ``predicated`` and ``fused`` ask for another form, as in ``Options``."""


def unknown_footprints(code: CodeObject) -> Footprints:
    """The footprints of code for which only the arrays of each launch are known."""

    @functools.cache
    def found() -> KernelFootprints:
        made: KernelFootprints = import_late("quadpy.jit.footprints").KernelFootprints(code, None)
        return made

    return found


class Plan(Protocol):
    """A kernel that is specialised for the types of its arguments, and one way to launch it.

    ``PlanMaker`` chooses: ``CpuPlan``; on a GPU ``GpuPlan``, and for graph kernels ``GraphPlan`` or ``FusingPlan``.
    """

    @property
    def code(self) -> CodeObject: ...
    @property
    def fields(self) -> tuple[FieldMemory, ...]:
        """The fields that the kernel names."""

    def run(self, values: Values, views: Views, stream: object) -> object:
        """Launches the kernel on ``stream``, or the calling thread's for None; returns its result, if any, or None.

        While the stream is captured the launch is recorded instead.

        Raises:
            Misfit: a value does not fit its parameter; nothing has begun.
            ArgumentError: the condition of a loop is empty, or a loop with barriers has incomplete blocks.
            CaptureError: the kernel returns a value, which a capture cannot do.
            OutOfDeviceMemory: there is no scratch memory.
        """

    def prepare(self, values: Values, views: Views, stream: Stream | None = None) -> Prepared | HostLaunch:
        """What ``run`` would launch, without launching it; ``stream``, or the calling thread's, owns scratch memory.

        Raises:
            Misfit, ArgumentError: as ``run``.
        """

    @property
    def footprints(self) -> Footprints:
        """The footprints of the launches of ``code``."""

    def apart(self, values: Values) -> Plan:
        """A plan that does the same, and whose tasks are timed one by one where that is possible; or itself."""

    def fusion(self, values: Values) -> Fusion:
        """Whether ``run`` is one launch, and why."""


class PlansOfRanks:
    """How plans for distributed arrays are made; set by ``quadpy.dist``, which is written on top of kernels."""

    make: ClassVar[Callable[..., Plan]]
