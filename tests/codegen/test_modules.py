"""Modules and contexts of LLVM end in the order that LLVM needs, whatever keeps an interrupted compilation alive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import quadpy

KEPT = """
import gc
import llvmlite.binding as llvm
from quadpy.codegen import emit, host
from quadpy.core.target import parse_target
from quadpy.errors import CodegenError

def interrupted(*_):
    raise KeyboardInterrupt

spec = parse_target({target!r})
EMPTY = "define void @f() {{ ret void }}"
FLAWED = "define void @f() {{ %x = add i32 %x, 1 ret void }}"

def compiled(text):
    if spec.family == "cpu":
        host.compile_host(host.host_header() + text)
    elif spec.family == "amdgpu":
        emit.compile_amdgpu(emit.gpu_header(spec) + text, spec)
    else:
        emit.compile_nvptx(emit.gpu_header(spec) + text, spec)

class Kept:
    pass

def keep(text):
    kept = Kept()
    kept.itself = kept
    try:
        compiled(text)
    except (KeyboardInterrupt, CodegenError) as error:
        kept.error = error
        return
    raise SystemExit("it compiled")

for _ in range(10):
    keep(FLAWED)
    gc.collect()
{patch} = interrupted
for _ in range(10):
    keep(EMPTY)
    gc.collect()
print("fine")
"""


@pytest.mark.parametrize(
    "patch", ["llvm.create_pass_builder", "llvm.TargetMachine.emit_object", "llvm.ModuleRef.verify"]
)
@pytest.mark.parametrize("target", ["cpu", "gfx942", "sm_80"])
def test_an_exception_that_a_cycle_keeps_does_not_end_the_process(target, patch):
    if target == "sm_80":
        patch = patch.replace("emit_object", "emit_assembly")
    code = KEPT.format(target=target, patch=patch)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120,
        cwd=Path(quadpy.__path__[0]).parent,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
