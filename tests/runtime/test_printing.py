"""When prints of kernels appear: after whatever waits for their work, on a simulated GPU that runs when it is told to."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from simulated import add, as_add, run_printing, simulated, stand_in
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.runtime.device.current import State, set_config

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def say(n: qp.i32):
    print("say", n)


@qp.kernel
def count(n: qp.i32, m: qp.i32):
    for i in range(m):
        print(n, i)


@pytest.fixture
def device():
    """A simulated GPU, current inside the test, that ends without races and leaks."""
    driver = RecordingDriver()
    for kernel in (say, count):
        run_printing(driver, kernel)
    stand_in(driver, add, as_add)
    with simulated(driver) as device:
        yield device
    assert driver.races() == []
    assert set(driver.left_open().values()) == {0}, driver.left_open()


def counted(n, m):
    return "".join(f"{n} {i}\n" for i in range(m))


def test_nothing_appears_before_somebody_waits(device, capsys):
    say(1)
    count(2, 3)
    assert capsys.readouterr().out == ""
    qp.sync()
    assert capsys.readouterr().out == "say 1\n" + counted(2, 3)
    qp.sync()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("wait", [
    lambda device, stream, event: stream.synchronize(),
    lambda device, stream, event: event.synchronize(),
    lambda device, stream, event: qp.sync(),
    lambda device, stream, event: device.streams.synchronize_stream(stream.handle),
    lambda device, stream, event: device.close(),
], ids=["stream", "event", "device", "handle", "close"])  # fmt: skip
def test_whatever_waits_prints(device, capsys, wait):
    with qp.create_stream() as stream, qp.create_event() as event:
        say(5, stream=stream)
        event.record(stream)
        wait(device, stream, event)
        assert capsys.readouterr().out == "say 5\n"


def test_a_read_of_an_array_prints_what_came_before_it(device, capsys):
    x = qp.ndarray(qp.f32, 4)
    say(6)
    x.to_numpy()
    assert capsys.readouterr().out == "say 6\n"
    say(7)
    assert x[1] == 0
    assert capsys.readouterr().out == "say 7\n"


def test_a_wait_prints_what_is_complete_and_no_more(device, capsys):
    with qp.create_stream() as first, qp.create_stream() as second:
        say(1, stream=first)
        say(2, stream=second)
        second.synchronize()
        assert capsys.readouterr().out == "say 2\n"
        first.synchronize()
        assert capsys.readouterr().out == "say 1\n"


def test_a_stream_that_waited_for_another_prints_both(device, capsys):
    with qp.create_stream() as first, qp.create_stream() as second, qp.create_event() as event:
        say(1, stream=first)
        event.record(first)
        event.wait(second)
        say(2, stream=second)
        second.synchronize()
        assert capsys.readouterr().out == "say 1\nsay 2\n"


def test_a_destroyed_stream_prints(device, capsys):
    stream = qp.create_stream()
    say(1, stream=stream)
    stream.destroy()
    qp.sync()
    assert capsys.readouterr().out == "say 1\n"


def test_many_launches_lose_nothing(device, capsys):
    for n in range(100):
        say(n)
    qp.sync()
    assert capsys.readouterr().out == "".join(f"say {n}\n" for n in range(100))
    assert device.memory_stats().blocks <= 70


def test_a_launch_waits_for_nothing(device):
    say(1)
    qp.sync()
    with qp.create_stream() as stream:
        before = len(device.driver.calls)
        for n in range(20):
            say(n, stream=stream)
        verbs = {call.verb for call in device.driver.calls[before:]}
        assert not {verb for verb in verbs if verb.endswith("synchronize")}


def test_what_does_not_fit_is_counted(device, capsys):
    before = State.config
    set_config(type(before)(arch="recording", print_buffer=8 * 100))
    try:
        count(1, 1000)
        qp.sync()
        lines = capsys.readouterr().out.splitlines()
        kept = 99 // 4  # a word says that the loop begins; a line has a key, its place and two numbers
        assert lines == [
            *counted(1, kept).splitlines(),
            f"… {1000 - kept} lines lost; raise print_buffer, which is 800 bytes",
        ]
        count(2, 3)
        qp.sync()
        assert capsys.readouterr().out == counted(2, 3)
    finally:
        set_config(before)


def test_graphs_print_at_each_launch(device, capsys):
    graph = qp.graph.Graph()
    graph.add_kernel(count, 1, 3)
    graph.add_kernel(say, 2)
    with graph.instantiate() as exe:
        assert capsys.readouterr().out == ""
        for _ in range(3):
            exe.launch()
        assert capsys.readouterr().out == ""
        exe.synchronize()
        once, said = counted(1, 3), "say 2\n"
        assert capsys.readouterr().out == 3 * once + 3 * said, "each kernel of a graph has a ring"
        exe.update("say", 4)
        exe.launch()
        qp.sync()
        assert capsys.readouterr().out == once + "say 4\n"


def test_captured_calls_print_at_launches_only(device, capsys):
    with qp.create_stream() as stream:
        with qp.graph.capture(stream) as graph:
            say(1, stream=stream)
            count(2, 2, stream=stream)
        qp.sync()
        assert capsys.readouterr().out == ""
        with graph.instantiate() as exe:
            exe.launch(stream)
            exe.launch(stream)
            stream.synchronize()
            assert capsys.readouterr().out == 2 * "say 1\n" + 2 * counted(2, 2)


def test_replays_print_what_calls_would(device, capsys):
    @qp.graph.replay
    def step(n):
        say(n)
        count(n, 2)

    for n in (1, 1, 2, 3, 3):
        step(n)
        qp.sync()
        assert capsys.readouterr().out == f"say {n}\n" + counted(n, 2)


def test_one_kernel_on_many_threads_and_streams(device, capsys):
    def work(k):
        with qp.create_stream() as stream:
            for n in range(20):
                count(100 * k + n, 3, stream=stream)
                if n % 5 == k % 5:
                    stream.synchronize()
            stream.synchronize()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = capsys.readouterr().out.splitlines(keepends=True)
    launches = ["".join(lines[k : k + 3]) for k in range(0, len(lines), 3)]
    assert sorted(launches) == sorted(counted(100 * k + n, 3) for k in range(4) for n in range(20))


def test_a_launch_that_the_driver_refuses_prints_nothing(device, capsys):
    device.driver.failures["launch"] = RuntimeError("no")
    with pytest.raises(RuntimeError, match="no"):
        say(1)
    say(2)
    qp.sync()
    assert capsys.readouterr().out == "say 2\n"


def test_output_that_fails_is_an_error_once(device, capsys, monkeypatch):
    class Broken:
        def write(self, text):
            raise BrokenPipeError

    say(1)
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", Broken())
        with pytest.raises(BrokenPipeError):
            qp.sync()
    say(2)
    qp.sync()
    assert capsys.readouterr().out == "say 2\n"


def test_kernels_that_do_not_print_have_nothing_to_do_with_it(device):
    x = qp.ndarray(qp.f32, 4)
    y = qp.ndarray(qp.f32, 4)
    add(x, y)
    before = len(device.driver.calls)
    add(x, y)
    plain = [call.verb for call in device.driver.calls[before:]]
    say(1)
    qp.sync()
    before = len(device.driver.calls)
    add(x, y)
    assert [call.verb for call in device.driver.calls[before:]] == plain == ["launch"]
    assert np.array_equal(y.to_numpy(), np.zeros(4, np.float32))
