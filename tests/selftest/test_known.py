"""What is stored of a device: read, refused, and asked again in another world."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from simulated_gpu.driver import RecordingDriver

from quadpy import settings as settings_module
from quadpy.capabilities import measured, off
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.known import Known, Measured, known_in, known_of, off_on, store, world_of
from quadpy.settings import CAPABILITIES, Settings, SettingsError

MEASURED = Measured(*map(float, range(7)), *range(7, 11))


@pytest.fixture
def driver():
    return RecordingDriver()


def settings_again():
    settings_module.settings.cache_clear()


def test_nothing_is_known_before(driver):
    assert known_of(driver) is None
    assert off_on(driver) == {}
    with Device(driver) as device:
        assert measured(device) is None


def test_what_is_stored_is_known(driver):
    known = Known({"pool": "memory.pool failed"}, MEASURED)
    assert store(world_of(driver), known) == ""
    assert known_of(driver) == known
    with Device(driver, None, off_on(driver)) as device:
        assert measured(device) == MEASURED
        assert off(device) == {"pool": "memory.pool failed"}
        assert "pool" not in device.driver.features
        assert device.memory.allocator == "cache"


@pytest.mark.parametrize("part", ["quadpy", "chip", "library", "kernel driver"])
def test_another_world_asks_again(driver, part):
    world = world_of(driver)
    store(world, Known({"pool": "x"}, None))
    assert known_in({**world, part: "another"}) is None
    assert known_in(world) is not None


def test_a_store_that_is_damaged_counts_as_none(driver, tmp_path):
    store(world_of(driver), Known({"pool": "x"}, MEASURED))
    (file,) = (tmp_path / "cache/devices").glob("*.qpc")
    data = file.read_bytes()
    for damaged in (data[:-5], b"", bytes(len(data)), data[:40] + b"\xff" + data[41:]):
        file.write_bytes(damaged)
        assert known_of(driver) is None
        store(world_of(driver), Known({"pool": "x"}, MEASURED))
        assert known_of(driver) is not None


def test_an_answer_of_another_form_counts_as_none(driver, monkeypatch):
    monkeypatch.setattr("quadpy.runtime.device.known.json.dumps", lambda *_, **__: '{"world": 5}')
    store(world_of(driver), Known({}, None))
    assert known_of(driver) is None


@pytest.mark.parametrize("value", ["abc", None, float("nan"), 10**400, [1]])
def test_figures_that_are_no_numbers_count_as_none(driver, value):
    store(world_of(driver), Known({}, MEASURED._replace(fused_up_to=value)))
    assert known_of(driver) is None


def test_only_capabilities_are_off(driver):
    store(world_of(driver), Known({"language": "x", "pool": "y"}, None))
    assert known_of(driver) == Known({"pool": "y"}, None)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_named(driver, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o500)
    assert "cannot be written" in store(world_of(driver), Known({}, None))


def test_a_folder_that_is_a_file_is_named(driver, tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert "cannot be written" in store(world_of(driver), Known({}, None))
    assert known_of(driver) is None


def test_a_folder_that_others_may_write_is_not_read(driver, tmp_path):
    store(world_of(driver), Known({"pool": "x"}, None))
    (tmp_path / "cache/devices").chmod(0o777)
    assert known_of(driver) is None
    assert "other users may write to it" in store(world_of(driver), Known({}, None))


def test_without_a_cache_nothing_is_stored(driver, monkeypatch):
    monkeypatch.setenv("QUADPY_CACHE", "0")
    settings_again()
    assert "QUADPY_CACHE is 0" in store(world_of(driver), Known({}, None))
    assert known_of(driver) is None


def test_the_setting_overrides_what_is_stored(driver, monkeypatch):
    store(world_of(driver), Known({"pool": "x"}, None))
    monkeypatch.setenv("QUADPY_WITHOUT", "nothing")
    settings_again()
    assert off_on(driver) == {}
    monkeypatch.setenv("QUADPY_WITHOUT", "Graphs, cooperative")
    settings_again()
    assert set(off_on(driver)) == {"graphs", "cooperative"}


def test_a_capability_that_does_not_exist_is_refused():
    with pytest.raises(SettingsError, match="QUADPY_WITHOUT='grphs' is not nothing, or names out of graphs"):
        Settings.from_environ({"QUADPY_WITHOUT": "grphs"})


@pytest.mark.parametrize("name", CAPABILITIES)
def test_a_device_opens_without_each_capability(driver, name):
    before = world_of(driver)
    with Device(driver, None, {name: "a test"}) as device:
        assert device.create_stream().query()
        assert world_of(driver) == before  # what is stored for it is still found


STORING = """
import sys
sys.path[:0] = {path!r}
from simulated_gpu.driver import RecordingDriver
from quadpy.runtime.device.known import Known, known_in, store, world_of

world, own = world_of(RecordingDriver()), sys.argv[1]
for _ in range(100):
    assert store(world, Known({{"pool": own * 5000}}, None)) == ""
    found = known_in(world).off["pool"]
    assert found in ("a" * 5000, "b" * 5000), "parts of two answers"
"""


def test_processes_that_store_at_once_leave_one_whole_answer(driver):
    script = STORING.format(path=[path for path in sys.path if path])
    children = [subprocess.Popen([sys.executable, "-c", script, own]) for own in "ab"]
    assert [child.wait(60) for child in children] == [0, 0]
    assert set(known_of(driver).off["pool"]) in ({"a"}, {"b"})
