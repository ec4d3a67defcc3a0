"""The calls without the binding: the vendor's library, stood in for by C functions that write down their arguments."""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading

import pytest

from quadpy.errors import CodegenError, DriverError, EventError, OutOfDeviceMemory, StreamError
from quadpy.runtime.cpu import native_calls
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers import cuda_api, hip_api
from quadpy.runtime.drivers.gpu import GpuDriver

from . import test_cuda_driver, test_gpu_driver

WORD, INT, BYTE = ctypes.c_size_t, ctypes.c_uint, ctypes.c_ubyte
ADDRESS, HOST = 0x7F12_3456_7000, 0x55AA_1234_5678
STREAM, EVENT = 0x7FFF_0000_1110, 0x7FFF_0000_2220  # wider than C's int

SIGNATURES = {
    "EventRecord": (WORD, WORD),
    "EventSynchronize": (WORD,),
    "EventQuery": (WORD,),
    "StreamSynchronize": (WORD,),
    "StreamQuery": (WORD,),
    "StreamWaitEvent": (WORD, WORD, INT),
    "MallocAsync": (ctypes.POINTER(WORD), WORD, WORD),
    "FreeAsync": (WORD, WORD),
    "MemsetD8Async": (WORD, BYTE, WORD, WORD),
    "MemcpyHtoDAsync": (WORD, WORD, WORD, WORD),
    "MemcpyDtoHAsync": (WORD, WORD, WORD, WORD),
}
NAMES = {"MallocAsync": "MemAllocAsync", "FreeAsync": "MemFreeAsync"}  # CUDA's, where they differ

VERSIONED = {"MemcpyHtoDAsync", "MemcpyDtoHAsync"}  # CUDA's plain names are those of an older interface


class Function:
    """A call of a binding, which is none of Python's functions."""

    def __init__(self, function, name):
        self.function, self.__name__ = function, name

    def __call__(self, *arguments):
        return self.function(*arguments)


def compiled(stand_in):
    """``stand_in`` with calls that are compiled, as those of the vendors' bindings are."""

    class Binding:
        def __getattr__(self, name):
            found = getattr(stand_in, name)
            if not callable(found) or isinstance(found, type) or not name.startswith(("cu", "hip")):
                return found
            setattr(self, name, Function(found, name))
            return getattr(self, name)

    return Binding()


class Library:
    """``seen`` are the calls in order, ``answers`` what a call answers next; ``selected`` says which threads selected what."""

    def __init__(self, prefix, missing=()):
        self.seen, self.answers, self._kept, self.selected, self.selects = [], {}, [], [], 0
        select = {"cu": "cuCtxSetCurrent", "hip": "hipSetDevice"}[prefix]
        self._symbols = {select: ctypes.CFUNCTYPE(ctypes.c_int, WORD)(self._select)}
        for name, words in SIGNATURES.items():
            symbol = prefix + (NAMES.get(name, name) if prefix == "cu" else name)
            if prefix == "cu" and name in VERSIONED:
                symbol += "_v2"
            if name not in missing:
                self._symbols[symbol] = ctypes.CFUNCTYPE(ctypes.c_int, *words)(self._function(name))

    def _select(self, which):
        self.selected.append((which, threading.get_ident()))
        return self.selects

    def _function(self, name):
        def function(*arguments):
            if name == "MallocAsync":
                arguments[0][0] = ADDRESS
                arguments = arguments[1:]
            self.seen.append((name, *arguments))
            return self.answers.pop(name, 0)

        return function

    def __getitem__(self, symbol):
        if symbol not in self._symbols:
            raise AttributeError(symbol)
        untyped = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.cast(self._symbols[symbol], ctypes.c_void_p).value)
        self._kept.append(untyped)
        return untyped


def opened(monkeypatch, vendor, missing=()):
    monkeypatch.setattr("quadpy.runtime.drivers.gpu_calls._selected.device", {})
    if vendor == "cuda":
        library, stand_in, table = Library("cu", missing), test_cuda_driver.StandIn(), cuda_api
        monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    else:
        library, stand_in, table = Library("hip", missing), test_gpu_driver.StandIn(), hip_api
        monkeypatch.setattr(hip_api, "_library", lambda: library)
    return library, stand_in, GpuDriver(table._table(compiled(stand_in)))


@pytest.fixture(params=["cuda", "hip"])
def vendor(request):
    return request.param


STATUS = {
    "cuda": {
        "not ready": 600, "invalid": 1, "memory": 2, "fault": 700, "deselected": 201,
        "invalid name": "CUDA_ERROR_INVALID_VALUE", "fault name": "CUDA_ERROR_ILLEGAL_ADDRESS",
    },
    "hip": {
        "not ready": 600, "invalid": 1, "memory": 2, "fault": 700,
        "invalid name": "hipErrorInvalidValue", "fault name": "hipErrorIllegalAddress",
    },
}  # fmt: skip

CALLS = {
    "EventRecord": (lambda driver: driver.event_record(EVENT, STREAM), (EVENT, STREAM)),
    "EventSynchronize": (lambda driver: driver.event_synchronize(EVENT), (EVENT,)),
    "EventQuery": (lambda driver: driver.event_query(EVENT), (EVENT,)),
    "StreamSynchronize": (lambda driver: driver.stream_synchronize(STREAM), (STREAM,)),
    "StreamQuery": (lambda driver: driver.stream_query(STREAM), (STREAM,)),
    "StreamWaitEvent": (lambda driver: driver.stream_wait(STREAM, EVENT), (STREAM, EVENT, 0)),
    "MallocAsync": (lambda driver: driver.alloc_async(5 << 33, STREAM), (5 << 33, STREAM)),
    "FreeAsync": (lambda driver: driver.free_async(ADDRESS, STREAM), (ADDRESS, STREAM)),
    "MemsetD8Async": (lambda driver: driver.fill(ADDRESS, 0xAB, 5 << 33, STREAM), (ADDRESS, 0xAB, 5 << 33, STREAM)),
    "MemcpyHtoDAsync": (
        lambda driver: driver.copy_in(ADDRESS, HOST, 5 << 33, STREAM),
        (ADDRESS, HOST, 5 << 33, STREAM),
    ),
    "MemcpyDtoHAsync": (
        lambda driver: driver.copy_out(HOST, ADDRESS, 5 << 33, STREAM),
        (HOST, ADDRESS, 5 << 33, STREAM),
    ),
}
ANSWERS = {"EventQuery": True, "StreamQuery": True, "MallocAsync": ADDRESS}


@pytest.mark.parametrize("name", CALLS)
def test_all_arguments_arrive_whole(monkeypatch, vendor, name):
    library, stand_in, driver = opened(monkeypatch, vendor)
    calls = len(stand_in.log)
    call, arguments = CALLS[name]
    assert call(driver) == ANSWERS.get(name)
    assert library.seen == [(name, *arguments)]
    assert len(stand_in.log) == calls  # the binding was not asked


@pytest.mark.parametrize("name", CALLS)
def test_a_refusal_is_an_error_with_its_name(monkeypatch, vendor, name):
    library, _, driver = opened(monkeypatch, vendor)
    call, _ = CALLS[name]
    library.answers[name] = STATUS[vendor]["invalid"]
    with pytest.raises(DriverError, match=rf"failed: {STATUS[vendor]['invalid name']} \(1\)"):
        call(driver)
    library.answers[name] = 123_456
    with pytest.raises(DriverError, match="123456, which the binding does not know"):
        call(driver)
    assert call(driver) == ANSWERS.get(name)


@pytest.mark.parametrize("name", CALLS)
def test_a_lost_device_is_asked_nothing(monkeypatch, vendor, name):
    library, stand_in, driver = opened(monkeypatch, vendor)
    library.answers["StreamSynchronize"] = STATUS[vendor]["fault"]
    with pytest.raises(DriverError, match=STATUS[vendor]["fault name"]) as first:
        driver.stream_synchronize(STREAM)
    del library.seen[:], stand_in.log[:]
    with pytest.raises(DriverError, match="is lost since an earlier fault") as later:
        CALLS[name][0](driver)
    assert later.value.__cause__ is first.value
    assert (library.seen, stand_in.log) == ([], [])


@pytest.mark.parametrize("name", CALLS)
def test_a_thread_that_has_lost_its_device_selects_it_and_asks_again(monkeypatch, name):
    library, stand_in, driver = opened(monkeypatch, "cuda")
    symbol = "cu" + NAMES.get(name, name)
    library.answers[name] = STATUS["cuda"]["deselected"]
    stand_in.status[symbol] = [test_cuda_driver.Status.CUDA_ERROR_INVALID_CONTEXT]
    del stand_in.log[:]
    CALLS[name][0](driver)
    assert stand_in.names() == [symbol, "cuCtxSetCurrent", symbol]


def test_a_query_says_what_is_not_ready(monkeypatch, vendor):
    library, _, driver = opened(monkeypatch, vendor)
    library.answers |= dict.fromkeys(("EventQuery", "StreamQuery"), STATUS[vendor]["not ready"])
    assert not driver.event_query(EVENT)
    assert not driver.stream_query(STREAM)


def test_memory_that_is_not_there(monkeypatch, vendor):
    library, _, driver = opened(monkeypatch, vendor)
    library.answers["MallocAsync"] = STATUS[vendor]["memory"]
    with pytest.raises(OutOfDeviceMemory):
        driver.alloc_async(64, STREAM)


def test_nothing_is_asked_for_no_bytes(monkeypatch, vendor):
    library, _, driver = opened(monkeypatch, vendor)
    assert driver.alloc_async(0, STREAM) == 0
    driver.free_async(0, STREAM)
    driver.fill(ADDRESS, 0, 0, STREAM)
    driver.copy_in(ADDRESS, HOST, 0, STREAM)
    driver.copy_out(HOST, ADDRESS, 0, STREAM)
    assert library.seen == []


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_the_library_has_not_goes_through_the_binding(monkeypatch, vendor, name):
    library, stand_in, driver = opened(monkeypatch, vendor, missing=(name,))
    del stand_in.log[:]
    CALLS[name][0](driver)
    assert library.seen == []
    assert len(stand_in.log) == 1


@pytest.mark.parametrize("reason", ["no machine code", "another interpreter"])
def test_where_there_is_no_machine_code_the_binding_makes_every_call(monkeypatch, vendor, reason):
    if reason == "another interpreter":
        monkeypatch.setattr(sys.implementation, "name", "another")
    else:  # a system may refuse to make memory executable

        def refuse():
            raise CodegenError("LLVM cannot load the machine code: Permission denied")

        monkeypatch.setattr(native_calls, "_code", refuse)
    library, stand_in, driver = opened(monkeypatch, vendor)
    calls = len(stand_in.log)
    for call, _ in CALLS.values():
        call(driver)
    assert library.seen == []
    assert len(stand_in.log) == calls + len(CALLS)


def test_each_call_selects_the_device_on_its_thread(monkeypatch, vendor):
    library, stand_in, driver = opened(monkeypatch, vendor)
    calls, threads = len(stand_in.log), []

    def work():
        threads.append(threading.get_ident())
        driver.event_record(EVENT, STREAM)

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(library.seen) == 2
    which = {"cuda": test_cuda_driver.CONTEXT, "hip": 0}[vendor]
    assert library.selected == [(which, thread) for thread in threads]
    assert len(stand_in.log) == calls


@pytest.mark.parametrize("name", CALLS)
def test_a_device_that_cannot_be_selected_is_asked_through_the_binding(monkeypatch, vendor, name):
    library, stand_in, driver = opened(monkeypatch, vendor)
    library.selects, calls = 1, len(stand_in.log)
    CALLS[name][0](driver)
    assert library.seen == []
    assert len(stand_in.log) == calls + 1


def test_handles_that_are_gone_never_reach_the_library(monkeypatch, vendor):
    library, _, driver = opened(monkeypatch, vendor)
    numbers = itertools.count(STREAM, 16)
    for name in ("stream_create", "event_create"):
        monkeypatch.setattr(driver, name, lambda *_, **__: next(numbers))
    device = Device(driver)
    stream, event = device.create_stream(), device.create_event()
    event.record(stream)
    event.wait(stream)
    assert [name for name, *_ in library.seen] == ["EventRecord", "StreamWaitEvent"]
    del library.seen[:]
    monkeypatch.setattr(driver, "event_destroy", lambda _handle: None)
    device.streams.destroy_event(event.handle)  # by its handle: the object knows
    for call in (event.record, event.wait):
        with pytest.raises(EventError, match="the event was destroyed"):
            call(stream)
    fresh = device.create_event()
    device.streams.destroy_stream(stream.handle)
    library.seen.clear()
    for call in (fresh.record, fresh.wait):
        with pytest.raises(StreamError, match="the stream was destroyed"):
            call(stream)
    fresh.destroy()
    with pytest.raises(EventError, match="was destroyed"):
        fresh.record()
    assert library.seen == []


@pytest.mark.parametrize("verb", ["record", "wait"])
def test_handles_live_until_the_call_that_uses_them_returns(monkeypatch, vendor, verb):
    _, _, driver = opened(monkeypatch, vendor)
    numbers, done = itertools.count(STREAM, 16), []
    for name in ("stream_create", "event_create"):
        monkeypatch.setattr(driver, name, lambda *_, **__: next(numbers))
    monkeypatch.setattr(driver, "event_destroy", lambda _handle: done.append("event"))
    monkeypatch.setattr(driver, "stream_destroy", lambda _handle: done.append("stream"))
    device = Device(driver)
    stream, event = device.create_stream(), device.create_event()

    def call(*_handles):  # another thread destroys both meanwhile
        thread = threading.Thread(target=lambda: [event.destroy(), stream.destroy()])
        thread.start()
        thread.join()
        device.reaper.trim()
        done.append(verb)

    monkeypatch.setattr(driver, {"record": "event_record", "wait": "stream_wait"}[verb], call)
    monkeypatch.setattr(device.timelines, "move_last", lambda *_: None)
    getattr(event, verb)(stream)
    device.reaper.trim()
    assert event.destroyed
    assert stream.destroyed
    assert done == [verb, "event", "stream"]
