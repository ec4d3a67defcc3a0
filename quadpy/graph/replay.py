"""Functions that are captured at their first call and replayed from then on.  Owns: replay, Replay, ReplayStats.

Imports: errors, recordings, what a call was given, executable graphs, devices, settings.

A call that is known to be like one before is one launch.  One of which it is known what its arguments change is another
launch before that.  Any other runs the Python function again, noting its launches instead of making them; the nodes that do
something else now are changed in the executable graph.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, overload

from quadpy.errors import ArgumentError, CaptureError, DeviceError, GraphError
from quadpy.graph.arena import Arena
from quadpy.graph.binding import Binding, binding_of
from quadpy.graph.execution import GraphExec
from quadpy.graph.leaves import Given, copied, given_to, surroundings
from quadpy.graph.nodes import Node
from quadpy.graph.recording import Recording, changes_between, record
from quadpy.graph.straight import Straight, straight_of
from quadpy.graph.verify import Verification
from quadpy.runtime.capturing import CAPTURES, table
from quadpy.runtime.current import current_config, launches_so_far, take_back_launches
from quadpy.runtime.device import Device
from quadpy.runtime.devices import current_device
from quadpy.runtime.fusion import Fuse, Fusion, require_fuse
from quadpy.settings import settings

__all__ = ["Replay", "ReplayStats", "State", "replay"]

State: TypeAlias = Literal["eager", "captured", "broken"]

Look: TypeAlias = Callable[[tuple[Node, ...], Arena], None]
"""Is shown the nodes of a graph, and what it allocated."""

MOST_VARIANTS: Final = 8
"""Graphs that one function keeps, for arguments of other shapes."""
MOST_FAILURES: Final = 3
"""Of a device: memory that is not there now may be there later, but not for ever."""

_log: Final = logging.getLogger("quadpy.graph")


@dataclass(frozen=True, slots=True)
class ReplayStats:
    """What a replayed function has done.

    captures   graphs that were made
    replays    calls that launched a graph, the first ones included
    updates    nodes that were changed because arguments had
    rebuilds   how often a change made the driver's graph anew
    fallbacks  calls that ran eagerly, as the function or a device could not do otherwise; ``reason`` is the last one's
    capture_s  seconds that making the graphs took
    """

    captures: int = 0
    replays: int = 0
    updates: int = 0
    rebuilds: int = 0
    fallbacks: int = 0
    reason: str | None = None
    capture_s: float = 0.0


@dataclass(slots=True)
class _Variant:
    """One graph of the function, and the call that it stands for now."""

    device: Device
    given: Given
    recording: Recording
    run: GraphExec
    binding: Binding | None = None


class Replay:
    """A function that runs as a graph; ``qp.graph.replay`` makes one.  Safe from any thread: one call at a time."""

    def __init__(self, function: Callable[..., Any], warmup: int, fuse: Fuse) -> None:
        functools.update_wrapper(self, function)
        self._fuse: Fuse = fuse
        self._function, self._warmup = function, warmup
        self._straight: Straight | None = None
        self._looked = False  # whether the function was looked at for that
        self._around: Callable[[], tuple[object, ...]] | None = None
        self._variants: list[_Variant] = []  # the latest last
        self._failures = 0
        self._lock = threading.RLock()
        self._verification = Verification() if settings().graph_verify else None
        self.state: State = "eager"
        self._noted = ReplayStats()  # but for what is counted in each call
        self._replays = self._updates = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, as a graph where that can be.

        Raises:
            whatever the function raises; then nothing that it launched in this call has run.
        """
        if CAPTURES.count and (table().sessions or current_device().current_stream().timeline.captured):
            return self._function(*args, **kwargs)  # its work belongs to the capture around it, or is refused
        with self._lock:
            if self.state == "broken" or Verification.failed:
                return self._eagerly(args, kwargs)
            if self._warmup:
                self._warmup -= 1
                return self._function(*args, **kwargs)
            if self._verification is not None:
                return self._verification.call(self, self._function, args, kwargs)
            return self.replay(args, kwargs)

    def replay(self, args: tuple[Any, ...], kwargs: dict[str, Any], look: Look | None = None) -> Any:
        """One call as a graph, or eagerly where that cannot be; ``look`` sees the graph before it is launched."""
        device = current_device()
        given = self.given(args, kwargs)
        for variant in reversed(self._variants):
            if variant.device is device and not variant.recording.draws and given.same(variant.given):
                return self._launch(variant, look)
        if (quick := self._bind_quickly(device, given, args, kwargs)) is not None:
            return self._launch(quick, look)
        first = launches_so_far()
        try:
            variant = self._bind(device, given, args, kwargs)
        except (CaptureError, GraphError) as error:
            self._note_fallback(error, broken=True)
        except DeviceError as error:
            if device.life.ended is not None:
                raise
            self._failures += 1
            self._note_fallback(error, broken=self._failures >= MOST_FAILURES)
        else:
            return self._launch(variant, look)
        take_back_launches(first, launches_so_far())
        return self._eagerly(args, kwargs)

    def clear(self) -> None:
        """Forget all graphs, and what they keep alive; the next call captures again."""
        with self._lock:
            for variant in self._variants:
                variant.run.destroy()
            self._variants, self.state, self._failures = [], "eager", 0

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
        """A look at what a call is given, and at what the function reads besides."""
        if self._around is None:
            self._around = surroundings(self._function)
        return given_to(args, kwargs).within(given_to(*self._around(), current_config()))

    @property
    def variants(self) -> tuple[GraphExec, ...]:
        """The executable graphs, the latest last."""
        with self._lock:
            self._settle()
            return tuple(variant.run for variant in self._variants)

    @property
    def stats(self) -> ReplayStats:
        """What it has done so far."""
        noted = self._noted
        return replace(noted, replays=noted.replays + self._replays, updates=noted.updates + self._updates)

    @property
    def fusion(self) -> Fusion:
        """Whether the graph that was launched last is one launch, and why it is, or is not."""
        return self._variants[-1].run.fusion if self._variants else Fusion(False, "there is no graph")

    __quadpy_replay__ = True

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<replayed {getattr(self._function, '__qualname__', repr(self._function))}, {self.state}>"

    # how

    def _launch(self, variant: _Variant, look: Look | None) -> Any:
        if look is not None:
            look(variant.run.nodes, variant.recording.arena)
        self._order(variant)
        variant.run.launch()
        if variant.recording.waits:
            variant.device.current_stream().synchronize()
        self._replays += 1
        if self._variants[-1] is not variant:
            self._variants.remove(variant)
            self._variants.append(variant)
        result = variant.recording.result
        return copied(result if variant.binding is None else variant.binding.result(result))

    def _order(self, variant: _Variant) -> None:
        """Graphs that share what the function allocates come after each other, as the launches of one do."""
        for other in self._variants:
            if other is not variant and other.recording.arena is variant.recording.arena:
                other.run.order_before(variant.device.current_stream())

    def _bind_quickly(
        self, device: Device, given: Given, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _Variant | None:
        """A variant that does what this call asks, where that is known without calling the function."""
        if kwargs or given.fluid:
            return None
        for variant in reversed(self._variants):
            binding = variant.binding
            if binding is None or variant.device is not device or not given.differs_in_arguments(variant.given):
                continue
            changed = binding.bind(args)
            if changed >= 0:
                variant.given = given
                self._updates += changed
                return variant
        return None

    def _settle(self) -> None:
        """Forget where arguments stand in graphs, which others may change now."""
        for variant in self._variants:
            if variant.binding is not None:
                result = variant.binding.result(variant.recording.result)
                variant.recording, variant.binding = replace(variant.recording, result=result), None

    def _bind(self, device: Device, given: Given, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Variant:
        """The variant that does what this call asks: one that is there, changed, or a new one.

        The function is called once, whatever comes of it: it may change objects of the user's.
        """
        self._settle()
        alike = [v for v in reversed(self._variants) if v.device is device and v.given.shape == given.shape]
        began = time.perf_counter()
        if not self._looked:
            self._looked, self._straight = True, straight_of(self._function)
        function = self._function if self._straight is None or kwargs else self._straight
        found = record(device, function, args, kwargs, alike[0].recording.arena if alike else Arena())
        for variant in alike:
            changed = changes_between(variant.run.nodes, found.graph)
            if changed is not None:
                self._change(variant, *changed)
                variant.given, variant.recording = given, found
                plain = not (kwargs or found.draws or found.waits or given.fluid)
                if self._straight is not None and plain:
                    variant.binding = binding_of(variant.run, self._straight, args)
                return variant
        run = found.graph._made(auto_free=False, priorities=False, fuse=self._fuse)  # noqa: SLF001 - this package's own
        variant = _Variant(device, given, found, run)
        spent = time.perf_counter() - began
        self._noted = replace(self._noted, captures=self._noted.captures + 1, capture_s=self._noted.capture_s + spent)
        self._variants.append(variant)
        while len(self._variants) > MOST_VARIANTS:
            self._order(variant)  # what is destroyed may be pending, and share memory with what is launched next
            self._variants.pop(0).run.destroy()
        self.state = "captured"
        self._around = None  # helpers may have been defined meanwhile
        return variant

    def _change(self, variant: _Variant, changes: dict[str, Any], different: int) -> None:
        if not changes:
            return
        before = variant.run.stats().rebuilds
        variant.run.replace(changes, same_order=True)
        rebuilds = variant.run.stats().rebuilds - before
        self._noted = replace(
            self._noted, updates=self._noted.updates + different, rebuilds=self._noted.rebuilds + rebuilds
        )

    def _note_fallback(self, error: Exception, *, broken: bool) -> None:
        reason = str(error)
        if self._noted.reason is None:
            _log.warning("%r runs without a graph: %s", self._function, reason)
        self._noted = replace(self._noted, reason=reason)
        if broken:
            for variant in self._variants:
                variant.run.destroy()
            self._variants, self.state = [], "broken"

    def _eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._noted = replace(self._noted, fallbacks=self._noted.fallbacks + 1)
        return self._function(*args, **kwargs)


@overload
def replay(function: Callable[..., Any], /, *, warmup: int = 0, fuse: Fuse = "auto") -> Replay: ...
@overload
def replay(*, warmup: int = 0, fuse: Fuse = "auto") -> Callable[[Callable[..., Any]], Replay]: ...
def replay(function: Any = None, /, *, warmup: int = 0, fuse: Fuse = "auto") -> Any:
    """Makes ``function`` run as a graph: its first call captures what it launches, and later ones replay that.

    Results are those of the function itself, byte for byte.  Arguments may change: numbers and arrays are bound anew,
    and other shapes get a graph of their own.  A function that does what cannot be captured runs as it is, after one
    warning of the logger ``quadpy.graph``; ``state`` is then ``"broken"``, and ``stats.reason`` says why.

    What the function does besides launching (printing, counting, NumPy) is done when it is recorded, not at each call.
    Arrays that it makes belong to the graph: the next call writes the same memory.

    Args:
        function: called with anything; what it reads from its closure and from globals is looked at as arguments are.
        warmup: how many calls run eagerly before the first capture.
        fuse: whether a graph of quadpy's own work runs as one launch: ``True`` wherever it can, ``"auto"`` where that is
            also expected to be quicker; ``fusion`` tells.

    Raises:
        ArgumentError: ``function`` cannot be called, ``warmup`` is negative, or ``fuse`` is none of the three.
    """
    require_fuse(fuse)
    if warmup < 0:
        raise ArgumentError(f"warmup is 0 or more, not {warmup}")
    if function is None:
        return functools.partial(replay, warmup=warmup, fuse=fuse)
    if not callable(function) or isinstance(function, Replay):
        raise ArgumentError(f"{function!r} is no function to replay")
    return Replay(function, warmup, fuse)
