"""The two bindings of HIP, hip-python and the ctypes table, over one library: they call it alike, and report alike."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hip_library import put

from quadpy.runtime.drivers import hip_api
from quadpy.runtime.drivers.gpu_api import CALLS
from quadpy.runtime.drivers.hip_ctypes import _CONSTANTS, _STATUSES, RECORDS, SIGNATURES, HipByCtypes

SESSION = Path(__file__).with_name("hip_session.py")
WAYS = ("native", "binding")


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """``session(binding, way)``: what a child process printed."""
    file = put(tmp_path_factory.mktemp("rocm"))

    @functools.cache
    def run(binding, way):
        if binding == "hip-python" and importlib.util.find_spec("hip") is None:
            pytest.skip("hip-python is not installed")
        command = [sys.executable, str(SESSION), str(file), binding, way]
        child = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        assert child.returncode == 0, child.stderr
        return json.loads(child.stdout)

    return run


@pytest.mark.parametrize("way", WAYS)
def test_each_child_uses_the_binding_that_it_is_told_to(session, way):
    assert session("ctypes", way)["binding"] == "ctypes"
    assert session("hip-python", way)["binding"].startswith("hip-python ")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", ["streams_and_events", "memory", "launches", "graphs"])
def test_the_library_sees_the_same_calls(session, part, way):
    logs = session("ctypes", way)["logs"][part]
    assert len(logs) > 6
    assert logs == session("hip-python", way)["logs"][part]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", ["info", "features", "values", "probe"])
def test_the_same_values_come_back(session, what, way):
    assert session("ctypes", way)[what] == session("hip-python", way)[what]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", ["streams_and_events", "memory", "launches", "graphs"])
def test_each_failing_call_raises_the_same_error(session, part, way):
    errors = session("ctypes", way)["errors"][part]
    assert sum(1 for _, _, kind, _ in errors if kind) > 50
    assert errors == session("hip-python", way)["errors"][part]


def test_copies_and_fills_reach_memory(session):
    assert "AAAA01234567" in session("ctypes", "native")["values"]


def test_rocm_6_and_a_machine_without_devices_are_refused(session):
    old, none = (session("ctypes", "native")["probe"][key][0] for key in ("60443482, 1", "70253211, 0"))
    assert "HIP 60443482 is too old: quadpy needs 7.0 or newer" in old
    assert "HIP finds no device: hipErrorNoDevice" in none


def test_the_table_has_every_name_that_the_runtime_uses():
    hip = HipByCtypes(ctypes.CDLL(None))
    files = [file for file in Path(hip_api.__file__).parent.glob("hip_*.py") if file.name != "hip_ctypes.py"]
    used = {name for file in files for name in re.findall(r"\b_?hip\.(hip\w+)", file.read_text(encoding="utf-8"))}
    assert len(used) > 50
    assert [name for name in used if not hasattr(hip, name)] == []
    assert {name for name, _ in CALLS.values()} <= SIGNATURES.keys()


def test_a_call_that_the_library_lacks_raises_when_it_is_made():
    hip = HipByCtypes(ctypes.CDLL(None))
    assert not hip.has_symbol("hipMalloc")
    with pytest.raises(RuntimeError, match="the HIP library has no hipMalloc"):
        hip.hipMalloc(8)


@pytest.fixture
def hip():
    return pytest.importorskip("hip", reason="hip-python is not installed").hip


def scalars(record, start=0):
    """The path, place and type of each number in a structure."""
    for name, kind, *_ in record._fields_:
        at = start + getattr(record, name).offset
        if hasattr(kind, "_fields_"):
            yield from ((f"{name}.{path}", *more) for path, *more in scalars(kind, at))
        elif not hasattr(kind, "_length_"):
            yield name, at, kind


@pytest.mark.parametrize("name", RECORDS)
def test_layouts_are_those_of_hip_python(hip, name):
    """Its structures come from HIP's headers: what is written to a field there is read from the same bytes here."""
    theirs, record = getattr(hip, name)(), RECORDS[name]
    assert ctypes.sizeof(record) == theirs.c_sizeof()
    address = theirs.as_c_void_p().value
    for number, (path, at, kind) in enumerate(scalars(record), 3):
        *outer, field = path.split(".")
        owner = functools.reduce(getattr, outer, theirs)
        try:
            setattr(owner, field, number)
        except (TypeError, AttributeError, ValueError):  # an enumeration, or a pointer to a structure
            continue
        assert kind.from_address(address + at).value == number, path


def test_names_of_devices_are_where_hip_python_has_them(hip):
    ours = RECORDS["hipDeviceProp_t"]()
    ours.name, ours.gcnArchName = b"a device", b"gfx942:xnack-"
    theirs = hip.hipDeviceProp_t.fromObj(ctypes.addressof(ours))
    assert (theirs.name, theirs.gcnArchName) == ("a device", "gfx942:xnack-")


@pytest.mark.parametrize(
    ("kind", "member", "number"), [(k, m, n) for k, ms in _CONSTANTS.items() for m, n in ms.items()]
)
def test_constants_are_those_of_hip_python(hip, kind, member, number):
    assert int(getattr(hip, kind)[member]) == number


@pytest.mark.parametrize("name", _STATUSES)
def test_statuses_are_those_of_hip_python(hip, name):
    assert int(hip.hipError_t[name]) == _STATUSES[name]
