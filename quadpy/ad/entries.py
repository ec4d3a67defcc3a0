"""What a tape notes, and how the backward pass goes through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from quadpy.ad.arrays import ZERO, Copy, copy_of
from quadpy.core.importing import import_late
from quadpy.core.light import dataclass
from quadpy.jit.plan import Plan, Values, Views
from quadpy.lang.source import FunctionSource
from quadpy.runtime.device.current import as_launch
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.memory.host_storage import Storage, Where
from quadpy.runtime.streams.stream import Stream, use_stream


class Entry(Protocol):
    """One step of the program, which the backward pass takes the other way on ``stream``, its own."""

    @property
    def stream(self) -> Stream: ...
    def back(self) -> None: ...


@dataclass(frozen=True, slots=True)
class BackwardLaunch:
    """A launch of the backward kernel: resolved when the forward one was called, so later changes do not matter.

    ``number`` is that of the forward launch, if it drew random numbers, which are drawn again.  ``changed`` is what the backward kernel computes again where the forward one had left it; it is put back.
    """

    stream: Stream
    source: FunctionSource
    plan: Plan
    values: Values
    views: Views
    changed: tuple[Storage, ...]
    number: int

    def back(self) -> None:
        before = [copy_of(storage, self.stream) for storage in self.changed]
        with as_launch(self.number):
            run_plan(self.source, self.plan, self.values[:], self.views, self.stream)
        for each in before:
            each.restore(self.stream)


def run_plan(source: FunctionSource, plan: Plan, values: Values, views: Views, stream: object) -> object:
    """Like a call of the kernel: reported to observers."""
    observer = CAPTURES.observer
    if observer is None:
        return plan.run(values, views, stream)
    observed = import_late("quadpy.jit.observed_call")
    return observed.run_observed(observer, source, plan, values, views, stream)


@dataclass(frozen=True, slots=True)
class Restored:
    """Arrays that were overwritten, and are needed as they were before."""

    stream: Stream
    copies: tuple[Copy, ...]

    def back(self) -> None:
        for each in self.copies:
            each.restore(self.stream)


@dataclass(frozen=True, slots=True)
class Cleared:
    """The host wrote constants: what was there before has no influence on what follows."""

    stream: Stream
    gradient: Storage
    where: Where

    def back(self) -> None:
        self.gradient.write(self.where, ZERO, self.stream)


@dataclass(frozen=True, slots=True)
class CustomCall:
    """A call of a function with a backward function of its own."""

    stream: Stream
    backward: Callable[..., object]
    args: Sequence[Any]
    kwargs: dict[str, Any]

    def back(self) -> None:
        with use_stream(self.stream):
            self.backward(*self.args, **self.kwargs)
