"""The transport between GPUs, written once for NCCL and RCCL: every operation is work on a stream.

The host's engine carries what ranks tell each other on the host, and detects lost ranks.

A thread finds lost ranks while a GPU waits for them: a message between GPUs that never arrives would block its stream, and every host thread that waits for it, forever.  The
watch ends the communicator instead, and the error is raised by the wait or by the next call.
"""

from __future__ import annotations

import threading
import time
import weakref
from typing import TYPE_CHECKING, Final

from quadpy.dist.calls import Call, exchange_of
from quadpy.dist.transport.arrivals import announce_receive, announce_send
from quadpy.dist.transport.gpu.library import GpuLibrary, failed_call
from quadpy.dist.transport.parts import copy_part, pairs_of
from quadpy.dist.transport.protocol import NO_CALL, FlatPart, Receive, Send
from quadpy.errors import DistributedError, QuadpyError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quadpy.dist.transport.engine import HostEngine
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.streams.event import Event
    from quadpy.runtime.streams.stream import Stream


class _OnStream:
    """An exchange that is completely on the stream."""

    __slots__ = ()

    def finish(self) -> None:
        """Has nothing left to do: later work on the stream comes after the data."""


_ON_STREAM: Final = _OnStream()


class GpuTransport:
    """A Transport whose data goes from GPU to GPU."""

    capturable = False

    def __init__(self, library: GpuLibrary, engine: HostEngine, device: Device) -> None:
        """Connect the GPUs of all ranks; all of them call it together."""
        self.name, self.rank, self.size, self.timeout = library.name, engine.rank, engine.size, engine.timeout
        self._library, self._engine, self._device = library, engine, device
        unique_id = engine.share(library.unique_id() if engine.rank == 0 else b"")[0]
        self._connect(unique_id)
        self._watch = Watch(library, engine, device)

    def start_exchange(
        self, sends: Sequence[Send], receives: Sequence[Receive], stream: Stream, call: Call = NO_CALL
    ) -> _OnStream:
        """Between two ranks, messages pair by their order, which is that of the tags on both."""
        here = self.rank
        own = pairs_of([s for s in sends if s.peer == here], [r for r in receives if r.peer == here])
        leaving = sorted((s for s in sends if s.peer != here and s.part.count), key=lambda s: (s.peer, s.tag))
        arriving = sorted((r for r in receives if r.peer != here and r.part.count), key=lambda r: (r.peer, r.tag))
        library = self._library
        sources = [announce_send(send.part, stream) for send in leaving]
        targets = [announce_receive(receive.part, stream) for receive in arriving]

        def run(handle: int) -> None:
            for send, address in zip(leaving, sources, strict=True):
                library.send(address, send.part.nbytes, send.peer, handle)
            for receive, address in zip(arriving, targets, strict=True):
                library.receive(address, receive.part.nbytes, receive.peer, handle)

        if leaving or arriving:
            self._submit(run, stream, exchange_of(call))
        for send, receive in own:
            copy_part(receive.part, send.part, stream)
        return _ON_STREAM

    def all_gather(self, send: FlatPart, receive: FlatPart, stream: Stream, call: Call = NO_CALL) -> None:
        source, target = announce_send(send, stream), announce_receive(receive, stream)
        self._submit(lambda handle: self._library.all_gather(source, target, send.nbytes, handle), stream, "all_gather")

    def share(self, value: bytes = b"") -> list[bytes]:
        self._watch.raise_failure()
        return self._engine.share(value)

    def close(self) -> None:
        self._watch.stop()
        self._library.abort()
        self._engine.close()

    def _submit(self, run: Callable[[int], None], stream: Stream, call: str) -> None:
        """Run the calls of ``run`` as one group, which ends whatever happens in it."""
        self._watch.raise_failure()

        def group(handle: int) -> None:
            self._library.group_start()
            try:
                run(handle)
            finally:
                self._library.group_end()

        stream._call(group)  # noqa: SLF001 - keeps the stream alive for the call
        self._watch.follow(stream, call)

    def _connect(self, unique_id: bytes) -> None:
        """Connect on a separate thread, which may hang if a rank is lost; this one waits as for any message."""
        failure: list[BaseException] = []

        def connect() -> None:
            try:
                self._device.driver.memory_info()  # selects the device for the thread
                self._library.connect(self.size, self.rank, unique_id)
            except BaseException as error:  # noqa: BLE001 - raised on the thread that waits
                failure.append(error)

        thread = threading.Thread(target=connect, name="quadpy connects GPUs", daemon=True)
        thread.start()
        self._engine.wait_for(lambda: not thread.is_alive(), f"the connection of GPUs by {self.name}")
        if failure:
            raise failure[0] if isinstance(failure[0], TransportError) else TransportError(str(failure[0]))


_PERIOD: Final = 0.1
"""Seconds between two looks."""


class Watch:
    """Watches one communicator and its oldest incomplete work."""

    def __init__(self, library: GpuLibrary, engine: HostEngine, device: Device) -> None:
        self._library, self._engine, self._device = library, engine, device
        self._event: Event = device.create_event()
        self._since, self._call = 0.0, ""  # when the watched work was submitted; nothing is watched without a call
        self._failure: DistributedError | None = None
        self._stopped = threading.Event()
        threading.Thread(
            target=_watch, args=(weakref.ref(self), self._stopped), name="quadpy watches ranks", daemon=True
        ).start()

    def follow(self, stream: Stream, call: str) -> None:
        """Watch the work so far on ``stream``, unless older work is still watched."""
        if self._call and not self._event.query():
            return
        self._event.record(stream)
        self._since, self._call = time.monotonic(), call

    def raise_failure(self) -> None:
        """Raise what the watch has found.

        Raises:
            RankLostError, RanksDisagreeError: another rank has failed, or its messages do not come in time.
            TransportError: the library failed.
        """
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._stopped.set()

    def look(self) -> None:
        """End the communicator if a rank is lost."""
        try:
            failure = self._find_failure()
        except QuadpyError:  # the device is closed: there is nothing left to watch
            self.stop()
            return
        if failure is not None:
            self.stop()
            self._failure = failure
            self._library.abort()

    def _find_failure(self) -> DistributedError | None:
        if (lost := self._engine.lost()) is not None:
            return lost
        if text := self._library.failure():
            return failed_call(self._call or "a call between GPUs", text)
        if self._call and self._event.query():
            self._call = ""
        if self._call:
            self._engine.answer(self._call)
            if time.monotonic() - self._since > self._engine.timeout:
                return self._engine.diagnosis(self._call)
        return None


def _watch(reference: weakref.ref[Watch], stopped: threading.Event) -> None:
    while not stopped.wait(_PERIOD):
        watch = reference()
        if watch is None:
            return
        watch.look()
        del watch
