"""Fusion: several launches as one.  The request, its outcome, and the protocols that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from quadpy.errors import ArgumentError

if TYPE_CHECKING:
    from quadpy.runtime.drivers.driver import FunctionHandle, StreamHandle
    from quadpy.runtime.drivers.graph_driver import CopyWork, FillWork
    from quadpy.runtime.streams.stream import Stream

__all__ = ["TOO_LARGE", "Call", "Fuse", "Fusion", "OneLaunch", "Origin", "require_fuse"]

Fuse: TypeAlias = Literal["auto", True, False]
"""``True``: wherever it is possible; ``"auto"``: only where it is also expected to be quicker."""

TOO_LARGE: Final = frozenset({"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "hipErrorCooperativeLaunchTooLarge"})
"""Names of drivers' errors for a launch whose blocks do not all fit on the device at once."""


class Fusion(NamedTuple):
    """Whether something is one launch, and the reason why or why not."""

    fused: bool
    reason: str


def require_fuse(fuse: object, *, graph: bool = True) -> None:
    """Raise ArgumentError if ``fuse`` is none of the three, or ``True`` for a kernel that is not a graph kernel."""
    if not isinstance(fuse, (bool, str)) or fuse not in ("auto", True, False):
        raise ArgumentError(f"fuse is {fuse!r}", hint='use "auto", True or False')
    if fuse is True and not graph:
        raise ArgumentError("fuse=True is for graph kernels", hint="qp.kernel(graph=True, fuse=True)")


class Origin(Protocol):
    """The input from which the code of a call was compiled.  Equal origins have the same code."""

    def fuse(self, levels: Sequence[Sequence[Call]], fuse: Fuse) -> OneLaunch | str:
        """One launch for calls of this and other origins, or the reason why that is impossible.

        The calls of a level come after those of the levels before it, and not after each other.  With ``"auto"``, a
        launch that would be slower is refused.
        """

    @property
    def why_not_alone(self) -> str:
        """Why a call cannot be one launch, with all of its tasks and loops; an empty string if it can."""

    def of(self, work: FillWork | CopyWork) -> Call | str:
        """A call that does ``work``, or the reason why no call can."""

    def condition_setter(self) -> FunctionHandle:
        """The kernel that sets the conditions of loops in a driver's graph."""


Call: TypeAlias = "tuple[Origin, bytes]"
"""Code, and the argument block of a call without the address of scratch memory."""


class OneLaunch(Protocol):
    """One cooperative launch; one thread at a time."""

    most_blocks: int

    @property
    def keep(self) -> tuple[object, ...]:
        """The objects that must stay alive as long as it can run."""

    def bind(self, number: int, arguments: bytes) -> None:
        """Let later launches do call ``number``, in the order of the levels, with another argument block."""

    def why_not(self) -> str:
        """Why the calls that are bound now cannot be one launch, or should not; an empty string if they can."""

    def move(self, on: Stream) -> None:
        """Put later launches on the stream of ``on``, whose scratch memory they use."""

    def launch(self, stream: StreamHandle) -> None:
        """Put it on the stream of the last ``move``."""
