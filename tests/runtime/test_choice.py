"""``qp.init(arch=...)``: which device is taken, by name and number, and what is said where it is not there."""

from __future__ import annotations

import dataclasses

import pytest
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy import api
from quadpy.errors import NoDeviceError
from quadpy.runtime.device import devices, probe
from quadpy.runtime.device.current import current_config, set_config
from quadpy.settings import settings

COUNT = 2


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch):
    """A machine with two simulated CUDA devices and no other; every test finds and leaves it as it was."""

    def open_cuda(ordinal):
        if ordinal >= COUNT:
            raise NoDeviceError(f"there is no cuda device {ordinal}: this process sees {COUNT} devices, 0 to 1")
        driver = RecordingDriver()
        driver.name, driver.ordinal = "cuda", ordinal
        return driver

    def open_hip(_ordinal):
        raise NoDeviceError("HIP finds no device", hint="load the amdgpu module")

    before = current_config()
    monkeypatch.setattr(devices, "_DRIVERS", {**devices._DRIVERS, "cuda": open_cuda, "amdgpu": open_hip})
    monkeypatch.setattr(devices, "_open", {})
    yield
    for device in devices._open.values():
        device.close()
    set_config(before)


@pytest.mark.parametrize(
    ("asked", "ordinal"), [(qp.cuda, 0), ("cuda:0", 0), ("cuda:1", 1), (qp.gpu, 0), (("amdgpu:1", "cuda:1"), 1)]
)
def test_a_device_is_chosen_by_name_and_number(asked, ordinal):
    qp.init(arch=asked, enable_fallback=False)
    device = devices.current_device()
    assert (device.driver.name, device.driver.ordinal) == ("cuda", ordinal)
    assert qp.create_stream().device is device
    assert qp.ndarray(qp.f32, 4).device is device


def test_two_devices_are_open_at_once():
    qp.init(arch="cuda:0")
    first = qp.ndarray(qp.f32, 4)
    qp.init(arch="cuda:1")
    second = qp.ndarray(qp.f32, 4)
    assert first.device is not second.device
    assert {first.device.driver.ordinal, second.device.driver.ordinal} == {0, 1}


def test_a_number_out_of_range_says_how_many_devices_there_are():
    with pytest.raises(NoDeviceError, match=r"cuda:7: there is no cuda device 7: this process sees 2 devices"):
        qp.init(arch="cuda:7", enable_fallback=False)


ABSENT = ["cuda:7", "amdgpu:0", "amdgpu:1", ("cuda:7",), ("amdgpu:1", "cuda:7"), ("amdgpu", "cuda:7")]


@pytest.mark.parametrize("asked", ABSENT)
@pytest.mark.parametrize("by", ["argument", "environment"])
def test_a_numbered_device_that_is_absent_is_an_error(monkeypatch, asked, by):
    """The CPU does not stand for it; the error lists the devices that there are."""
    monkeypatch.setattr(probe, "probe_hip", lambda: probe.Probe("amdgpu", reason="no driver"))
    monkeypatch.setattr(probe, "probe_cuda", lambda: probe.Probe("cuda", devices=("H200", "H100")))
    qp.init(arch=qp.cpu, random_seed=5)
    before = current_config()
    arch = asked
    if by == "environment":
        if not isinstance(asked, str):
            pytest.skip("the variable names one backend")
        monkeypatch.setattr(api, "_settings", lambda: dataclasses.replace(settings(), arch=asked))
        arch = qp.cpu
    with pytest.raises(NoDeviceError) as raised:
        qp.init(arch=arch)
    assert "this process sees cuda:0 (H200), cuda:1 (H100), cpu" in raised.value.hint
    assert current_config() == before


def test_a_later_name_stands_for_a_numbered_device():
    qp.init(arch=("cuda:7", qp.cuda))
    assert devices.current_device().driver.ordinal == 0
    qp.init(arch=("cuda:7", qp.cpu))
    assert current_config().arch == "cpu"


def test_gpu_has_no_number(monkeypatch):
    monkeypatch.setattr(probe, "probe_hip", lambda: probe.Probe("amdgpu", devices=("MI300X",)))
    monkeypatch.setattr(probe, "probe_cuda", lambda: probe.Probe("cuda"))
    with pytest.raises(NoDeviceError, match="there is no backend 'gpu:1'") as raised:
        qp.init(arch="gpu:1")
    assert raised.value.hint.startswith("this process sees amdgpu:0 (MI300X), cpu")


def test_what_to_do_for_each_backend_is_said():
    with pytest.raises(NoDeviceError, match="HIP finds no device") as raised:
        qp.init(arch=qp.amdgpu, enable_fallback=False)
    assert raised.value.hint.startswith("load the amdgpu module; quadpy doctor")


@pytest.mark.parametrize("asked", ["cuda:", "cuda:x", "cuda:-1", "cuda:1:2", "amdgpu: 1"])
def test_a_number_that_is_none_is_an_error(asked):
    with pytest.raises(NoDeviceError, match="does not name a device"):
        qp.init(arch=asked)


@pytest.mark.parametrize("asked", ["vulkan", "cpu:1", "", "gpu:1"])
def test_an_unknown_backend_is_an_error(asked):
    with pytest.raises(NoDeviceError, match="there is no backend"):
        qp.init(arch=(asked,))


def test_every_reason_is_told_where_nothing_is_there(monkeypatch):
    monkeypatch.setitem(devices._DRIVERS, "cuda", devices._DRIVERS["amdgpu"])
    with pytest.warns(RuntimeWarning, match=r"no GPU: quadpy uses the CPU \(amdgpu: HIP finds .*; cuda: HIP finds"):
        qp.init(arch=qp.gpu)
