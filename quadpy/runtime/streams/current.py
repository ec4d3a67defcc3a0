"""Which stream is current on each thread."""

from __future__ import annotations

import threading
import warnings

from quadpy.runtime.device.blocks import Lifetime, Token, While
from quadpy.runtime.streams.timeline import Timeline


def warn_of_reset() -> None:
    """Warn the thread that its current stream was destroyed."""
    message = "the current stream was destroyed: this thread is back on the default stream"
    warnings.warn(message, RuntimeWarning, stacklevel=4)


class Use(While):
    """One entry of a thread's stack of streams.  It lasts as long as a token, whose death removes it in one step.

    ``stream`` is the Stream object of ``timeline``, or None if it is not known.  Code that changes both clears it
    first.  Without a ``timeline``, the use has not begun yet.
    """

    stream: object = None
    timeline: Timeline | None = None


class CurrentStreams(threading.local):
    """A thread's stack of streams, the innermost ``use_stream`` last.  A new thread starts on the default stream."""

    def __init__(self, default: Timeline) -> None:
        self._default, self._token = default, Token()
        self.uses: list[Use] = []
        self.use(default, None, lambda: self._token)

    def change(self, timeline: Timeline, stream: object) -> None:
        """Make the stream of ``timeline`` current until the innermost ``use_stream`` ends."""
        use = self.uses[-1]
        use.stream = None
        use.timeline = timeline
        use.stream = stream

    def use(self, timeline: Timeline, stream: object, lifetime: Lifetime) -> None:
        """Make ``stream`` current for a ``lifetime``."""
        # Made and added in one step, in which no interrupt comes: otherwise it could not be removed, which is one step, too.
        self.uses.extend(map(Use, (lifetime(),), (self.uses.remove,)))
        use = self.uses[-1]
        use.timeline = timeline
        use.stream = stream

    def timeline(self) -> Timeline:
        """The timeline of the current stream: the default one, with a warning, if the current stream was destroyed."""
        timeline = next(use.timeline for use in reversed(self.uses) if use.timeline is not None)
        if timeline.owner is None:
            timeline = self._default
            self.change(timeline, None)
            warn_of_reset()
        return timeline
