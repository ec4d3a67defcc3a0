"""Code from the cache depends on quadpy's own files: a checkout changes while its version stays the same."""

from __future__ import annotations

import re
from pathlib import Path

import quadpy as qp
from quadpy.jit.kernel_cache import FOLDERS

ROOT = Path(qp.__file__).parent


def test_the_keys_cover_every_function_of_quadpy_that_kernels_call():
    covered = {file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")} | {*ROOT.glob("*.py")}
    with_functions = {
        file
        for file in ROOT.rglob("*.py")
        if re.search(r"^\s*@(qp\.)?func\b", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert ROOT / "math/linalg/singular_values.py" in with_functions
    assert {file for file in with_functions - covered if "examples" not in file.parts} == set()
