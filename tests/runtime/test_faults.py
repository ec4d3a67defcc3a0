"""When faults of kernels are raised: by whatever waits for their work, on a simulated GPU that runs when it is told to."""

from __future__ import annotations

import threading

import pytest
from simulated import add, as_add, run_here, simulated, stand_in
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.errors import KernelAssertionError, KernelFault, KernelZeroDivisionError


@qp.kernel(debug=True)
def require(n: qp.i32):
    assert n > 0, f"n is {n}"


@qp.kernel(debug=True)
def divide(n: qp.i32, m: qp.i32):
    for i in range(m):
        print(i // n)


@pytest.fixture
def device():
    """A simulated GPU, current inside the test, that ends without races and leaks."""
    driver = RecordingDriver()
    for kernel in (require, divide):
        run_here(driver, kernel, lambda code, block: ((), ()))
    stand_in(driver, add, as_add)
    with simulated(driver) as device:
        yield device
    assert driver.races() == []
    assert set(driver.left_open().values()) == {0}, driver.left_open()


def test_a_launch_returns_and_the_next_synchronize_raises(device):
    require(-3)
    with pytest.raises(KernelAssertionError, match="n is -3") as caught:
        qp.sync()
    assert caught.value.kernel == "require"
    qp.sync()
    require(1)
    qp.sync()


def test_the_first_of_several_faults_is_raised_and_then_none(device):
    for n in (-1, -2, -3):
        require(n)
    with pytest.raises(KernelFault, match="n is -1"):
        qp.sync()
    qp.sync()


@pytest.mark.parametrize("wait", [
    lambda device, stream, event: stream.synchronize(),
    lambda device, stream, event: event.synchronize(),
    lambda device, stream, event: qp.sync(),
    lambda device, stream, event: device.streams.synchronize_stream(stream.handle),
    lambda device, stream, event: qp.ndarray(qp.f32, 4).to_numpy(),
    lambda device, stream, event: qp.ndarray(qp.f32, 4)[1],
], ids=["stream", "event", "device", "handle", "array", "element"])  # fmt: skip
def test_whatever_waits_raises(device, wait):
    with qp.create_stream() as stream, qp.create_event() as event, qp.use_stream(stream):
        require(-5)
        event.record(stream)
        with pytest.raises(KernelFault, match="n is -5"):
            wait(device, stream, event)


def synchronize(*streams):
    for stream in streams:
        stream.synchronize()


def test_the_fault_of_another_stream_is_complete_when_it_is_raised(device):
    with qp.create_stream() as first, qp.create_stream() as second:
        require(-6, stream=first)
        require(6, stream=second)
        with pytest.raises(KernelFault, match="n is -6"):
            synchronize(second, first)


def test_what_was_printed_before_a_fault_appears(device, capsys):
    divide(1, 3)
    divide(0, 1)
    with pytest.raises(KernelZeroDivisionError, match="division by zero"):
        qp.sync()
    assert capsys.readouterr().out == "0\n1\n2\n"


def test_graphs_replay_their_faults(device):
    graph = qp.graph.Graph()
    graph.add_kernel(require, 1, name="require")
    run = graph.instantiate()
    run.launch()
    run.synchronize()
    run.update("require", -4)
    for _ in range(2):
        run.launch()
        with pytest.raises(KernelFault, match="n is -4"):
            run.synchronize()


def test_captures_and_replays(device):
    with qp.graph.capture() as captured:
        require(-7)
    run = captured.instantiate()
    run.launch()
    with pytest.raises(KernelFault, match="n is -7"):
        qp.sync()

    @qp.graph.replay
    def step(n):
        require(n)

    for n in (1, 2, -8):
        step(n)
    with pytest.raises(KernelFault, match="n is -8"):
        qp.sync()


def test_a_fault_is_raised_once_among_threads(device):
    require(-9)
    raised = []

    def wait():
        try:
            device.synchronize()
        except KernelFault as fault:
            raised.append(fault)

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(raised) == 1


def test_a_device_without_such_kernels_has_no_record(device):
    x, y = qp.ndarray(qp.f32, 4), qp.ndarray(qp.f32, 4)
    add(x, y)
    before = len([call for call in device.driver.calls if call.verb == "copy_out"])
    qp.sync()
    assert len([call for call in device.driver.calls if call.verb == "copy_out"]) == before
    assert device.faults._buffer is None
    require(1)
    qp.sync()
    assert device.faults._buffer is not None
