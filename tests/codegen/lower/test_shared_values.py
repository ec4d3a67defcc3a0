"""Floats that all threads share, cast to integers on AMD GPUs: LLVM must be able to select what the lowering writes."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import quadpy as qp
from quadpy.jit.offline import compile_with_asm
from quadpy.core.target import AMD_ARCHS, parse_target

@qp.kernel
def k(y: qp.types.ndarray(dtype=qp.i32, ndim=1), a: qp.f32, b: qp.f64):
    n = qp.i32(a * a)
    for i in range(40):
        y[i] = n + qp.u8(a * a) + qp.i32(b * b) + qp.i32(b) + qp.i16(qp.f16(a))

for arch in AMD_ARCHS:
    assert "v_cvt_i32_f64" in compile_with_asm(k, parse_target(arch), {}).asm, arch
print("compiled")
"""


def test_casts_of_what_all_threads_share_compile_for_every_target(tmp_path):
    """In a child: where LLVM cannot select an instruction, it ends the process."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    child = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert (child.stdout, child.returncode) == ("compiled\n", 0), child.stderr
