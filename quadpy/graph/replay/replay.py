"""Functions that are captured at their first call and replayed from then on.  Owns: replay, Replay, ReplayStats.

Imports: errors, sessions that compare, executable graphs, devices, settings.

Each call runs the Python function, since anything that it reads may have changed; but what it launches is held against the
graph of an earlier call.  A call that does the same is one launch of the graph, and one with other arguments is bound first.
"""

from __future__ import annotations

import functools
import inspect
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, overload

from quadpy.copying import ByName
from quadpy.errors import ArgumentError, CaptureError, DeviceError, GraphError
from quadpy.graph.capture.arena import Arena
from quadpy.graph.execution import GraphExec
from quadpy.graph.model.arguments import count_of
from quadpy.graph.model.graph import Graph
from quadpy.graph.model.nodes import Node
from quadpy.graph.replay.changes import changes_between
from quadpy.graph.replay.session import ReplaySession
from quadpy.graph.replay.tape import Tape
from quadpy.graph.replay.variants import Hint, Variant, Variants, hint_of
from quadpy.graph.replay.verify import Verification
from quadpy.runtime.device.current import launches_so_far, take_back_launches
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import CAPTURES, table
from quadpy.runtime.launch.fusion import Fuse, Fusion, require_fuse
from quadpy.settings import settings

__all__ = ["Replay", "ReplayStats", "State", "replay"]

State: TypeAlias = Literal["eager", "captured", "broken"]

Look: TypeAlias = Callable[[tuple[Node, ...], Arena], None]
"""Is shown the nodes of a graph, and what it allocated."""

MOST_MISSES: Final = 16
"""Calls in a row that cost more as a graph than one by one: such a function then runs as it is."""
MOST_FAILURES: Final = 3
"""Of a device: memory that is not there now may be there later, but not for ever."""

_DEAR: Final = f"{MOST_MISSES} calls in a row cost more than what they launch one by one: a graph does not pay"

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


class Replay(ByName):
    """A function that runs as a graph; ``qp.graph.replay`` makes one.  Safe from any thread; each has its own graphs."""

    def __init__(self, function: Callable[..., Any], warmup: int, fuse: Fuse) -> None:
        functools.update_wrapper(self, function)
        self._fuse: Fuse = fuse
        self._function, self._warmup = function, warmup
        self._variants = Variants()
        self._failures = self._misses = 0
        self._lock = new_lock()  # of counters alone; a finalizer that runs under it may come here
        self._verification = Verification() if settings().graph_verify else None
        self._stats = ReplayStats()  # but for what is counted in each call
        self._replays = self._updates = self._fallbacks = 0
        self.fusion = Fusion(False, "there is no graph")
        """Whether the graph that was launched last is one launch, and why it is, or is not."""
        self.state: State = "eager"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, and launches what it does as a graph where that can be.

        Raises:
            whatever the function raises, behind what it launched before.
        """
        if CAPTURES.count and (table().sessions or current_device().current_stream().timeline.captured):
            return self._function(*args, **kwargs)  # its work belongs to the capture around it, or is refused
        if self.state == "broken" or Verification.failed:
            return self._eagerly(args, kwargs)
        if self._warmup and self._warms_up():
            return self._function(*args, **kwargs)
        if self._verification is not None:
            return self._verification.call(self, self._function, args, kwargs)
        return self.replay(args, kwargs)

    def replay(self, args: tuple[Any, ...], kwargs: dict[str, Any], look: Look | None = None) -> Any:
        """One call as a graph, or eagerly where that cannot be; ``look`` sees the graph before it is launched."""
        device, hint, first = current_device(), hint_of(args, kwargs), launches_so_far()
        known = self._variants.take(device, hint)
        try:
            result, variant = self._run(device, hint, known, args, kwargs)
        except (CaptureError, GraphError) as error:
            self._fall_back(error, broken=True)
        except DeviceError as error:
            if device.life.ended is not None:
                raise
            self._failures += 1
            self._fall_back(error, broken=self._failures >= MOST_FAILURES)
        else:
            self._launch(variant, look)
            return result
        take_back_launches(first, launches_so_far())
        return self._eagerly(args, kwargs)

    def clear(self) -> None:
        """Forget all graphs, and what they keep alive; the next call captures again."""
        for variant in self._variants.clear():
            variant.run.destroy()
        self.state, self._failures, self._misses = "eager", 0, 0

    @property
    def variants(self) -> tuple[GraphExec, ...]:
        """The executable graphs, the latest of the calling thread's last."""
        return tuple(variant.run for variant in self._variants)

    @property
    def stats(self) -> ReplayStats:
        """What it has done so far."""
        return replace(self._stats, replays=self._replays, updates=self._updates, fallbacks=self._fallbacks)

    __quadpy_replay__ = True

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<replayed {getattr(self._function, '__qualname__', repr(self._function))}, {self.state}>"

    # a call

    def _run(
        self, device: Device, hint: Hint, known: Variant | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Variant]:
        """What the function returns, and the variant that does what it launched."""
        began = time.perf_counter()
        tape = known.tape if known is not None and known.is_as_it_was else None
        session = ReplaySession(device, device.current_stream(), known.arena if known else Arena(), tape)
        try:
            try:
                session.begin()
                result = self._call(session, known, args, kwargs)
                graph = None if session.repeated() else session.end()
            finally:
                session.abort()
        finally:
            session.abort()  # where an interrupt ended the first one
        if graph is None:
            assert known is not None
            if session.bound or session.noted:
                self._updates += len(session.bound) + len(session.noted)
                if rebuilds := known.bind(session):
                    self._count(rebuilds=rebuilds)
            known.hint = hint
            self._misses = 0 if _pays(device, known.tape, session) else self._misses + 1
            return result, known
        variant = self._changed(device, hint, known, graph, session) or self._made(hint, graph, session, began)
        if known is not None and variant is not known:
            self._variants.put(known)
        return result, variant

    def _call(
        self, session: ReplaySession, known: Variant | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The function, noted; where it raises something of its own, what came before is launched."""
        try:
            return self._function(*args, **kwargs)
        except Exception as error:
            if session.failed is not None:
                raise session.failed from None  # whatever the function made of it
            if not isinstance(error, (CaptureError, GraphError, DeviceError)):
                _launch_once(session, known)
            raise

    def _changed(
        self, device: Device, hint: Hint, known: Variant | None, graph: Graph, session: ReplaySession
    ) -> Variant | None:
        """A variant that does ``graph`` now, where one is built like it."""
        for variant in [*([known] if known is not None else []), *self._variants.alike(device, hint)]:
            found = changes_between(variant.run.nodes, graph)
            if found is None:
                continue
            if variant is not known:
                self._variants.remove(variant)
            changes, different = found
            self._updates += different
            self._count(rebuilds=variant.replace(changes, session, hint))
            self._misses += 1  # noting it costs more than launching it, changed or not
            return variant
        return None

    def _made(self, hint: Hint, graph: Graph, session: ReplaySession, began: float) -> Variant:
        """A new variant."""
        run = graph.make_executable(fuse=self._fuse)
        self._misses += 1
        self._count(captures=1, capture_s=time.perf_counter() - began)
        return Variant(session.device, hint, run, session.tape(), session.arena)

    def _launch(self, variant: Variant, look: Look | None) -> None:
        """Launch it, and have it for the next call."""
        run, stream = variant.run, variant.device.current_stream()
        if look is not None:
            look(run.nodes, variant.arena)
        for other in self._variants.own():  # graphs that share what the function allocates come after each other
            if other.arena is variant.arena:
                other.run.order_before(stream)
        run.launch()
        self.fusion, self.state = run.fusion, "captured"
        self._replays += 1
        for gone in self._variants.put(variant):
            gone.run.destroy()
        if self._misses >= MOST_MISSES:
            self._fall_back(GraphError(_DEAR), broken=True)

    # what is counted

    def _warms_up(self) -> bool:
        with self._lock:
            left = self._warmup
            self._warmup = max(left - 1, 0)
        return left > 0

    def _count(self, **more: float) -> None:
        with self._lock:
            now = self._stats
            self._stats = replace(now, **{name: getattr(now, name) + value for name, value in more.items()})

    def _fall_back(self, error: Exception, *, broken: bool) -> None:
        reason = str(error)
        if self._stats.reason is None:
            _log.log(
                logging.INFO if reason == _DEAR else logging.WARNING,
                "%r runs without a graph: %s",
                self._function,
                reason,
            )
        with self._lock:
            self._stats = replace(self._stats, reason=reason)
        if broken:
            self.clear()
            self.state = "broken"

    def _eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._fallbacks += 1
        return self._function(*args, **kwargs)


def _pays(device: Device, tape: Tape, session: ReplaySession) -> bool:
    """Whether a call that was not noted anew costs the host less than its launches; a GPU has its own gain besides.

    Counted in launches that are only compared, which save the host some 1 µs on the CPU and 5 on a GPU.  What is packed
    saves nothing; on a GPU each other call that changes costs another node, and on the CPU every call that is no launch
    costs what it interrupts: launches in a row are one native call.
    """
    changed, packed = len(session.noted), session.packed
    compared = tape.launches - packed
    if "host" not in device.driver.features:
        return not changed or compared > 16 + 16 * changed
    return not changed and compared > 16 + 8 * (packed > 0) + packed // 2 + 48 * tape.others + 8 * tape.orders


def _launch_once(session: ReplaySession, known: Variant | None) -> None:
    """What the function launched before it raised; nothing where a fork was not joined, which leaves no graph."""
    session.part()
    try:
        graph = session.end()
    except CaptureError:
        return
    if known is not None:  # whose memory it uses
        known.run.order_before(session.origin)
    with graph.make_executable(fuse=False) as once:
        once.launch()


@overload
def replay(function: Callable[..., Any], /, *, warmup: int = 0, fuse: Fuse = "auto") -> Replay: ...
@overload
def replay(*, warmup: int = 0, fuse: Fuse = "auto") -> Callable[[Callable[..., Any]], Replay]: ...
def replay(function: Any = None, /, *, warmup: int = 0, fuse: Fuse = "auto") -> Any:
    """Makes ``function`` run as a graph: its first call captures what it launches, and later ones replay that.

    Results are those of the function itself, byte for byte.  Its Python runs in each call, so that all it depends on is
    looked at, and whatever else it does is done; but what it launches is compared with the graph and not launched one by
    one.  A function that does what cannot be captured runs as it is, from its beginning, after one warning of the logger
    ``quadpy.graph``; ``state`` is then ``"broken"``, and ``stats.reason`` says why.

    Arrays that it makes belong to the graph: the next call on the same thread writes the same memory.

    Args:
        function: called with anything.
        warmup: how many calls run eagerly before the first capture.
        fuse: whether a graph of quadpy's own work runs as one launch: ``True`` wherever it can, ``"auto"`` where that is
            also expected to be quicker; ``fusion`` tells.

    Raises:
        ArgumentError: ``function`` cannot be called, or is a generator or async function; ``warmup`` is negative, or
            ``fuse`` is none of the three.
    """
    require_fuse(fuse)
    warmup = count_of(warmup, "warmup")
    if function is None:
        return functools.partial(replay, warmup=warmup, fuse=fuse)
    if not callable(function) or isinstance(function, Replay):
        raise ArgumentError(f"{function!r} is no function to replay")
    if (kind := _later(function)) is not None:
        raise ArgumentError(
            f"{function!r} is {kind}: a call does nothing, and what is done later is not part of it",
            hint="replay the functions that it calls",
        )
    return Replay(function, warmup, fuse)


def _later(function: Callable[..., Any]) -> str | None:
    """What a function is called whose body runs behind its call."""
    for one in (inspect.unwrap(function), type(function).__call__):
        if inspect.isasyncgenfunction(one) or inspect.iscoroutinefunction(one):
            return "an async function"
        if inspect.isgeneratorfunction(one):
            return "a generator function"
    return None
