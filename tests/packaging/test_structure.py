"""How large modules and functions are, and what the page on the structure shows."""

from __future__ import annotations

import ast
import fnmatch
import re
import statistics
import subprocess
import sys

import pytest

from tools.code_lines import code_lines
from tools.docs import DOCS, ROOT, structure

SMALL = {
    "names that users or library functions import, with stubs beside them": {
        "compat._types", "intrinsics.atomics", "intrinsics.numbers", "intrinsics.top", "math.types", "mathlib.ops",
        "simt.block", "simt.grid", "simt.subgroup", "simt.warp",
    },
    "leaves that `import quadpy` loads without what they belong to": {
        "core.narrow", "core.other_project", "jit.misfits", "lang.members_found", "runtime.memory.accounting",
    },
    "one door to an optional library": {"tools.libraries"},
    "loaded in notebooks only": {"jit.rich"},
    "what several modules share that must not import each other": {
        "codegen.lower.reductions", "examples._descent", "jit.options", "lang.hidden", "runtime.drivers.vendor_calls",
    },
    "one subject, which stands alone": {
        "algorithms.kernels.random_keys", "compat._patterns", "codegen.plans.loads", "dist.grid", "hazards.races",
        "ir.passes.unscaled_roots", "lang.graph_blocks", "lang.parsing", "runtime.device.synchronous",
    },
    "all nodes under one name": {"ir.nodes"},
    "of Python's packaging": {"__main__", "_version", "compat.quadrants.__main__", "compat.taichi.__main__"},
}  # fmt: skip
"""Modules of fewer than 30 lines that are not the face of a package, by the reason."""


def sizes_of() -> dict[str, int]:
    return {name: file.read_text(encoding="utf-8").count("\n") for name, file in structure.modules().items()}


def test_modules_are_of_a_size_that_can_be_read():
    sizes, files = sizes_of(), structure.modules()
    assert [name for name, lines in sizes.items() if lines > 400] == []
    assert 100 <= statistics.median(lines for lines in sizes.values() if lines) <= 150
    small = {name for name, lines in sizes.items() if lines < 30 and files[name].name != "__init__.py"}
    reasons = set().union(*SMALL.values())
    assert small - reasons == set(), "give the reason, or let the module be a part of another"
    assert reasons - files.keys() == set()


def test_99_of_100_functions_need_no_scrolling():
    lengths = sorted(lines for lines, _ in structure.function_lengths())
    assert len(lengths) > 5000
    assert structure.percentile(lengths, 99) <= 35
    assert [name for lines, name in structure.function_lengths() if lines > 100] == []


def test_the_drawing_shows_the_imports():
    assert structure.DRAWING.read_text(encoding="utf-8") == structure.drawing(), "run python -m tools.docs.structure"


def test_an_import_changes_the_drawing(monkeypatch):
    graph = structure.imports()
    monkeypatch.setattr(structure, "imports", lambda: {**graph, "simt.block": graph["simt.block"] | {"jit.kernel"}})
    assert structure.drawing() != structure.DRAWING.read_text(encoding="utf-8")


def test_lines_of_code_leave_out_what_is_for_readers():
    text = '"""One."""\n\nx = 1  # two\n# three\n\n\ndef f():\n    """Four.\n\n    Five."""\n    return (\n        x\n    )\n'
    assert code_lines(text) == 5


def test_more_lines_than_the_ceiling_fail(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "top.py").write_text('"""Text."""\n\nx = 1\n')
    (tmp_path / "part/inner.py").write_text("x = (\n    1\n)  # one\n")

    def count(most):
        command = [sys.executable, ROOT / "tools/code_lines.py", tmp_path, "--at-most", most]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.split(), done.stderr

    assert count("4") == (0, ["3", "part", "1", ".", "4", "together"], "")
    assert count("3") == (1, ["3", "part", "1", ".", "4", "together"], f"{tmp_path} may have at most 3 lines of code\n")


def test_every_folder_with_tests_is_collected(pytestconfig):
    """pytest passes over folders of some names, such as ``dist``, unless its configuration says otherwise."""
    folders = {part for file in (ROOT / "tests").rglob("test_*.py") for part in file.relative_to(ROOT).parts[:-1]}
    assert {"tests", "dist", "transport"} <= folders
    for pattern in pytestconfig.getini("norecursedirs"):
        assert fnmatch.filter(folders, pattern) == []


def test_only_the_decision_raises_the_ceiling():
    decided = re.search(
        r"^\*\*([\d,]+) lines\.\*\*$", (DOCS / "adr/0042-lines-of-code-have-a-ceiling.md").read_text(), re.MULTILINE
    )
    held = re.search(
        r"^step python tools/code_lines.py quadpy --at-most (\d+)", (ROOT / ".ci/run").read_text(), re.MULTILINE
    )
    assert int(held[1]) <= int(decided[1].replace(",", ""))


SEAMS = {
    "codegen": set(),
    "graph/engines": {"lowering.py"},  # the end of any owned thing
    "jit/plan.py": set(),
    "jit/hidden_arguments.py": set(),
    "runtime/launch": {"capturing.py", "observers.py"},  # a prepared call is described above; passes on what it is told
    "runtime/drivers/driver.py": set(),
    "runtime/drivers/graph_driver.py": set(),
}
"""Where the compiler, plans and the runtime meet, with the modules that may say ``Any``."""


@pytest.mark.parametrize("seam", SEAMS)
def test_seams_have_types(seam):
    place = structure.PACKAGE / seam
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    named = {
        file.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id == "Any"
    }
    assert named - SEAMS[seam] == set()
