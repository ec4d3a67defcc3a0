"""A kernel that faults, in a child process for each kind of GPU: what is raised then, and how the process ends."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import textwrap

import pytest

import quadpy as qp
from quadpy.errors import NoDeviceError
from quadpy.runtime.device.devices import open_device

CHILD = textwrap.dedent(
    """
    import json
    import sys

    import quadpy as qp
    from quadpy.errors import DriverError


    @qp.kernel
    def scatter(x: qp.types.ndarray(dtype=qp.i32, ndim=1), at: qp.i32):
        for i in range(64):
            if at != 1:  # without a condition, the call would be refused
                x[i + at] = i


    def error_of(call):
        try:
            call()
        except DriverError as error:
            root = error
            while root.__cause__ is not None:
                root = root.__cause__
            return {"message": error.message, "hint": error.hint, "name": error.name, "root": root.message}
        return None


    qp.init(arch=sys.argv[1], enable_fallback=False)
    x = qp.ndarray(qp.i32, shape=64)
    scatter(x, 0)
    qp.sync()
    stream = qp.create_stream()
    scatter(x, 0x1FFF0000)  # 2 GiB behind the array's end
    found = {"first": error_of(qp.sync)}
    for name, call in {
        "sync": qp.sync,
        "stream": qp.create_stream,
        "wait": stream.synchronize,
        "array": lambda: qp.ndarray(qp.i32, shape=1 << 20),
        "read": x.to_numpy,
        "launch": lambda: scatter(x, 0),
    }.items():
        found[name] = error_of(call)
    print(json.dumps(found))
    """
)


@pytest.fixture(params=qp.gpu)
def arch(request):
    try:
        open_device(request.param)
    except NoDeviceError as error:
        pytest.skip(f"{request.param}: {error.message}")
    return request.param


def _no_core_dumps():
    """HIP ends a process that faults where cores are dumped."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def test_after_a_fault_the_device_is_lost_and_the_process_ends_cleanly(arch, tmp_path):
    file = tmp_path / "fault.py"
    file.write_text(CHILD, encoding="utf-8")
    child = subprocess.run(
        [sys.executable, str(file), arch], capture_output=True, text=True, check=False, timeout=250,
        preexec_fn=_no_core_dumps,
    )  # fmt: skip
    if arch == "amdgpu" and child.returncode in (-signal.SIGABRT, -signal.SIGSEGV):
        pytest.skip("this HIP, or the emulator beneath it, ends the process at a fault")
    assert (child.returncode, child.stderr) == (0, "")
    found = json.loads(child.stdout)
    first = found.pop("first")
    assert "illegaladdress" in first["name"].lower().replace("_", "")
    assert "index out of bounds" in first["hint"]
    for name, later in found.items():
        assert later is not None, f"{name} went on"
        assert "is lost since an earlier fault" in later["message"], name
        assert later["root"] == first["message"], name
