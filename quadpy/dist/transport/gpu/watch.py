"""A thread that finds lost ranks while a GPU waits for them.

A message between GPUs that never arrives would block its stream, and every host thread that waits for it, forever.  The
watch ends the communicator instead, and the error is raised by the wait or by the next call.
"""

from __future__ import annotations

import threading
import time
import weakref
from typing import Final

from quadpy.dist.transport.gpu.library import GpuLibrary, failed_call
from quadpy.dist.transport.host import RankEngine
from quadpy.errors import DistributedError, QuadpyError
from quadpy.runtime.device.device import Device
from quadpy.runtime.streams.event import Event
from quadpy.runtime.streams.stream import Stream

_PERIOD: Final = 0.1
"""Seconds between two looks."""


class Watch:
    """Watches one communicator and its oldest incomplete work."""

    def __init__(self, library: GpuLibrary, engine: RankEngine, device: Device) -> None:
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
