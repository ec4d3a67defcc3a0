"""The compiler is imported by the first call whose code is not in the cache."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"

PROGRAM = """
import sys
import numpy as np
import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def add(x: F32, by: qp.f32):
    for i in x:
        x[i] += by


qp.init(arch=qp.cpu, offline_cache_file_path=sys.argv[1])
x = np.zeros(4, np.float32)
"""

COMPILER = (
    "quadpy.jit.compiler",
    "quadpy.lang.trace",
    "quadpy.codegen.lower",
    "quadpy.codegen.targets",
    "quadpy.ir.nodes",
)

CALLED = f"""
add(x, 2.0)
assert x.tolist() == [2.0] * 4
print([name for name in {COMPILER} if name in sys.modules])
"""

SIMULATED = f"""
sys.path.insert(0, {str(SUPPORT)!r})
from simulated_gpu.driver import RecordedKernel, RecordingDriver
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, set_config
from quadpy.runtime.device.device import Device


class DoNothing(dict):
    def __contains__(self, name):
        return True

    def __missing__(self, name):
        return RecordedKernel(lambda _: None)


driver = RecordingDriver()
driver.kernels = DoNothing()
devices._open["recording", 0] = Device(driver)
set_config(Config(arch="recording"))
a = qp.ndarray(qp.f32, 4)
add(a, 2.0)
with qp.graph.capture() as graph:
    add(a, 2.0)
qp.sync()
print([name for name in {COMPILER} if name in sys.modules])
"""

INTERRUPTED = """
class Interrupting:
    '''Each module of quadpy is interrupted when it is first looked for, and with it those that import it.'''

    seen = set()

    def find_spec(self, name, path=None, target=None):
        if name.startswith("quadpy") and name not in self.seen:
            self.seen.add(name)
            raise KeyboardInterrupt


sys.meta_path.insert(0, Interrupting())
interrupts = 0
while True:
    try:
        add(x, 2.0)
        break
    except KeyboardInterrupt:
        interrupts += 1
assert x.tolist() == [2.0] * 4
assert interrupts == len(Interrupting.seen)
print(interrupts > 100)
"""


def ran(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + text, encoding="utf-8")
    command = [sys.executable, str(path), str(tmp_path / "cache")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("text", [CALLED, SIMULATED], ids=["cpu", "gpu"])
def test_a_process_that_finds_its_code_does_not_import_the_compiler(tmp_path, text):
    assert ran(tmp_path, text) == f"{list(COMPILER)}\n"
    assert ran(tmp_path, text) == "[]\n"


def test_a_call_works_after_its_import_of_the_compiler_was_interrupted_anywhere(tmp_path):
    assert ran(tmp_path, INTERRUPTED) == "True\n"
