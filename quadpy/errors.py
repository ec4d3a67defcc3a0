"""All exceptions of quadpy.

::

    QuadpyError
    ├── CompilationError
    │   ├── KernelSyntaxError (SyntaxError)     a construct that the kernel language does not have
    │   ├── KernelTypeError (TypeError)         a value of the wrong type, shape or dtype
    │   ├── KernelNameError (NameError)         a name that is bound nowhere
    │   ├── KernelValueError (ValueError)       a compile-time value that is out of range
    │   ├── KernelSourceError                   a function whose source text cannot be found
    │   ├── UnknownTargetError (ValueError)     a target that quadpy does not know
    │   ├── CodegenError                        LLVM refused a module, or a limit of the target is exceeded
    │   └── LinkError                           an object that the linker cannot turn into a code object
    ├── ArgumentError (TypeError)               a call with the wrong number or kind of arguments
    ├── CacheError                              the kernel cache cannot do what was asked
    ├── DeviceError
    │   ├── NoDeviceError
    │   ├── OutOfDeviceMemory (MemoryError)
    │   └── DriverError
    ├── StreamError, EventError, CaptureError, HazardError
    ├── GraphError                              an invalid graph, node or launch
    │   └── GraphUpdateError                    a change that an executable graph does not support
    ├── BoundsError (IndexError)                an index of an array that is out of range
    ├── DistributedError                        several ranks cannot work together
    │   ├── RankLostError                       another rank has ended, has failed, or does not answer in time
    │   ├── RanksDisagreeError                  ranks that must do the same do not
    │   ├── CheckpointError                     a checkpoint of a grid is missing, damaged, foreign, or cannot be written
    │   └── TransportError                      MPI, NCCL or RCCL is missing, or a call of it failed
    └── KernelFault                             a check inside a running kernel failed, under ``debug=True``
        ├── KernelAssertionError (AssertionError)       an ``assert``
        ├── KernelIndexError (BoundsError)              an index
        ├── KernelOverflowError (OverflowError)         a result or a cast that its type cannot hold
        ├── KernelZeroDivisionError (ZeroDivisionError) an integer division or remainder by zero
        ├── KernelShiftError (ValueError)               a negative shift, or one by the width or more
        ├── KernelRangeError (ValueError)               a range in steps of 0
        ├── KernelRaceError                             two iterations of a parallel loop that touch one element
        └── KernelDivergenceError                       lanes of a wave that do not reach its operation together
"""

from __future__ import annotations

import re
from typing import Any, Final

from quadpy.core.source import Span

__all__ = [
    "ArgumentError",
    "BoundsError",
    "CacheError",
    "CaptureError",
    "CheckpointError",
    "CodegenError",
    "CompilationError",
    "DeviceError",
    "DistributedError",
    "DriverError",
    "EventError",
    "GraphError",
    "GraphUpdateError",
    "HazardError",
    "HazardWarning",
    "KernelAssertionError",
    "KernelDivergenceError",
    "KernelFault",
    "KernelIndexError",
    "KernelNameError",
    "KernelOverflowError",
    "KernelRaceError",
    "KernelRangeError",
    "KernelShiftError",
    "KernelSourceError",
    "KernelSyntaxError",
    "KernelTypeError",
    "KernelValueError",
    "KernelZeroDivisionError",
    "LinkError",
    "NoDeviceError",
    "OutOfDeviceMemory",
    "QuadpyError",
    "RaceWarning",
    "RankLostError",
    "RanksDisagreeError",
    "SavedGraphError",
    "StreamError",
    "TransportError",
    "UnknownTargetError",
]


_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")
"""What the ``repr`` of an object says about its memory, which tells readers nothing."""
_MOST_CALLS: Final = 8
"""Calls that the text of an error shows."""


class QuadpyError(Exception):
    """The base class: ``message`` says what is wrong, ``span`` where, ``hint`` what to do."""

    def __init__(self, message: str, span: Span | None = None, *, hint: str = "") -> None:
        message = _ADDRESS.sub("", message)
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        parts = [place + self.message]
        if self.span and (excerpt := self.span.excerpt()):
            parts.append(excerpt)
        if self.hint:
            parts.append(f"    hint: {self.hint}")
        return "\n".join(parts)


class CompilationError(QuadpyError):
    """A kernel that cannot be compiled.

    ``calls`` are the calls of functions that led to the place, the innermost first: each function's name, and where it
    was called.
    """

    calls: tuple[tuple[str, Span], ...] = ()

    def add_call(self, name: str, where: Span, *, hidden: bool) -> None:
        """Adds the call around; the place of an error in a ``hidden`` function, one of quadpy's own, is its call.

        The message begins with the name of that function, which its own words need not tell.
        """
        if not hidden:
            self.calls += ((name, where),)
        elif self.calls:
            self.calls = (*self.calls[:-1], (self.calls[-1][0], where))
        else:
            self.span = where
            inside = str(self.args[0])
            self.message = inside if inside.startswith(name) else f"{name}: {inside}"

    def __str__(self) -> str:
        lines = [super().__str__()]
        for name, where in self.calls[:_MOST_CALLS]:
            lines += [f"    in {name}, called at {where}", where.excerpt()]
        if len(self.calls) > _MOST_CALLS:
            lines.append(f"    … and {len(self.calls) - _MOST_CALLS} more calls")
        return "\n".join(filter(None, lines))


class KernelSyntaxError(CompilationError, SyntaxError):
    """A construct that the kernel language does not have."""


class KernelTypeError(CompilationError, TypeError):
    """A value of the wrong type, shape or dtype inside a kernel."""


class OverwrittenError(KernelTypeError):
    """A kernel overwrites a value that its derivative needs."""


class KernelNameError(CompilationError, NameError):
    """A name that is bound neither in the kernel nor where it was defined."""


class KernelValueError(CompilationError, ValueError):
    """A compile-time value that is out of range, such as a literal that its type cannot hold."""


class KernelSourceError(CompilationError):
    """A function whose source text cannot be found."""


class UnknownTargetError(CompilationError, ValueError):
    """A target that quadpy does not know."""


class CodegenError(CompilationError):
    """LLVM refused a module, or the kernel exceeds a limit of its target."""


class LinkError(CompilationError):
    """A relocatable object that cannot be linked to a code object."""


class ArgumentError(QuadpyError, TypeError):
    """A call with the wrong number of arguments, or with an argument of a wrong type or value."""


class CacheError(QuadpyError):
    """The kernel cache cannot do what was asked."""


class DeviceError(QuadpyError):
    """A device or its runtime failed."""


class NoDeviceError(DeviceError):
    """There is no device of the requested kind; the message says what was looked for."""


class OutOfDeviceMemory(DeviceError, MemoryError):
    """The device has too little memory; the message gives the sizes."""


class DriverError(DeviceError):
    """A driver call failed; the message names the call, the error and the likely cause.

    For programs, ``call`` is the vendor's call, and ``name`` and ``code`` are its status: empty and 0 if quadpy refused
    before the call.
    """

    def __init__(
        self, message: str, span: Span | None = None, *, hint: str = "", call: str = "", name: str = "", code: int = 0
    ) -> None:
        super().__init__(message, span, hint=hint)
        self.call, self.name, self.code = call, name, code


class StreamError(QuadpyError):
    """A stream used after it was destroyed, or on the wrong device."""


class EventError(QuadpyError):
    """An event used after it was destroyed, or in a way that it does not support."""


class CaptureError(QuadpyError):
    """A call that a graph capture cannot hold."""


class GraphError(QuadpyError):
    """An invalid graph, node or launch."""


class GraphUpdateError(GraphError):
    """A change that an executable graph does not support; the graph stays as it was."""


class SavedGraphError(GraphError):
    """A file that is not a saved graph or kernel, that is damaged, or that has nothing for this device."""


class HazardError(QuadpyError):
    """Two accesses to the same memory, at least one of which writes, and which nothing orders; ``hazard`` has both."""

    hazard: Any = None


class HazardWarning(UserWarning):
    """Two accesses, possibly to the same memory, that nothing orders; ``hazard`` has both."""

    hazard: Any = None


class RaceWarning(HazardWarning):
    """Two iterations of a parallel loop touch one element, and one of them writes; ``hazard`` has both accesses."""


class BoundsError(QuadpyError, IndexError):
    """An index was out of range: outside kernels or, as a ``KernelIndexError``, inside one.

    For quadpy, ``is_certain`` says that a launch was refused before anything ran.
    """

    is_certain = False


class DistributedError(QuadpyError):
    """Several ranks cannot work together."""


class RankLostError(DistributedError):
    """Another rank has ended, has failed, or does not answer in time.

    For programs, ``rank`` is its number, or -1 if it is unknown, and ``reason`` is what happened to it.
    """

    rank: int = -1
    reason: str = ""


class RanksDisagreeError(DistributedError):
    """Ranks that must make the same calls differ in a call, a shape or a count; the message says what each does."""


class CheckpointError(DistributedError):
    """A checkpoint of a grid cannot be written or read: a file is missing, damaged or foreign, or has another shape."""


class TransportError(DistributedError):
    """MPI, NCCL or RCCL is missing, or a call of it failed; the message names the call and the likely cause."""


class KernelFault(QuadpyError):
    """A check inside a running kernel failed, under ``debug=True``.

    For programs, ``kernel`` is the name of the kernel, ``iteration`` the names of the loop variables with their values,
    outermost first, and ``values`` what the check looked at: indices and then extents, or operands.
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        hint: str = "",
        kernel: str = "",
        iteration: dict[str, int] | None = None,
        values: tuple[int | float, ...] = (),
    ) -> None:
        super().__init__(message, span, hint=hint)
        self.kernel, self.iteration, self.values = kernel, iteration or {}, values

    def __str__(self) -> str:
        loops = ", ".join(f"{name} = {value}" for name, value in self.iteration.items())
        return f"{super().__str__()}\n    in kernel {self.kernel}" + (f", at {loops}" if loops else "")


class KernelAssertionError(KernelFault, AssertionError):
    """An ``assert`` inside a kernel failed."""


class KernelIndexError(KernelFault, BoundsError):
    """An index inside a kernel was out of range."""


class KernelOverflowError(KernelFault, OverflowError):
    """A result or a cast inside a kernel does not fit its type."""


class KernelZeroDivisionError(KernelFault, ZeroDivisionError):
    """An integer division or remainder by zero inside a kernel."""


class KernelRaceError(KernelFault):
    """Two iterations of a parallel loop touched one element, and one of them wrote; ``hazard`` has both accesses."""

    hazard: Any = None


class KernelDivergenceError(KernelFault):
    """Lanes of a wave did not reach its operation together; on the CPU this is always checked."""


class KernelShiftError(KernelFault, ValueError):
    """A shift inside a kernel by a negative count, or by the width of its type or more."""


class KernelRangeError(KernelFault, ValueError):
    """A ``range`` inside a kernel has a step of 0."""
