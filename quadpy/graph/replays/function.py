"""Functions that run as graphs.

Each call runs the Python function, since anything that it reads may have changed, but what it launches is compared with
the graph of an earlier call.  A call that launches the same is one launch of that graph; other arguments are bound first.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from quadpy.core.completion import shows
from quadpy.core.copying import ByName, Recipe
from quadpy.core.public import made_by
from quadpy.errors import CaptureError, DeviceError, GraphError
from quadpy.graph.building.graph import Graph
from quadpy.graph.captures.arena import Arena
from quadpy.graph.execution import GraphExec
from quadpy.graph.replays.comparison import changes_between
from quadpy.graph.replays.session import ReplaySession
from quadpy.graph.replays.stats import Counters, ReplayStats
from quadpy.graph.replays.variants import Hint, Variant, Variants, hint_of
from quadpy.graph.replays.verify import Observer, Verification
from quadpy.runtime.device.current import launches_so_far, take_back_launches
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import CAPTURES, differentiating_here, quietly, thread_captures
from quadpy.runtime.launch.fusion import Fuse, Fusion
from quadpy.settings import settings

State: TypeAlias = Literal["eager", "captured", "broken"]

MAX_MISSES: Final = 16
"""How many calls in a row may cost more as a graph than launched one by one, for each thread, before the function runs
eagerly."""
MAX_FAILURES: Final = 3
"""How many errors of the device, such as a lack of memory, may happen before the function runs eagerly."""

_TOO_EXPENSIVE: Final = (
    f"{MAX_MISSES} calls in a row cost more as a graph than launched one by one: the graph does not pay"
)

_log: Final = logging.getLogger("quadpy.graph")


@made_by("@qp.graph.replay above a function makes one")
@shows("clear", "fusion", "stats", "variants")
class Replay(ByName):
    """A function that runs as a graph, made by ``qp.graph.replay``.  Safe from any thread; each has its own graphs."""

    def __init__(self, function: Callable[..., Any], warmup: int, fuse: Fuse) -> None:
        functools.update_wrapper(self, function)
        self._fuse: Fuse = fuse
        self._function, self._warmup = function, warmup
        self._lock = new_lock()  # for the warm-up calls and changes of ``state``
        self._variants = Variants()
        self._failures = self._misses = 0
        self._verification = Verification() if settings().graph_verify else None
        self._counters = Counters()
        self.fusion = Fusion(False, "there is no graph")
        """Whether the graph that was launched last is one launch, and why it is or is not."""
        self.state: State = "eager"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and launch what it launches as a graph if possible.

        Raises:
            whatever the function raises, after what it launched before that; KeyboardInterrupt launches nothing.
        """
        if CAPTURES.count and (thread_captures().sessions or current_device().current_stream().timeline.captured):
            return self._function(*args, **kwargs)  # the capture around the call records its work, or refuses it
        if CAPTURES.observer is not None and (taker := differentiating_here()) is not None and not taker.takes_graphs:
            return self._function(*args, **kwargs)
        if self.state == "broken" or Verification.failed:
            return self._run_eagerly(args, kwargs)
        if self._warmup and self._warms_up():
            return self._function(*args, **kwargs)
        if self._verification is not None:
            return self._verification.call(
                functools.partial(self.replay, args, kwargs), self._function, args, kwargs
            )  # fmt: skip
        return self.replay(args, kwargs)

    def replay(self, args: tuple[Any, ...], kwargs: dict[str, Any], observer: Observer | None = None) -> Any:
        """One call as a graph, or eagerly if necessary; ``observer`` sees the graph before its launch."""
        device, hint, first = current_device(), hint_of(args, kwargs), launches_so_far()
        known = self._variants.take(device, hint)
        try:
            result, variant = self._run(device, hint, known, args, kwargs)
        except (CaptureError, GraphError) as error:
            self._fall_back(str(error), broken=True)
        except DeviceError as error:
            if device.life.ended is not None:
                raise
            self._failures += 1
            self._fall_back(str(error), broken=self._failures >= MAX_FAILURES)
        else:
            self._launch(variant, observer)
            return result
        take_back_launches(first, launches_so_far())
        return self._run_eagerly(args, kwargs)

    def recipe(self) -> Recipe:
        """How another process makes it again."""
        return Recipe(self._function, {"warmup": self._warmup, "fuse": self._fuse})

    def clear(self) -> None:
        """Release all graphs and what they keep alive; the next call captures again."""
        self._release("eager")

    @property
    def variants(self) -> tuple[GraphExec, ...]:
        """The executable graphs; the last is the one that the calling thread launched last."""
        return tuple(variant.run for variant in self._variants)

    @property
    def stats(self) -> ReplayStats:
        """Counters of what the function has done so far."""
        return self._counters.stats()

    __quadpy_replay__ = True

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<replayed {self._name}, {self.state}>"

    @property
    def _name(self) -> str:
        """How messages call the function."""
        return str(getattr(self._function, "__qualname__", repr(self._function)))

    # the parts of a call

    def _run(
        self, device: Device, hint: Hint, known: Variant | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Variant]:
        """The function's result, and the variant that does what it launched."""
        began = time.perf_counter()
        recording = known.recording if known is not None and known.is_unchanged else None
        session = ReplaySession(device, device.current_stream(), known.arena if known else Arena(), recording)
        try:
            try:
                session.begin()
                with quietly(differentiating_here()):  # derivatives are taken of the graph
                    result = self._call_function(session, known, args, kwargs)
                graph = None if session.ends_as_recorded() else session.end()
            finally:
                session.abort()
        finally:
            session.abort()  # if an interrupt ended the first one
        if graph is None:
            assert known is not None
            self._bind(known, hint, session)
            return result, known
        self._misses += 1  # recording a call costs more than launching it, whether the graph is changed or made
        variant = self._changed(device, hint, known, graph, session) or self._made(hint, graph, session, began)
        if known is not None and variant is not known:
            self._variants.put(known)
        return result, variant

    def _call_function(
        self, session: ReplaySession, known: Variant | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Record the function; if it raises an exception itself, launch the work before that."""
        try:
            return self._function(*args, **kwargs)
        except (Exception, SystemExit) as error:  # an interrupt launches nothing
            if session.failed is not None:
                raise session.failed from None  # whatever the function made of it
            if not isinstance(error, (CaptureError, GraphError, DeviceError)):
                _launch_once(session, known)
            raise

    def _bind(self, known: Variant, hint: Hint, session: ReplaySession) -> None:
        """Let ``known`` have the arguments of this call."""
        comparison = session.comparison
        if comparison.bound or comparison.changed:
            self._counters.updates += len(comparison.bound) + len(comparison.changed)
            if rebuilds := known.bind(comparison):
                self._counters.add(rebuilds=rebuilds)
        known.hint = hint
        self._misses = 0 if known.is_cheaper(comparison) else self._misses + 1

    def _changed(
        self, device: Device, hint: Hint, known: Variant | None, graph: Graph, session: ReplaySession
    ) -> Variant | None:
        """A variant with the structure of ``graph``, changed to do the same."""
        for variant in [*([known] if known is not None else []), *self._variants.alike(device, hint)]:
            found = changes_between(variant.run.nodes, graph)
            if found is None:
                continue
            if variant is not known:
                self._variants.remove(variant)
            changes, different = found
            self._counters.updates += different
            self._counters.add(rebuilds=variant.replace(changes, session, hint))
            return variant
        return None

    def _made(self, hint: Hint, graph: Graph, session: ReplaySession, began: float) -> Variant:
        """A new variant."""
        run = graph.make_executable(fuse=self._fuse)
        self._counters.add(captures=1, capture_s=time.perf_counter() - began)
        return Variant(session.device, hint, run, session.recording(), session.arena)

    def _launch(self, variant: Variant, observer: Observer | None) -> None:
        """Launch the variant, and keep it for the next call."""
        run, stream = variant.run, variant.device.current_stream()
        if observer is not None:
            observer(run.nodes, variant.arena)
        for other in self._variants.own():  # graphs that share the arrays of the function run one after another
            if other.arena is variant.arena:
                other.run.order_before(stream)
        run.launch()
        self.fusion = run.fusion
        self._counters.replays += 1
        for superseded in self._variants.put(variant):
            superseded.run.destroy()
        if self.state != "captured":
            self._has_captured()
        if self._misses >= MAX_MISSES and self._misses >= MAX_MISSES * self._variants.thread_count:
            self._fall_back(_TOO_EXPENSIVE, broken=True)

    def _has_captured(self) -> None:
        with self._lock:
            if self.state == "broken":  # since another thread's call ended while this one ran
                self._release("broken")
            else:
                self.state = "captured"

    def _release(self, state: State) -> None:
        """Release all graphs; the function is in ``state`` then."""
        with self._lock:
            self.state, self._failures, self._misses = state, 0, 0
            released = self._variants.clear()
        for variant in released:
            variant.run.destroy()

    # eager calls

    def _warms_up(self) -> bool:
        with self._lock:
            left = self._warmup
            self._warmup = max(left - 1, 0)
        return left > 0

    def _fall_back(self, reason: str, *, broken: bool) -> None:
        if self._counters.set_reason(reason):
            level = logging.INFO if reason == _TOO_EXPENSIVE else logging.WARNING
            _log.log(level, "%s runs without a graph: %s", self._name, reason)
        if broken:
            self._release("broken")

    def _run_eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._counters.fallbacks += 1
        return self._function(*args, **kwargs)


def _launch_once(session: ReplaySession, known: Variant | None) -> None:
    """Launch what a function launched before it raised; nothing if a fork was not joined, which leaves no graph."""
    session.stop_comparing()
    try:
        graph = session.end()
    except CaptureError:
        return
    if known is not None:  # whose memory the graph uses
        known.run.order_before(session.origin)
    with graph.make_executable(fuse=False) as once:
        once.launch()
