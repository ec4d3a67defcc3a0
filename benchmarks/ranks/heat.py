"""One rank of the weak-scaling benchmark: the heat equation with ``cells`` cubed cells on each rank, in one way.

Rank 0 prints one line of JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from unittest import mock

import numpy as np

import quadpy as qp
from quadpy.dist.calls import Call
from quadpy.dist.halo import Flight, HaloExchange
from quadpy.dist.transport.protocol import FlatPart, Receive, Send, StartedExchange
from quadpy.examples.heat import flow

Step = Callable[[], None]


def distributed(cells: int) -> Step:
    """The step as users write it: the exchange runs while the inner cells are computed."""
    grid = qp.dist.Grid((cells * qp.dist.world().size, cells, cells), ranks=(qp.dist.world().size, 1, 1))
    arrays = [grid.ndarray(qp.f32) for _ in range(3)]
    arrays[0].fill(1.0)

    def step() -> None:
        flow(*arrays)
        arrays[0], arrays[1] = arrays[1], arrays[0]

    return step


def exchange_first(cells: int) -> Step:
    """The same, but everything waits for the exchange."""
    start = Flight.start

    def start_and_wait(self: Flight) -> None:
        start(self)
        assert self._started is not None
        self._started.finish()
        self._started = _Finished()
        self._channel.precede(self._stream)

    Flight.start = start_and_wait  # type: ignore[method-assign]  # the benchmark's own way
    return distributed(cells)


class _Finished:
    def finish(self) -> None:
        """Has nothing left to do."""


def captured(cells: int) -> Step:
    """Two steps, after which the arrays are where they were, captured; each launch counts as two."""
    step = distributed(cells)

    def both() -> None:
        step()
        step()

    two, calls = qp.dist.capture(both), itertools.count()

    def half() -> None:
        if next(calls) % 2 == 0:
            two.launch()

    return half


def alone(cells: int) -> Step:
    """One device and no exchange: each rank has a block of its own."""
    arrays = [qp.ndarray(qp.f32, (cells, cells, cells)) for _ in range(3)]

    def step() -> None:
        flow(*arrays)
        arrays[0], arrays[1] = arrays[1], arrays[0]

    return step


def by_torch(cells: int) -> Step:
    """quadpy's kernel, and halos by hand with torch.distributed's NCCL, before the kernel."""
    import torch
    import torch.distributed as dist

    ranks = qp.dist.world()
    rank, size = ranks.rank, ranks.size
    port = ranks.transport.share(str(_free_port()).encode())[0].decode()
    torch.cuda.set_device(ranks.local_rank)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    arrays = [qp.ndarray(qp.f32, (cells + 2, cells, cells)) for _ in range(3)]
    planes = {id(array): array.to_torch(copy=False) for array in arrays}

    def step() -> None:
        face = planes[id(arrays[0])]
        pairs = [(rank - 1, 1, 0), (rank + 1, -2, -1)]
        work = [
            dist.P2POp(kind, face[plane], peer)
            for peer, own, ghost in pairs
            if 0 <= peer < size
            for kind, plane in ((dist.isend, own), (dist.irecv, ghost))
        ]
        for request in dist.batch_isend_irecv(work) if work else ():
            request.wait()
        flow(*arrays)
        arrays[0], arrays[1] = arrays[1], arrays[0]

    return step


WAYS: dict[str, Callable[[int], Step]] = {
    "alone": alone, "distributed": distributed, "exchange first": exchange_first, "captured": captured, "torch": by_torch,
}  # fmt: skip


def measured(step: Step, steps: int) -> float:
    """Milliseconds of a step: the median of several runs of ``steps`` steps, each from when all ranks begin."""
    times = []
    for _ in range(4):
        qp.sync()
        qp.dist.world().transport.share()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        qp.sync()
        times.append((time.perf_counter() - begin) / steps * 1e3)
    return float(np.median(times[1:]))


def exchange_alone(cells: int, steps: int) -> float:
    """Milliseconds of one exchange of both faces, with no other work at the same time."""
    ranks, count = qp.dist.world(), cells * cells
    peers = [peer for peer in (ranks.rank - 1, ranks.rank + 1) if 0 <= peer < ranks.size]
    faces = qp.ndarray(qp.f32, 4 * count)
    stream = qp.create_stream(-100)
    sends = [Send(peer, FlatPart(faces, k * count, count), peer > ranks.rank) for k, peer in enumerate(peers)]
    receives = [
        Receive(peer, FlatPart(faces, (2 + k) * count, count), peer < ranks.rank) for k, peer in enumerate(peers)
    ]
    return measured(lambda: ranks.transport.start_exchange(sends, receives, stream).finish(), steps)


def hidden_share(step: Step, steps: int) -> float:
    """The share of the time of messages in which the inner part runs, by events: the median of the later half of ``steps``.

    Messages count from when they are packed until they may be unpacked.
    """
    start, finish, send = Flight.start, Flight.finish, HaloExchange.send
    marks: list[list[qp.Event]] = []

    def mark(stream: qp.Stream) -> None:
        event = qp.create_event(timing=True)
        event.record(stream)
        marks[-1].append(event)

    def timed_start(self: Flight) -> None:
        marks.append([])
        start(self)
        mark(self._stream)

    def timed_send(self: HaloExchange, stream: qp.Stream, call: Call) -> StartedExchange:
        mark(stream)
        started = send(self, stream, call)
        mark(stream)
        return started

    def timed_finish(self: Flight, boundary: Callable[[qp.Stream], object]) -> None:
        mark(self._stream)
        finish(self, boundary)

    with (
        mock.patch.multiple(Flight, start=timed_start, finish=timed_finish),
        mock.patch.object(HaloExchange, "send", timed_send),
    ):
        for _ in range(steps):
            step()
        qp.sync()
    shares = []
    for begin, end, first, last in marks[steps // 2 :]:
        overlap = min(begin.elapsed_time(end), begin.elapsed_time(last)) - max(0.0, begin.elapsed_time(first))
        shares.append(max(0.0, overlap) / begin.elapsed_time(end))
    return float(np.median(shares))


def _free_port() -> int:
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--arch", default="gpu")
    parser.add_argument("--cells", type=int, default=512)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--trace", help="a file for a Chrome trace of two steps of rank 0")
    options = parser.parse_args()
    qp.init(arch=options.arch, enable_fallback=False)
    ranks = qp.dist.world()
    step = WAYS[options.way](options.cells)
    found = {"way": options.way, "ranks": ranks.size, "transport": ranks.transport.name}
    found["step"] = measured(step, options.steps)
    if ranks.size > 1:
        found["exchange"] = exchange_alone(options.cells, options.steps)
    if ranks.size > 1 and options.way == "distributed" and options.arch != "cpu":
        found["hidden"] = hidden_share(step, 20)
    if options.trace and ranks.rank == 0:
        profile = qp.profiler.profile()
        profile.__enter__()
    if options.trace:
        step(), step()
        qp.sync()
    if options.trace and ranks.rank == 0:
        profile.__exit__(None, None, None)
        profile.to_chrome(options.trace)
    slowest = max(float(text) for text in ranks.transport.share(str(found["step"]).encode()))
    if ranks.rank == 0:
        print(json.dumps({**found, "step": slowest}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
