"""Host arrays in a kernel of a GPU: the recording driver stands in for one."""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from simulated_gpu.driver import RecordingDriver

from quadpy.errors import CaptureError
from quadpy.jit.host_arrays import copied_host_arrays
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.device.device import Device


@pytest.fixture
def device():
    with Device(RecordingDriver()) as found:
        yield found


def on_device(device: Device, address: int, like: np.ndarray) -> np.ndarray:
    """What the device holds at ``address``."""
    found = np.empty_like(like)
    device.staging.download(found.ctypes.data, address, found.nbytes, device.default_stream.handle)
    return found


def change(device: Device, address: int, data: np.ndarray) -> None:
    """What a kernel might do."""
    device.staging.upload(address, data.ctypes.data, data.nbytes, device.default_stream.handle)


class Launch:
    """A launch with host arrays: ``addresses`` of their copies, until ``copy_back``."""

    def __init__(self, device: Device, arrays: tuple[np.ndarray, ...], written: tuple[bool, ...]) -> None:
        views = [describe_host_array(array) for array in arrays]
        arguments = SimpleNamespace(written=written, pointers=range(len(views)))
        self.values = [view.abi[0] for view in views]
        self._context = copied_host_arrays(device, device.default_stream, self.values, views, arguments)
        there = self._context.__enter__()
        self.addresses = {k: view.abi[0] for k, view in enumerate(there) if view.block is not None}
        assert all(self.values[k] == address for k, address in self.addresses.items())

    def copy_back(self) -> None:
        self._context.__exit__(None, None, None)


def launch(device: Device, *arrays: np.ndarray, written: tuple[bool, ...]) -> Launch:
    return Launch(device, arrays, written)


def test_arrays_are_copied_in_and_what_is_written_comes_back(device):
    x, y = np.arange(10.0), np.arange(10.0) + 100
    arrays = launch(device, x, y, written=(False, True))
    assert (on_device(device, arrays.addresses[0], x) == x).all()
    assert (on_device(device, arrays.addresses[1], y) == y).all()
    change(device, arrays.addresses[0], x * 0)
    change(device, arrays.addresses[1], y + 1)
    arrays.copy_back()
    assert x[3] == 3.0
    assert y[3] == 104.0


def test_overlapping_arrays_share_their_memory_on_the_device_too(device):
    whole = np.arange(20.0)
    front, back = whole[:15], whole[10:]
    arrays = launch(device, front, back, written=(True, False))
    assert arrays.addresses[1] - arrays.addresses[0] == 10 * 8
    change(device, arrays.addresses[0], front * 2)
    assert on_device(device, arrays.addresses[1], back)[0] == 20.0
    arrays.copy_back()
    np.testing.assert_array_equal(whole, np.where(np.arange(20) < 15, 2.0, 1.0) * np.arange(20))


def test_a_view_that_runs_backwards_starts_at_its_last_byte(device):
    x = np.arange(6.0)
    arrays = launch(device, x[::-1], written=(True,))
    assert on_device(device, arrays.addresses[0], x[:1])[0] == 5.0


def test_an_empty_array_needs_no_memory(device):
    before = device.memory_stats().used
    arrays = launch(device, np.zeros((0, 4)), written=(True,))
    arrays.copy_back()
    assert arrays.addresses == {}
    assert device.memory_stats().used == before


def test_the_memory_is_free_when_the_launch_is_forgotten(device):
    arrays = launch(device, np.zeros(1000), written=(True,))
    assert device.memory_stats().blocks == 1
    del arrays
    device.synchronize()
    assert device.memory_stats().blocks == 0


def test_the_host_may_change_its_array_at_once(device):
    x = np.arange(4.0)
    arrays = launch(device, x, written=(False,))
    ctypes.memset(x.ctypes.data, 0, x.nbytes)
    assert on_device(device, arrays.addresses[0], x)[3] == 3.0


PARTS = {
    "a column": np.s_[:, 1],
    "every second row": np.s_[::2],
    "backwards": np.s_[::-1, ::-3],
    "a block": np.s_[1:4, 2:5],
    "one number": np.s_[3:4, 3:4],
    "nothing": np.s_[2:2, ::2],
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_what_lies_between_the_numbers_of_an_array_is_not_written(device, part):
    """Another thread, or the host, may write the other columns of a matrix while a kernel writes one."""
    matrix, want = np.zeros((6, 6)), np.full((6, 6), 7.0)
    view = matrix[part]
    arrays = launch(device, view, written=(True,))
    matrix[...] = 7.0  # all of it: what the kernel wrote comes on top
    for index in np.ndindex(view.shape if arrays.addresses else (0,)):
        at = arrays.addresses[0] + sum(i * stride for i, stride in zip(index, view.strides, strict=True))
        change(device, at, np.array([1.0 + sum(index)]))
        want[part][index] = 1.0 + sum(index)
    arrays.copy_back()
    assert (matrix == want).all()


def test_of_arrays_that_overlap_only_the_written_one_comes_back(device):
    matrix = np.zeros((4, 4))
    arrays = launch(device, matrix[:, 1], matrix, written=(True, False))
    matrix[...] = 5.0
    change(device, arrays.addresses[0], np.array([9.0]))
    arrays.copy_back()
    assert matrix[0].tolist() == [5, 9, 5, 5]
    assert matrix[:, 1].tolist() == [9, 0, 0, 0]


def test_threads_that_work_on_columns_of_one_matrix_lose_nothing(device):
    matrix = np.zeros((32, 4))

    def work(column):
        for turn in range(20):
            arrays = launch(device, column, written=(True,))
            arrays.copy_back()
            column += 1
            assert (column == turn + 1).all()

    threads = [threading.Thread(target=work, args=(matrix[:, k],)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (matrix == 20).all()


class Recorded:
    """A capture, as copies of host arrays see it."""

    def __init__(self, device):
        self.device, self.works = device, []

    def device_memory(self, stream, nbytes):
        return self.device.allocate(nbytes, stream)

    def record(self, _stream, work, _keep):
        self.works.append(work)

    def refuse(self, what, hint=""):
        raise CaptureError(what, hint=hint)


def recorded(device, array):
    session, views = Recorded(device), [describe_host_array(array)]
    arguments = SimpleNamespace(written=(True,), pointers=range(1))
    with copied_host_arrays(device, device.default_stream, [0], views, arguments, session):
        pass
    return [work for work in session.works if work.direction == "out"]


def test_a_recorded_launch_copies_the_numbers_alone(device):
    matrix = np.zeros((6, 4))
    start = matrix.ctypes.data
    assert [(w.target - start, w.nbytes) for w in recorded(device, matrix)] == [(0, 192)]
    assert [(w.target - start, w.nbytes) for w in recorded(device, matrix[:, 1])] == [(8 + 32 * i, 8) for i in range(6)]
    assert [(w.target - start, w.nbytes) for w in recorded(device, matrix[4:1:-2, 1:3])] == [(72, 16), (136, 16)]
    with pytest.raises(CaptureError, match="a host array, whose numbers form 300 separate pieces") as found:
        recorded(device, np.zeros((300, 2))[:, 0])
    assert "a contiguous NumPy array" in str(found.value)
