"""Children that are forked while threads of the parent are at work: the CPU goes on there, a GPU is refused by name."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="this system has no fork")

PROGRAM = """
import os, sys, threading, time, warnings
import quadpy as qp
from quadpy.errors import DeviceError
from quadpy.runtime.device import devices
from simulated_gpu.driver import RecordingDriver

warnings.simplefilter("ignore", DeprecationWarning)  # of forking a process with threads
devices._DRIVERS["recording"] = lambda ordinal: RecordingDriver(history=False)
F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)

@qp.kernel
def put(a: qp.f32, x: F32):
    for i in x:
        x[i] = a

@qp.kernel
def draw(x: F32):
    for i in x:
        x[i] = qp.random(qp.f32)

def fresh(number):
    @qp.kernel
    def put_number(x: F32):
        for i in x:
            x[i] = number
    return put_number

gpu = devices.open_device("recording")
kept = gpu.create_stream()
qp.init(arch=qp.cpu, cpu_max_num_threads=2)
put(1.0, qp.ndarray(qp.f32, 100000))
draw(qp.ndarray(qp.f32, 10))
stop = False

def launches():
    x = qp.ndarray(qp.f32, 100000)
    while not stop:
        put(2.0, x)

def draws():
    x = qp.ndarray(qp.f32, 10)
    while not stop:
        draw(x)

def compiles():
    number = 0
    while not stop:
        number += 1
        fresh(number)(qp.ndarray(qp.f32, 10))

def streams():
    while not stop:
        with gpu.create_stream() as stream, gpu.create_event() as event:
            event.record(stream)
            gpu.allocate(64, stream)
        device = devices.current_device()
        device.streams.free_async(device.streams.malloc_async(64, 0), 0)
        with qp.graph.capture():
            pass

def child():
    x = qp.ndarray(qp.f32, 100000)
    put(3.0, x)
    assert x.to_numpy()[5] == 3
    draw(x)
    fresh(-1.0)(x)
    assert x.to_numpy()[7] == -1
    manager = devices.current_device().streams
    manager.free_async(manager.malloc_async(64, 0), 0)
    with qp.graph.capture() as graph:
        put(4.0, x)
    graph.instantiate().launch()
    assert x.to_numpy()[5] == 4
    for use in (gpu.create_stream, gpu.create_event, gpu.synchronize, kept.synchronize, lambda: gpu.allocate(8, kept)):
        try:
            use()
        except DeviceError as error:
            assert "forked" in str(error)
        else:
            raise AssertionError(use)
    kept.destroy()
    gpu.close()

threads = [threading.Thread(target=work, daemon=True) for work in WORKS]
for thread in threads:
    thread.start()
for turn in range(TURNS):
    time.sleep(0.003 * turn)
    pid = os.fork()
    if not pid:
        import faulthandler
        faulthandler.dump_traceback_later(60, exit=True)
        try:
            child()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
stop = True
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("works", ["launches, draws", "compiles, compiles", "streams, streams, launches"])
def test_a_child_works_whatever_the_parent_s_threads_were_at(works, tmp_path):
    program = tmp_path / "program.py"  # a kernel needs its source
    program.write_text(PROGRAM.replace("WORKS", f"({works})").replace("TURNS", "4"), encoding="utf-8")
    child = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=False, timeout=240,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (child.returncode, child.stderr) == (0, "")


IMPORTS = """
import os, sys, threading, time
import quadpy
from quadpy.core.importing import import_late

assert "logging" not in sys.modules
import_late("hashlib")
BEFORE
threading.Thread(target=import_late, args=["slow"], daemon=True).start()
while "slow" not in sys.modules or not hasattr(sys.modules["slow"], "begun"):
    time.sleep(0.001)
pid = os.fork()
if not pid:
    os._exit(import_late("slow").ended - 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""

SLOW = """
import time
import LIBRARY
begun = True
time.sleep(0.2)  # the fork waits from here on
USE
ended = True
"""


@pytest.mark.parametrize(
    ("before", "library", "use"),
    [
        ("", "logging", "logging.getLogger('a')"),
        ("import logging", "logging", "logging.getLogger('a')"),
        ("", "quadpy.runtime.cpu.orc", "quadpy.runtime.cpu.orc.llvm.get_process_triple()"),
        ("import quadpy.runtime.cpu.orc", "llvmlite.binding", "llvmlite.binding.get_process_triple()"),
    ],
)
def test_a_fork_waits_for_an_import_that_takes_other_locks_of_forks(before, library, use, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW.replace("LIBRARY", library).replace("USE", use), encoding="utf-8")
    child = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", IMPORTS.replace("BEFORE", before)],
        capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )  # fmt: skip
    assert (child.returncode, child.stderr) == (0, "")
