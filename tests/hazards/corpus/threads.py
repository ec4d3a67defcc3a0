"""Several threads of the host: joining one does not wait for the device."""

from __future__ import annotations

import threading

import quadpy as qp

from .kernels import copy, ones, ramp
from .program import clean, racy


def on_a_thread(function, *arguments):
    """Call ``function`` on a thread of its own, and wait for the thread."""
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    thread.join()


@racy("read after write")
def joined_and_not_synchronised(s1, s2, x, y):
    def produce():
        ramp(x, stream=s1)  # first
        # fixed by: s1.synchronize()

    on_a_thread(produce)
    copy(x, y, stream=s2)  # second


@racy("write after write")
def a_stream_for_each_thread(x):
    def first():
        with qp.create_stream() as own, qp.use_stream(own):
            ramp(x)  # first
            # fixed by: own.synchronize()

    def second():
        with qp.create_stream() as own, qp.use_stream(own):
            ones(x)  # second

    on_a_thread(first)
    on_a_thread(second)


@racy("read after write")
def a_thread_does_not_inherit_the_stream(s1, x, y, ready):
    """A new thread starts on the default stream."""

    def consume():
        copy(x, y)  # second

    with qp.use_stream(s1):
        ramp(x)  # first
        # fixed by: ready.record(); ready.wait(qp.Stream.from_handle(0))
        on_a_thread(consume)


@racy("write after read")
def an_event_of_another_thread_comes_too_early(s1, s2, x, y, ready):
    def consume():
        # fixed to: copy(x, y, stream=s1); ready.record(s1)
        ready.record(s1)
        # fixed to: pass
        copy(x, y, stream=s1)  # first

    on_a_thread(consume)
    ready.wait(s2)
    ramp(x, stream=s2)  # second


@clean
def an_event_between_threads(s1, s2, x, y, ready):
    def produce():
        ramp(x, stream=s1)
        ready.record(s1)

    on_a_thread(produce)
    ready.wait(s2)
    copy(x, y, stream=s2)


@clean
def threads_on_the_default_stream(x, y):
    on_a_thread(ramp, x)
    on_a_thread(copy, x, y)
    ones(x)


@clean
def each_thread_has_its_arrays():
    def work():
        with qp.create_stream() as own, qp.use_stream(own):
            x = qp.ndarray(qp.f32, 64)
            y = qp.ndarray(qp.f32, 64)
            ramp(x)
            copy(x, y)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@clean
def a_thread_that_waits_for_the_device(s1, s2, x, y):
    """One thread saw the work complete, and told the other by ending."""

    def produce():
        ramp(x, stream=s1)
        s1.synchronize()

    on_a_thread(produce)
    copy(x, y, stream=s2)


@clean
def two_threads_share_a_stream(s1, x, y):
    on_a_thread(lambda: ramp(x, stream=s1))
    on_a_thread(lambda: copy(x, y, stream=s1))
