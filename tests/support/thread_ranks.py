"""Ranks that are threads of one process, which run on the engine of real ranks: only the messages are others."""

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np

from quadpy.dist.transport.checked import CheckedTransport
from quadpy.dist.transport.engine import HostEngine, Notices
from quadpy.dist.transport.host import HostTransport
from quadpy.dist.transport.parts import require_same_size
from quadpy.dist.transport.verdict import told_of
from quadpy.dist.world import World, use_world
from quadpy.settings import settings

_COLLECTIVE = -1
"""The tag of what all ranks send to each other."""
_ALL_WAIT = 0.2
"""Seconds for which all ranks must wait before they count as stuck."""


def run_ranks(size, function, *, timeout=None, make=None):
    """Run ``function`` on ``size`` threads, each a rank with its own ``world()``; returns the results by rank.

    ``timeout`` is in seconds, by default ``QUADPY_RANK_TIMEOUT``.  ``make`` makes each rank's transport over its engine.
    The first error of a rank is raised; the others then got a RankLostError.
    """
    office = _PostOffice(size)
    limit = float(settings().rank_timeout if timeout is None else timeout)
    make = make or (lambda engine: CheckedTransport(HostTransport(engine)))
    with ThreadPoolExecutor(size, thread_name_prefix="rank") as threads:
        futures = [threads.submit(_run_rank, office, rank, function, limit, make) for rank in range(size)]
        wait(futures)
    if office.errors:
        raise office.errors[0]
    return [future.result() for future in futures]


def _run_rank(office, rank, function, timeout, make):
    engine = _ThreadEngine(office, rank, timeout)
    use_world(World(rank, office.size, rank, lambda _: make(engine), engine.calls))
    try:
        result = function()
    except BaseException as error:
        office.errors.append(error)
        failed, reason = told_of(error, rank)
        engine.notices.tell_end(reason, failed)
        raise
    else:
        engine.notices.tell_end("", rank)
        return result
    finally:
        use_world(None)


class _PostOffice:
    """Where the threads leave messages for each other."""

    def __init__(self, size):
        self.size, self.errors = size, []
        self.boxes = {}  # by source, target and tag
        self.notices = [deque() for _ in range(size)]
        self.waiting = {}  # for each rank that waits, for what and since when

    def box(self, source, target, tag):
        return self.boxes.setdefault((source, target, tag), deque())

    def is_stuck(self):
        """Whether no rank can go on: all of them wait, and nothing that they wait for has arrived."""
        waiting = list(self.waiting.values())
        now = time.monotonic()
        return len(waiting) == self.size and all(
            now - since > _ALL_WAIT and not has_come() for has_come, since in waiting
        )


class _ThreadEngine(HostEngine):
    """Finds at once, not after the time limit, that all ranks wait for each other."""

    def __init__(self, office, rank, timeout):
        super().__init__(_ThreadLibrary(office, rank), _ThreadNotices(office, rank), rank, office.size, timeout)
        self._office = office

    def wait_for(self, done, call, peers=None):
        has_come = getattr(getattr(done, "__self__", None), "has_come", lambda: True)
        self._office.waiting[self.rank] = has_come, time.monotonic()
        try:
            super().wait_for(done, call, peers)
        finally:
            del self._office.waiting[self.rank]

    def answer(self, call):
        super().answer(call)
        if self._office.is_stuck():
            raise self.diagnosis(call)


class _ThreadLibrary:
    """A ``Library`` whose messages stay in this process."""

    name = "threads"
    rooms = 1 << 20
    has_ended = False

    def __init__(self, office, rank):
        self._office, self._rank = office, rank

    def start(self, sends, receives):
        for message in sends:
            self._office.box(self._rank, message.peer, message.tag).append(message.numbers.tobytes())
        boxes = [self._office.box(message.peer, self._rank, message.tag) for message in receives]
        return _Works(boxes, [(message.peer, message.numbers) for message in receives])

    def gather(self, mine, counts, every):
        for peer in range(self._office.size):
            self._office.box(self._rank, peer, _COLLECTIVE).append(mine.tobytes())
        boxes = [self._office.box(peer, self._rank, _COLLECTIVE) for peer in range(self._office.size)]
        return _Works(boxes, enumerate(np.split(every, np.cumsum(counts)[:-1])))


class _Works:
    def __init__(self, boxes, rooms):
        self._boxes, self._rooms = boxes, rooms

    def has_come(self):
        return all(self._boxes)

    def done(self):
        if not self.has_come():
            return False
        for box, (peer, room) in zip(self._boxes, self._rooms, strict=True):
            data = box.popleft()
            require_same_size(len(data), room.nbytes, f"rank {peer}")
            room.view(np.uint8)[...] = np.frombuffer(data, np.uint8)
        return True


class _ThreadNotices(Notices):
    def __init__(self, office, rank):
        super().__init__(rank)
        self._office = office

    def send(self, notice):
        for rank, box in enumerate(self._office.notices):
            if rank != self.rank:
                box.append((self.rank, notice))

    def received(self):
        box = self._office.notices[self.rank]
        while box:
            yield box.popleft()
