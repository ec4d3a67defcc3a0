"""Kernels and arrays in graphs, as users write them."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import ArgumentError, KernelTypeError, NoDeviceError
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, current_config, set_config

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def saxpy(a: qp.f32, x: F32, y: F32):
    for i in x:
        y[i] = a * x[i] + y[i]


@qp.kernel
def blur_twice(x: F32, t: F32):
    for i in range(1, x.shape[0] - 1):
        t[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0
    for i in range(1, x.shape[0] - 1):
        x[i] = (t[i - 1] + t[i] + t[i + 1]) / 3.0


@qp.kernel
def total(x: F32, out: F32):
    s = 0.0
    for i in x:
        s += x[i]
    out[0] = s


@qp.kernel
def rotate(x: F32, n: qp.i32):
    qp.loop_config(block_dim=64)
    for i in range(n):
        shared = qp.simt.block.SharedArray(64, qp.f32)
        t = qp.simt.block.thread_idx()
        shared[t] = x[i]
        qp.simt.block.sync()
        x[i] = shared[(t + 1) % 64]


def here(arch):
    try:
        devices.open_device(arch)
    except NoDeviceError:
        return False
    return True


@pytest.fixture(params=[arch for arch in ("cpu", "amdgpu", "cuda") if here(arch)])
def arch(request):
    before = current_config()
    set_config(Config(arch=request.param))
    yield request.param
    set_config(before)


def array(*values):
    made = qp.ndarray(qp.f32, len(values))
    made.from_numpy(np.array(values, np.float32))
    qp.sync()  # tests use it on other streams
    return made


def test_a_kernel_in_a_graph_gives_what_a_call_gives(arch):
    rng = np.random.default_rng(1)
    data = rng.standard_normal(100, np.float32)
    x, y, out = array(*data), array(*data[::-1]), array(0)
    u, v, expected = array(*data), array(*data[::-1]), array(0)
    graph = qp.graph.Graph()
    graph.add_kernel(saxpy, 1.5, x, y)
    graph.add_kernel(blur_twice, x, y)
    graph.add_kernel(total, x, out)
    assert [node.after for node in graph] == [(), ("saxpy",), ("blur_twice",)]
    with graph.instantiate() as run:
        for _ in range(3):
            run.launch()
            saxpy(1.5, u, v)
            blur_twice(u, v)
            total(u, expected)
        for got, called in ((x, u), (y, v), (out, expected)):
            assert got.to_numpy().tobytes() == called.to_numpy().tobytes()


def test_arguments_are_bound_anew_by_name(arch):
    x, y, z = array(1, 2), array(0, 0), array(5, 5)
    graph = qp.graph.Graph()
    graph.add_kernel(saxpy, 2.0, x, y, name="step")
    with graph.instantiate() as run:
        run.launch()
        run.update("step", 3.0, x, z)
        run.launch()
        run.update("step", a=1.0, x=z, y=y)
        run.launch()
        assert (y.to_numpy().tolist(), z.to_numpy().tolist()) == ([2 + 8, 4 + 11], [8, 11])
        assert run.stats().rebuilds == 0


def test_arrays_fields_and_numpy_in_copies_and_fills(arch):
    x, f, host = array(1, 2, 3), qp.field(qp.f32, shape=3), np.zeros(3, np.float32)
    graph = qp.graph.Graph()
    graph.add_memset(x, 1.5)
    graph.add_memcpy(f, x)
    graph.add_memcpy(host, f)
    with graph.instantiate() as run:
        run.launch()
        run.synchronize()
        assert f.to_numpy().tolist() == host.tolist() == [1.5] * 3


def test_arrays_read_from_python_wait_for_the_launches_that_wrote_them(arch):
    x = array(0)
    one = array(1)
    graph = qp.graph.Graph()
    graph.add_kernel(saxpy, 1.0, one, x)
    with qp.create_stream() as stream, graph.instantiate() as run:
        for _ in range(5):
            run.launch(stream)
        assert x[0] == 5


def test_the_current_stream_is_taken(arch):
    x, one = array(0), array(1)
    graph = qp.graph.Graph()
    graph.add_kernel(saxpy, 1.0, one, x)
    with graph.instantiate() as run, qp.create_stream() as stream, qp.use_stream(stream):
        run.launch()
        stream.synchronize()
        assert x[0] == 1


def test_no_elements(arch):
    x = qp.ndarray(qp.f32, 0)
    graph = qp.graph.Graph()
    graph.add_kernel(saxpy, 1.0, x, x)
    graph.add_memset(x, 1.0)
    with graph.instantiate() as run:
        run.launch()
        run.synchronize()
        assert run.stats().launches == 1
    assert x.to_numpy().size == 0


def test_no_elements_for_whole_blocks(arch):
    """No block of such a loop looks whether there is an iteration for it: one would rotate the numbers of others."""
    numbers = np.arange(128, dtype=np.float32)
    x, kernel = array(*numbers), qp.kernel(rotate.__wrapped__, graph=True, fuse=False)
    graph = qp.graph.Graph()
    graph.add_kernel(rotate, x, 0, name="rotate")
    with qp.graph.capture() as captured:
        rotate(x, 0)
    with graph.instantiate() as run, captured.instantiate() as other:
        for launch in (run.launch, other.launch, lambda: kernel(x, 0), lambda: rotate(x, 0)):
            launch()
            np.testing.assert_array_equal(x.to_numpy(), numbers)
        run.update("rotate", x, 64)  # and later there are some, and none again
        run.launch()
        run.update("rotate", x, 0)
        run.launch()
    kernel(x, 64)
    kernel(x, 0)
    np.testing.assert_array_equal(x.to_numpy()[:64], np.roll(numbers[:64], -2))
    np.testing.assert_array_equal(x.to_numpy()[64:], numbers[64:])


def test_arguments_that_a_kernel_does_not_take(arch):
    graph, x = qp.graph.Graph(), array(1)
    with pytest.raises(ArgumentError, match="saxpy"):
        graph.add_kernel(saxpy, 1.0, x)
    with pytest.raises(ArgumentError, match="takes a number"):
        graph.add_kernel(saxpy, "one", x, x)
    with pytest.raises(ArgumentError):
        graph.add_memset(x, "one")
    with pytest.raises(ArgumentError, match="pattern of 8 bytes"):
        graph.add_memset(qp.ndarray(qp.f64, 3), 1.1)
    assert len(graph) == 0


def test_a_kernel_that_cannot_be_compiled(arch):
    @qp.kernel
    def wrong(x: F32):
        for i in x:
            x[i] = "text"

    graph = qp.graph.Graph()
    with pytest.raises((KernelTypeError, qp.KernelSyntaxError)):
        graph.add_kernel(wrong, array(1))
    assert len(graph) == 0


def test_the_host_sees_results_in_host_functions(arch):
    x, one, seen, host = array(0), array(1), [], np.zeros(1, np.float32)
    graph = qp.graph.Graph()
    graph.add_kernel(saxpy, 1.0, one, x)
    graph.add_memcpy(host, x)
    graph.add_host(lambda: seen.append(float(host[0])))
    with graph.instantiate() as run:
        for _ in range(3):
            run.launch()
        qp.sync()
    assert seen == [1.0, 2.0, 3.0]


def test_sync_raises_what_a_host_function_raised(arch):
    graph = qp.graph.Graph()
    graph.add_host(lambda: {}["nothing"])
    with graph.instantiate() as run:
        run.launch()
        with pytest.raises(KeyError):
            qp.sync()
        qp.sync()


def test_a_host_array_in_a_kernel(arch):
    data, x = np.ones(2, np.float32), array(1, 1)
    graph = qp.graph.Graph()
    refused = contextlib.nullcontext() if arch == "cpu" else pytest.raises(ArgumentError, match="on the device")
    with refused:
        graph.add_kernel(saxpy, 1.0, x, data)
        with graph.instantiate() as run:
            run.launch()
            assert data.tolist() == [2, 2]


def test_the_picture_names_kernels_and_lines(arch):
    graph = qp.graph.Graph()
    graph.add_kernel(saxpy, 1.0, array(1), array(1))
    (node,) = graph.inspect().nodes
    assert (node.name, node.kind) == ("saxpy", "kernel")
    assert "test_kernels.py" in node.place
    assert "saxpy" in graph.to_dot()
