"""Two streams and more, without an event between them; what they mean by themselves."""

from __future__ import annotations

import quadpy as qp

from .kernels import add, copy, mean, ones, ramp
from .program import clean, racy


@racy("read after write")
def no_event(s1, s2, x, y, ready):
    ramp(x, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("write after read")
def overwritten_while_read(s1, s2, x, y, done):
    copy(x, y, stream=s1)  # first
    # fixed by: done.record(s1); done.wait(s2)
    ramp(x, stream=s2)  # second


@racy("write after write")
def two_writers(s1, s2, x):
    ramp(x, stream=s1)  # first
    # fixed by: s1.synchronize()
    ones(x, stream=s2)  # second


@racy("read after write")
def the_default_stream_does_not_wait(s1, x, y, ready):
    ramp(x, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait()
    copy(x, y)  # second


@racy("read after write")
def nobody_waits_for_the_default_stream(s1, x, y, ready):
    """Its first use of ``x`` waits for the stream that ``x`` was made on, and the second would not."""
    ramp(x)  # first
    # fixed by: ready.record(); ready.wait(s1)
    copy(x, y, stream=s1)  # second


@racy("write after write")
def the_home_stream_is_no_order(s1, s2, ready):
    """As above, with an array that was made on one of the two."""
    x = qp.ndarray(qp.f32, 64, stream=s1)
    ramp(x, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    ones(x, stream=s2)  # second


@racy("read after write")
def current_stream(s1, x, y, ready):
    with qp.use_stream(s1):
        ramp(x)  # first
    # fixed by: ready.record(s1); ready.wait()
    copy(x, y)  # second


@racy("read after write")
def priorities_are_no_order(x, y):
    # fixed to: high = low = qp.create_stream(priority=-1)
    high, low = qp.create_stream(priority=-1), qp.create_stream(priority=0)
    ramp(x, stream=high)  # first
    copy(x, y, stream=low)  # second


@racy("read after write")
def a_chain_with_a_gap(s1, s2, s3, x, y, z, ready, done):
    ramp(x, stream=s1)  # first
    ready.record(s1)
    ready.wait(s2)
    copy(x, y, stream=s2)
    # fixed by: done.record(s2); done.wait(s3)
    copy(x, z, stream=s3)  # second


@racy("read after write")
def one_of_two_producers(s1, s2, s3, x, y, z, ready, done):
    ramp(x, stream=s1)
    ones(y, stream=s2)  # first
    ready.record(s1)
    ready.wait(s3)
    # fixed by: done.record(s2); done.wait(s3)
    add(x, y, z, stream=s3)  # second


@racy("write after read")
def one_of_two_readers(s1, s2, s3, x, y, z, ready, done):
    copy(x, y, stream=s1)
    copy(x, z, stream=s2)  # first
    ready.record(s1)
    ready.wait(s3)
    # fixed by: done.record(s2); done.wait(s3)
    ramp(x, stream=s3)  # second


@racy("write after read")
def one_buffer_of_a_pipeline(s1, s2, x, y, ready, done):
    """The consumer waits for the producer, and the producer's next round does not wait for the consumer."""
    for _ in range(2):
        ramp(x, stream=s1)  # second
        ready.record(s1)
        ready.wait(s2)
        copy(x, y, stream=s2)  # first
        # fixed by: done.record(s2); done.wait(s1)


@racy("write after read")
def two_buffers_of_a_pipeline(s1, s2, x, y, z, ready, done, other):
    """Two buffers in turn hide the missing wait for one round more."""
    for step in range(3):
        buffer, free = (x, y)[step % 2], (done, other)[step % 2]
        # fixed by: free.wait(s1)
        ramp(buffer, stream=s1)  # second
        ready.record(s1)
        ready.wait(s2)
        copy(buffer, z, stream=s2)  # first
        free.record(s2)


@racy("read after write")
def synchronised_with_another_stream(s1, s2, x, y):
    ramp(x, stream=s1)  # first
    # fixed to: s1.synchronize()
    s2.synchronize()
    copy(x, y, stream=s2)  # second


@racy("read after write")
def a_new_stream_in_the_place_of_an_old_one(x, y):
    """The driver may give the new stream the number of the old one, whose work is still pending."""
    old = qp.create_stream()
    ramp(x, stream=old)  # first
    # fixed by: old.synchronize()
    old.destroy()
    copy(x, y, stream=qp.create_stream())  # second


@racy("write after write")
def the_third_iteration(s1, s2, x, y, ready):
    """The wait stands before the loop, so it orders the first iteration only."""
    ready.record(s2)
    ready.wait(s1)
    for _ in range(2):
        # fixed by: ready.record(s2); ready.wait(s1)
        ramp(x, stream=s1)  # second
        ready.record(s1)
        ready.wait(s2)
        ones(x, stream=s2)  # first


@clean
def one_stream(s1, x, y):
    ramp(x, stream=s1)
    copy(x, y, stream=s1)
    ramp(x, stream=s1)


@clean
def the_default_stream(x, y):
    ramp(x)
    copy(x, y)
    ones(x)


@clean
def an_event(s1, s2, x, y, ready):
    ramp(x, stream=s1)
    ready.record(s1)
    ready.wait(s2)
    copy(x, y, stream=s2)


@clean
def two_readers(s1, s2, x, y, z):
    copy(x, y, stream=s1)
    copy(x, z, stream=s2)


@clean
def arrays_of_their_own(s1, s2, x, y):
    ramp(x, stream=s1)
    ramp(y, stream=s2)


@clean
def a_chain(s1, s2, s3, x, y, z, ready, done):
    """The first stream reaches the third through the second."""
    ramp(x, stream=s1)
    ready.record(s1)
    ready.wait(s2)
    copy(x, y, stream=s2)
    done.record(s2)
    done.wait(s3)
    add(x, y, z, stream=s3)
    ramp(x, stream=s3)


@clean
def the_host_waits(s1, s2, x, y):
    ramp(x, stream=s1)
    s1.synchronize()
    copy(x, y, stream=s2)


@clean
def the_host_waits_for_everything(s1, s2, x, y):
    ramp(x, stream=s1)
    copy(y, x, stream=s1)
    qp.sync()
    ones(y, stream=s2)
    copy(y, x, stream=s2)


@clean
def the_host_gets_a_number(s1, s2, x, y):
    """A kernel that returns a number returns when the number is there."""
    ramp(x, stream=s1)
    assert mean(x, stream=s1) is not None
    ones(x, stream=s2)


@clean
def two_buffers(s1, s2, x, y, z, ready, done, other):
    for step in range(4):
        buffer, free = (x, y)[step % 2], (done, other)[step % 2]
        free.wait(s1)
        ramp(buffer, stream=s1)
        ready.record(s1)
        ready.wait(s2)
        copy(buffer, z, stream=s2)
        free.record(s2)


@clean
def fork_and_join(s1, s2, s3, x, y, z, ready, done, other):
    ramp(x, stream=s1)
    ready.record(s1)
    ready.wait(s2)
    ready.wait(s3)
    copy(x, y, stream=s2)
    copy(x, z, stream=s3)
    done.record(s2)
    done.wait(s1)
    other.record(s3)
    other.wait(s1)
    add(y, z, x, stream=s1)


@clean
def streams_come_and_go(x, y):
    """Each stream ends with its work pending, and the next one waits for its event."""
    with qp.create_event() as last:
        for _ in range(3):
            with qp.create_stream() as stream:
                last.wait(stream)
                ramp(x, stream=stream)
                copy(x, y, stream=stream)
                last.record(stream)


@clean
def current_stream_everywhere(s1, x, y, ready):
    with qp.use_stream(s1):
        ramp(x)
        ready.record()
        copy(x, y)
        ones(x, stream=s1)
    ready.wait()
