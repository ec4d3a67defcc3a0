"""Examples of streams, events and memory."""

from __future__ import annotations

import quadpy as qp


def example_create_stream() -> None:
    x = qp.ndarray(qp.f32, 1000)
    with qp.create_stream() as stream:
        x.fill(1.0, stream=stream)
        stream.synchronize()
    print(x[0])  # 1.0
    with qp.create_stream(compute_units=0.5) as half:  # on a GPU, on half of it
        x.fill(2.0, stream=half)
        print(half.compute_units)  # None


def example_Stream() -> None:
    stream = qp.create_stream(priority=-1)
    assert isinstance(stream, qp.Stream)
    stream.synchronize()
    print(stream.query())  # True
    stream.destroy()
    print(stream.destroyed)  # True


def example_use_stream() -> None:
    x = qp.ndarray(qp.f32, 1000)
    stream = qp.create_stream()
    with qp.use_stream(stream):
        x.fill(1.0)  # on the stream
    stream.synchronize()


def example_create_event() -> None:
    start, end = qp.create_event(timing=True), qp.create_event(timing=True)
    start.record()
    qp.ndarray(qp.f32, 1_000_000).fill(2.0)
    end.record()
    end.synchronize()
    print(start.elapsed_time(end) >= 0.0)  # True


def example_Event() -> None:
    @qp.kernel
    def add_one(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] += 1.0

    x = qp.ndarray(qp.f32, 1000)
    first, second, done = qp.create_stream(), qp.create_stream(), qp.create_event()
    assert isinstance(done, qp.Event)
    add_one(x, stream=first)
    done.record(first)
    done.wait(second)
    add_one(x, stream=second)  # after the first call
    second.synchronize()
    print(x[0])  # 2.0


def example_memory_stats() -> None:
    found = qp.memory_stats()
    print(found.allocator, found.used <= found.reserved)  # pool True
