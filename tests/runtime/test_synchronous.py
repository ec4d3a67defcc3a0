"""``qp.init(synchronous=True)``: on a simulated GPU, whatever launches raises what its checks found."""

from __future__ import annotations

import pytest
from simulated import add, as_add, run_here, simulated, stand_in
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
import quadpy.compat.taichi as ti
from quadpy.errors import KernelAssertionError, KernelFault, KernelIndexError, KernelZeroDivisionError
from quadpy.runtime.device.current import current_config, set_config


@qp.kernel(debug=True)
def require(n: qp.i32):
    assert n > 0, f"n is {n}"


@qp.kernel(debug=True)
def divide(n: qp.i32, m: qp.i32):
    for i in range(m):
        print(i // n)


@qp.kernel(debug=True)
def result(n: qp.i32) -> qp.i32:
    assert n > 0, f"n is {n}"
    return n


@qp.kernel(debug=True, graph=True)
def in_graph(n: qp.i32):
    assert n > 0, f"n is {n}"


@pytest.fixture
def device():
    driver = RecordingDriver()
    for kernel in (require, divide, result, in_graph):
        run_here(driver, kernel, lambda code, block: ((), ()))
    stand_in(driver, add, as_add)
    with simulated(driver) as device:
        set_config(current_config()._replace(synchronous=True))
        yield device
    assert driver.races() == []
    assert set(driver.left_open().values()) == {0}, driver.left_open()


@pytest.mark.parametrize("kernel", [require, result, in_graph], ids=["plain", "result", "graph"])
def test_the_call_itself_raises(device, kernel):
    for _ in range(3):  # slow and fast calls
        kernel(3)
        with pytest.raises(KernelAssertionError, match="n is -3") as caught:
            kernel(-3)
        assert caught.value.kernel == kernel.source.name
        assert caught.traceback[0].path.name == "test_synchronous.py"
    qp.sync()


def test_on_streams(device):
    with qp.create_stream() as stream:
        with pytest.raises(KernelFault, match="n is -2"):
            require(-2, stream=stream)
        with qp.use_stream(stream), pytest.raises(KernelFault, match="n is -4"):
            require(-4)
        require(4, stream=stream)
        stream.synchronize()


def test_the_work_of_a_call_is_done(device, capsys):
    divide(1, 3)
    assert capsys.readouterr().out == "0\n1\n2\n"
    with pytest.raises(KernelZeroDivisionError):
        divide(0, 1)
    x, y = qp.ndarray(qp.f32, 4), qp.ndarray(qp.f32, 4)
    for _ in range(3):
        add(x, y)
        assert device.default_stream.query()


def test_graphs_captures_and_replays(device):
    graph = qp.graph.Graph()
    graph.add_kernel(require, 1, name="require")
    run = graph.instantiate()
    run.launch()
    run.update("require", -4)
    with pytest.raises(KernelFault, match="n is -4"):
        run.launch()
    with qp.graph.capture() as captured:
        require(-7)  # recorded, not run
    with pytest.raises(KernelFault, match="n is -7"):
        captured.instantiate().launch()

    @qp.graph.replay
    def step(n):
        require(n)

    for n in (1, 2, 3):
        step(n)
    with pytest.raises(KernelFault, match="n is -8"):
        step(-8)
    qp.sync()


def test_without_it_a_call_returns(device):
    set_config(current_config()._replace(synchronous=False))
    require(-3)
    require(-3)
    with pytest.raises(KernelFault):
        qp.sync()


@qp.kernel
def outside(x: qp.types.ndarray(qp.f32, 1)):
    for i in range(5):
        x[i] = 1.0


def test_options():
    try:
        qp.init(arch=qp.cpu, debug=True, synchronous=True)
        assert current_config().synchronous
        with pytest.raises(KernelIndexError):
            outside(qp.ndarray(qp.f32, 4))
        qp.init(arch=qp.cpu, debug=True)
        assert not current_config().synchronous
        ti.init(arch=ti.cpu, debug=True)
        assert current_config().synchronous
        ti.init(arch=ti.cpu, debug=True, synchronous=False)
        assert not current_config().synchronous
        ti.init(arch=ti.cpu)
        assert not current_config().synchronous
        with pytest.raises(qp.ArgumentError, match="synchronous"):
            qp.init(arch=qp.cpu, synchronous=3)
    finally:
        qp.init(arch=qp.cpu)
