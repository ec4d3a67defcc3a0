"""Loaded graphs as one launch: the bits of separate launches, and the rule of live graphs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import saved_fusion
from backends import backends
from saved_cases import fields_and_methods, floats, half_step, saxpy

import quadpy as qp
from quadpy.errors import ArgumentError, GraphError
from quadpy.graph.saved.container import MANIFEST, unpacked
from quadpy.runtime.device.current import Config, set_config


def test_on_a_simulated_gpu():
    done = subprocess.run(
        [sys.executable, saved_fusion.__file__], capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"QUADPY_CACHE": "0", "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    checks = [*saved_fusion.FUSED_CASES, *saved_fusion.CHECKS, *saved_fusion.OF_DRIVERS]
    assert done.stdout.split() == [check.__name__ for check in checks]


@pytest.mark.parametrize("arch", backends())
@pytest.mark.parametrize("case", saved_fusion.FUSED_CASES, ids=lambda case: case.__name__)
def test_one_launch_does_what_several_do(case, arch, tmp_path):
    set_config(Config(arch=arch))
    saved_fusion.check_case(case, tmp_path)


@pytest.mark.parametrize("arch", backends())
@pytest.mark.parametrize("check", saved_fusion.CHECKS, ids=lambda check: check.__name__)
def test_uses_of_one_launch(check, arch, tmp_path):
    set_config(Config(arch=arch))
    check(tmp_path)


def test_what_gpus_need_imports_no_compiler():
    program = "import sys, quadpy.graph.saved.graph, quadpy.graph.saved.kernel, quadpy.graph.saved.one_launch, quadpy.jit.fusion.plan"
    names = "('llvmlite', 'quadpy.ir', 'quadpy.codegen', 'quadpy.mathlib', 'quadpy.jit.comp', 'quadpy.jit.plan_maker')"
    shown = f"print([name for name in sys.modules if name.startswith({names})])"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{shown}"], capture_output=True, text=True, check=True, timeout=100,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))},
    )  # fmt: skip
    assert done.stdout == "[]\n"


def manifest_of(path: Path):
    return json.loads(unpacked(path.read_bytes())[MANIFEST])


def test_what_is_stored(tmp_path):
    path, (g, bind) = tmp_path / "step.qpg", saved_fusion.moving(6)
    g.save(path, bind=bind, targets=["gfx1100", "sm_90", "x86-64"])
    manifest = manifest_of(path)
    fused, numbers = manifest["fused"], [kernel["name"] for kernel in manifest["kernels"]]
    named = [[numbers[code] if isinstance(code, int) else tuple(code) for code in level] for level in fused["levels"]]
    assert named == [
        [("fill", 4), ("fill", 1), ("fill", 4)], ["saxpy"], [("copy", 4)], ["count"], ["total"],
    ]  # fmt: skip
    assert set(fused["kernel"]["code"]) == {"gfx1100", "sm_90"}
    assert (fused["always"], fused["loops"], fused["why_not"]) == (False, False, {})
    assert len(fused["arguments"]) == len(fused["kernel"]["layout"]["values"])
    assert [code["depth"] for code in fused["kernel"]["code"].values()] == [7, 7]  # count has two loops, total a merge
    g.save(path, bind=bind, targets=["gfx1100"], fuse=False)
    assert manifest_of(path)["fused"] is None
    g.save(path, bind=bind, targets=["x86-64"])
    assert manifest_of(path)["fused"] is None


def test_why_not(tmp_path):
    path, x = tmp_path / "step.qpg", floats(1, 2)
    g, bind, memory = fields_and_methods()
    g.save(path, bind=bind, targets=["gfx942"], **memory)
    assert manifest_of(path)["fused"]["why_not"] == {"gfx942": "there is only one launch"}
    with pytest.raises(GraphError, match="cannot be one launch on gfx942: there is only one launch"):
        g.save(path, bind=bind, targets=["x86-64", "gfx942"], fuse=True, **memory)
    with pytest.raises(ArgumentError, match="fuse is 'always'"):
        g.save(path, bind=bind, fuse="always", **memory)
    many = qp.graph.Graph()
    for _ in range(40):
        many.add_kernel(saxpy, 0.5, x, x)
        many.add_kernel(half_step, x, x)
    many.save(path, bind={"x": x}, targets=["gfx942"])
    assert "tasks" in manifest_of(path)["fused"]["why_not"]["gfx942"]
