"""The compiler is imported by the first call whose code is not in the cache."""

from __future__ import annotations

import subprocess
import sys

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


def test_a_process_that_finds_its_code_does_not_import_the_compiler(tmp_path):
    assert ran(tmp_path, CALLED) == f"{list(COMPILER)}\n"
    assert ran(tmp_path, CALLED) == "[]\n"


def test_a_call_works_after_its_import_of_the_compiler_was_interrupted_anywhere(tmp_path):
    assert ran(tmp_path, INTERRUPTED) == "True\n"
