"""Adding a function of the language: one row, and its library function."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import quadpy as qp

ROW = """        Row("sinh2", "x", "Hyperbolic sine, squared.", Library("hyperbolic"), _FLOATS),
        Row("sinh", """
FUNCTION = """

@library(ulp=4.0)
def sinh2(x: Float) -> Float:
    \"\"\"The square of the hyperbolic sine of ``x``.\"\"\"
    root = sinh(x)
    return root * root
"""
USE = """
import numpy as np
import quadpy as qp
from quadpy.jit.offline import compile_for
from quadpy.mathlib.registry import lookup
from quadpy.target import parse_target

F = qp.types.ndarray(dtype=qp.f32, ndim=1)

@qp.kernel
def square(x: F):
    for i in x:
        x[i] = qp.sinh2(x[i])

x = np.linspace(-2, 2, 9, dtype=np.float32)
expected = np.sinh(x.astype(np.float64)) ** 2
square(x)
assert np.allclose(x, expected, rtol=1e-6), x
assert all(compile_for(square, parse_target(name), {}).image for name in ("gfx942", "sm_90"))
assert "sinh2" in qp.__all__ and "sinh2(x)" in qp.sinh2.__doc__
assert lookup("sinh2", (qp.f64,)) is not None
"""


def test_a_function_is_one_row_and_its_library_function(tmp_path):
    root = tmp_path / "quadpy"
    shutil.copytree(Path(qp.__file__).parent, root, ignore=shutil.ignore_patterns("__pycache__"))
    rows, home = root / "intrinsics/math.py", root / "mathlib/hyperbolic.py"
    text = rows.read_text(encoding="utf-8")
    assert text.count('        Row("sinh", ') == 1
    rows.write_text(text.replace('        Row("sinh", ', ROW), encoding="utf-8")
    home.write_text(home.read_text(encoding="utf-8") + FUNCTION, encoding="utf-8")
    script = tmp_path / "use.py"
    script.write_text(USE, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
