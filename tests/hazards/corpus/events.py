"""Events that are recorded, or waited for, in the wrong place."""

from __future__ import annotations

import quadpy as qp

from .kernels import copy, ones, ramp
from .program import clean, racy


@racy("read after write")
def recorded_too_early(s1, s2, x, y, ready):
    ready.record(s1)
    ramp(x, stream=s1)  # first
    # fixed by: ready.record(s1)
    ready.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("read after write")
def recorded_between_two_kernels(s1, s2, x, y, ready):
    ramp(y, stream=s1)
    # fixed to: ramp(x, stream=s1)
    ready.record(s1)
    # fixed to: ready.record(s1)
    ramp(x, stream=s1)  # first
    ready.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("read after write")
def the_wrong_stream_waits(s1, s2, s3, x, y, ready):
    ramp(x, stream=s1)  # first
    ready.record(s1)
    # fixed to: ready.wait(s2)
    ready.wait(s3)
    copy(x, y, stream=s2)  # second


@racy("read after write")
def the_wrong_stream_is_recorded(s1, s2, s3, x, y, ready):
    ramp(x, stream=s1)  # first
    # fixed to: ready.record(s1)
    ready.record(s3)
    ready.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("read after write")
def a_wait_for_the_wrong_event(s1, s2, s3, x, y, z, ready, done):
    ramp(x, stream=s1)  # first
    ready.record(s1)
    ramp(z, stream=s3)
    done.record(s3)
    # fixed to: ready.wait(s2)
    done.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("read after write")
def recorded_again_elsewhere(s1, s2, s3, x, y, z, ready, done):
    """One event for two producers: the second record replaces the first."""
    ramp(x, stream=s1)  # first
    ready.record(s1)
    ramp(y, stream=s2)
    # fixed by: done.record(s1); done.wait(s2)
    ready.record(s2)
    ready.wait(s3)
    copy(x, z, stream=s3)  # second


@racy("read after write")
def a_wait_before_the_record(s1, s2, x, y, ready):
    """The event was never recorded, so the wait is for nothing."""
    # fixed to: pass
    ready.wait(s2)
    ramp(x, stream=s1)  # first
    ready.record(s1)
    # fixed by: ready.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("read after write")
def never_recorded(s1, s2, x, y, ready):
    ramp(x, stream=s1)  # first
    # fixed by: ready.record(s1)
    ready.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("read after write")
def recorded_on_the_current_stream(s1, s2, x, y, ready):
    """Without a stream, ``record`` means the thread's."""
    ramp(x, stream=s1)  # first
    # fixed to: ready.record(s1)
    ready.record()
    ready.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("read after write")
def the_current_stream_waits(s1, s2, x, y, ready):
    ramp(x, stream=s1)  # first
    ready.record(s1)
    # fixed to: ready.wait(s2)
    ready.wait()
    copy(x, y, stream=s2)  # second


@racy("write after read")
def the_host_waits_for_an_early_record(s1, s2, x, y, ready):
    ready.record(s1)
    copy(x, y, stream=s1)  # first
    # fixed by: ready.record(s1)
    ready.synchronize()
    ramp(x, stream=s2)  # second


@racy("read after write")
def an_event_with_the_number_of_an_old_one(s1, s2, x, y):
    """The driver gives the number of a destroyed event to the next one, which was never recorded."""
    old = qp.create_event()
    ramp(x, stream=s1)  # first
    old.record(s1)
    # fixed by: old.wait(s2)
    old.destroy()
    new = qp.create_event()
    new.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("write after write")
def a_wait_for_the_last_round(s1, s2, x, ready):
    """The wait comes before the record of its round, so it is always one behind."""
    for _ in range(2):
        ready.wait(s2)
        # fixed to: ramp(x, stream=s1); ready.record(s1); ready.wait(s2)
        ramp(x, stream=s1)  # first
        ready.record(s1)
    # fixed by: ready.wait(s2)
    ones(x, stream=s2)  # second


@clean
def earlier_waits_keep_their_record(s1, s2, s3, x, y, ready):
    ramp(x, stream=s1)
    ready.record(s1)
    ready.wait(s2)
    ready.record(s3)
    copy(x, y, stream=s2)


@clean
def recorded_again_later(s1, s2, x, y, ready):
    """A later record of the same stream has all that an earlier one has."""
    ramp(x, stream=s1)
    ready.record(s1)
    ramp(y, stream=s1)
    ready.record(s1)
    ready.wait(s2)
    copy(x, y, stream=s2)


@clean
def an_event_that_is_destroyed_after_the_wait(s1, s2, x, y):
    with qp.create_event() as ready:
        ramp(x, stream=s1)
        ready.record(s1)
        ready.wait(s2)
    copy(x, y, stream=s2)


@clean
def the_host_waits_for_an_event(s1, s2, x, y, ready):
    ramp(x, stream=s1)
    ready.record(s1)
    ramp(y, stream=s1)
    ready.synchronize()
    ones(x, stream=s2)


@clean
def times(s1, s2, x, y):
    start, end = qp.create_event(timing=True), qp.create_event(timing=True)
    start.record(s1)
    ramp(x, stream=s1)
    end.record(s1)
    end.wait(s2)
    copy(x, y, stream=s2)
    end.synchronize()
    assert start.elapsed_time(end) >= 0


@clean
def one_event_for_all(s1, s2, s3, x, y, z, ready):
    ramp(x, stream=s1)
    ready.record(s1)
    ready.wait(s2)
    copy(x, y, stream=s2)
    ready.record(s2)
    ready.wait(s3)
    copy(y, z, stream=s3)
    ready.record(s3)
    ready.wait(s1)
    copy(z, x, stream=s1)


@clean
def a_wait_for_the_own_stream(s1, x, y, ready):
    ready.record(s1)
    ready.wait(s1)
    ramp(x, stream=s1)
    copy(x, y, stream=s1)


@clean
def a_stream_waits_after_the_other_ended(s2, x, y, ready):
    with qp.create_stream() as s1:
        ramp(x, stream=s1)
        ready.record(s1)
    ready.wait(s2)
    copy(x, y, stream=s2)


@clean
def asked_and_then_waited_for(s1, s2, x, y, ready):
    ramp(x, stream=s1)
    ready.record(s1)
    if not ready.query():
        ready.synchronize()
    copy(x, y, stream=s2)


@clean
def many_rounds(s1, s2, x, y, ready, done):
    for _ in range(5):
        done.wait(s1)
        ramp(x, stream=s1)
        ready.record(s1)
        ready.wait(s2)
        copy(x, y, stream=s2)
        done.record(s2)
