"""Fusion: several launches as one.  The request, its outcome, and the protocol of such a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from quadpy.errors import ArgumentError

if TYPE_CHECKING:
    from quadpy.runtime.drivers.driver import Driver, StreamHandle
    from quadpy.runtime.streams.stream import Stream

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


def why_not_on_part(driver: Driver) -> str:
    """Why one launch would leave the compute units of a stream that has only some; empty if it would not."""
    if "cooperative-apart" not in driver.features:
        return ""
    return "one launch would not stay on the compute units of its stream"


class OneLaunch(Protocol):
    """One cooperative launch; one thread at a time.  ``description`` is for people."""

    description: str

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
