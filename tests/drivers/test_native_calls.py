"""Calls of C functions by machine code."""

from __future__ import annotations

import ctypes
import sys
import threading

import pytest

from quadpy.runtime.cpu.native_calls import NativeCalls
from quadpy.runtime.drivers.gpu_calls import UNTRIED, address_of_function

WORD = ctypes.c_uint64
LOST = ctypes.c_int(0)
SELECT = ctypes.CFUNCTYPE(ctypes.c_int, WORD)(lambda which: int(which != 5))
NATIVE = NativeCalls(ctypes.addressof(LOST), address_of_function(SELECT), 5)
native_call, native_alloc = NATIVE.call, NATIVE.alloc


def c_function(count, fn):
    """``fn`` as a C function of ``count`` words; it lives as long as the process."""
    made = ctypes.CFUNCTYPE(ctypes.c_int, *[WORD] * count)(fn)
    KEPT.append(made)
    return made


KEPT: list[object] = []


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_word_arrives_whole(count):
    seen = []
    call = native_call(c_function(count, lambda *words: seen.append(words) or 7), count)
    words = (2**64 - 1, 0, 0x7FFF_1234_5678_9ABC, 5)[:count]
    assert call(*words) == 7
    assert seen == [words]


def test_a_status_is_never_negative():
    """Vendors' statuses are unsigned; a negative number says that the call is an allocation that failed."""
    assert native_call(c_function(1, lambda _: -1), 1)(0) == 2**32 - 1


@pytest.mark.parametrize("arguments", [(), (1,), (1, 2, 3), (1, "2"), (1.5, 2), (None, 1), (1, 2**64)])
def test_other_arguments_are_an_error_and_call_nothing(arguments):
    seen = []
    call = native_call(c_function(2, lambda *words: seen.append(words) or 0), 2)
    with pytest.raises((TypeError, OverflowError)):
        call(*arguments)
    assert seen == []
    assert call(1, 2) == 0  # no error is left behind
    assert seen == [(1, 2)]


def test_an_allocation_returns_the_address_or_the_negative_status():
    def alloc(found, nbytes, stream):
        assert (nbytes, stream) == (1 << 40, 3)
        ctypes.c_uint64.from_address(found).value = 0x7FFF_0000_1000
        return statuses.pop()

    statuses = [2, 0]
    made = native_alloc(c_function(3, alloc))
    assert made(1 << 40, 3) == 0x7FFF_0000_1000
    assert made(1 << 40, 3) == -2


def test_other_threads_run_during_a_call():
    """A driver may wait for a host function, which another thread runs in Python."""
    arrived, leave = threading.Event(), threading.Event()

    def wait(_word):
        arrived.set()
        return 0 if leave.wait(30) else 1

    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(native_call(c_function(1, wait), 1)(0)))
    thread.start()
    assert arrived.wait(30)
    leave.set()
    thread.join(30)
    assert statuses == [0]


def test_python_s_lock_is_free_during_a_call():
    """Asked of Python itself: 1 on a thread that has the lock."""
    asked = ctypes.pythonapi.PyGILState_Check
    assert asked() == 1
    assert native_call(asked, 1)(0) == 0


@pytest.mark.parametrize("reason", ["lost", "not selected"])
def test_a_device_that_is_lost_or_cannot_be_selected_is_not_called(reason):
    lost, seen = ctypes.c_int(reason == "lost"), []
    native = NativeCalls(ctypes.addressof(lost), address_of_function(SELECT), 5 if reason == "lost" else 6)
    assert native.call(c_function(1, lambda _: seen.append(1) or 0), 1)(0) == UNTRIED
    assert native.alloc(c_function(3, lambda *_: seen.append(1) or 0))(1, 0) == -UNTRIED
    assert seen == []


def test_references_do_not_grow():
    call, words = native_call(c_function(2, lambda *_: 0), 2), (1 << 50, 1 << 51)
    before = [sys.getrefcount(word) for word in words]
    for _ in range(100):
        call(*words)
    assert [sys.getrefcount(word) for word in words] == before
