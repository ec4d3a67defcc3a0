"""Errors of ranks that are threads: each rank gets a named error, and none hangs."""

import time
from dataclasses import replace

import numpy as np
import pytest
import thread_ranks
from thread_ranks import run_ranks
from transport_cases import array_of, stream_of

from quadpy.dist import world
from quadpy.dist.transport.protocol import FlatPart, Receive, Send
from quadpy.errors import RankLostError, RanksDisagreeError
from quadpy.settings import settings


def errors_of(size, function, timeout=20):
    """What ``function`` raises on each rank."""
    errors = [None] * size

    def run():
        try:
            function()
        except Exception as error:
            errors[world().rank] = error
            raise

    with pytest.raises(Exception):  # noqa: B017, PT011 - the ranks' own errors are looked at
        run_ranks(size, run, timeout=timeout)
    return errors


def test_the_others_learn_why_a_rank_failed():
    def program():
        if world().rank == 2:
            raise ValueError("no such file")
        world().transport.share()

    errors = errors_of(4, program)
    assert isinstance(errors[2], ValueError)
    for rank in (0, 1, 3):
        assert isinstance(errors[rank], RankLostError)
        assert "rank 2 has failed: ValueError: no such file" in str(errors[rank])
        assert errors[rank].rank == 2


def test_the_time_limit_is_that_of_other_ranks(monkeypatch):
    """``QUADPY_RANK_TIMEOUT``."""
    monkeypatch.setattr(thread_ranks, "settings", lambda: replace(settings(), rank_timeout=1))

    def program():
        if world().rank == 0:
            time.sleep(3)
        world().transport.share()

    with pytest.raises(RankLostError, match="QUADPY_RANK_TIMEOUT"):
        run_ranks(2, program)


def test_run_ranks_raises_the_first_error():
    def program():
        if world().rank == 1:
            raise ValueError("first")
        world().transport.share()

    with pytest.raises(ValueError, match="first"):
        run_ranks(3, program)


def test_a_rank_that_returns_early():
    def program():
        if world().rank:
            world().transport.share()

    errors = errors_of(3, program)
    assert all("rank 0 has" in str(errors[rank]) for rank in (1, 2))
    assert any("rank 0 has ended, while this rank waits for it" in str(errors[rank]) for rank in (1, 2))


def test_a_silent_rank_is_lost_after_the_time_limit():
    done = []

    def program():
        transport = world().transport
        array = array_of(np.zeros(4))
        if world().rank:
            try:
                transport.start_exchange([], [Receive(0, FlatPart.whole(array))], stream_of(array)).finish()
            finally:
                done.append(1)
        else:
            while not done:
                pass

    errors = errors_of(2, program, timeout=0.2)
    assert "rank 0 does not answer: nothing came from it within 0.2 s" in str(errors[1])
    assert "QUADPY_RANK_TIMEOUT" in str(errors[1])


def test_sizes_that_differ():
    def program():
        mine, theirs = array_of(np.zeros(4 + world().rank)), array_of(np.zeros(4 + world().rank))
        peer = 1 - world().rank
        exchange = [Send(peer, FlatPart.whole(mine))], [Receive(peer, FlatPart.whole(theirs))]
        world().transport.start_exchange(*exchange, stream_of(mine)).finish()

    for error in errors_of(2, program):
        assert isinstance(error, RanksDisagreeError)
        assert "rank 0 sends 16 bytes to rank 1, which expects 20 (tag 0)" in str(error)


@pytest.mark.usefixtures("debug")
def test_debug_finds_other_calls():
    def program():
        array, every = array_of(np.zeros(4)), array_of(np.zeros(12))
        if world().rank == 1:
            world().transport.share()
        else:
            world().transport.all_gather(FlatPart.whole(array), FlatPart.whole(every), stream_of(array))

    for error in errors_of(3, program):
        assert isinstance(error, RanksDisagreeError)
        assert "call 1 to the transport: all_gather of 4 f32 on ranks 0, 2; share on rank 1" in str(error)


@pytest.mark.usefixtures("debug")
def test_debug_finds_messages_that_do_not_fit():
    def program():
        mine, theirs = array_of(np.zeros(4 + world().rank)), array_of(np.zeros(4 + world().rank))
        peer = 1 - world().rank
        exchange = [Send(peer, FlatPart.whole(mine))], [Receive(peer, FlatPart.whole(theirs))]
        world().transport.start_exchange(*exchange, stream_of(mine)).finish()

    for error in errors_of(2, program):
        assert isinstance(error, RanksDisagreeError)
        assert "rank 0 sends 16 bytes to rank 1, which expects 20 (tag 0)" in str(error)
        assert "rank 1 sends 20 bytes to rank 0, which expects 16 (tag 0)" in str(error)


@pytest.mark.usefixtures("debug")
def test_debug_finds_a_send_that_nobody_receives():
    def program():
        array = array_of(np.zeros(4))
        sends = [Send(1, FlatPart.whole(array), 3)] if world().rank == 0 else []
        world().transport.start_exchange(sends, [], stream_of(array)).finish()

    for error in errors_of(2, program):
        assert "rank 0 sends 16 bytes to rank 1, which expects none (tag 3)" in str(error)
