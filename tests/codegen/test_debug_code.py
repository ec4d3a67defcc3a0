"""Code with checks: it exists for every target, and code without them is what it was."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.compile import lower
from quadpy.core.target import AMD_ARCHS, parse_target
from quadpy.ir.printer import print_ir
from quadpy.jit.offline import trace_for

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
FLAG = qp.types.ndarray(qp.i32, 0)


def scatter(x: I32, y: F32, k: qp.i32):
    n = x[k] // k
    for i in x:
        assert x[i] >= n, f"{x[i]} below {n}"
        for j in range(n):
            y[x[i] + j] += qp.f32(x[i] << j) + y[-x[i]]


def waves(x: F32, y: F32):
    qp.loop_config(block_dim=64)
    for i in range(1024):
        pad = qp.simt.block.SharedArray((64,), qp.f32)
        pad[i % 64] = x[i + 1]
        qp.simt.block.sync()
        y[i] = pad[63 - i % 64] + qp.simt.subgroup.reduce_add(x[i])


def repeated(x: I32, y: I32, go: FLAG):
    while qp.graph.do_while(go):
        for i in x:
            y[i] = x[i + 1] * 2
        for _ in range(1):
            go[None] = go[None] - 1


CHECKED = [qp.kernel(debug=True)(scatter), qp.kernel(debug=True)(waves), qp.kernel(graph=True, debug=True)(repeated)]


@pytest.mark.parametrize(
    "target", [*(f"{a.name}:w{w}" for a in AMD_ARCHS.values() for w in a.wave_sizes), "sm_70", "sm_90", "cpu"]
)
def test_checks_compile_for_every_target(target):
    for kernel in CHECKED:
        code = kernel.compile(target)
        assert code.image
        assert {hidden.name for hidden in code.hidden} >= {"fault", "sites"}
        assert code.sites


def test_a_failed_check_claims_the_record_with_one_atomic_instruction():
    kernel = trace_for(CHECKED[0], {}).kernel
    text = lower(kernel, parse_target("gfx942"))
    lines = [line.strip() for line in print_ir(kernel).splitlines()]
    shadow = sum("atomic cas $shadow" in line for line in lines)
    assert text.count("cmpxchg") == shadow + sum(line.startswith("fault ") for line in lines)
    assert "ptr addrspace(1)" in next(line for line in text.splitlines() if "cmpxchg" in line)


def test_every_check_is_told_by_the_ir_and_by_the_code():
    kernel = trace_for(CHECKED[0], {}).kernel
    assert [site.error for site in kernel.sites].count("KernelAssertionError") == 1
    shown = print_ir(kernel)
    assert all(f"check {number}: {site}" in shown for number, site in enumerate(kernel.sites))
    assert CHECKED[0].compile("gfx942").sites == kernel.sites


@pytest.mark.parametrize("target", ["cpu", "gfx942", "sm_90"])
def test_code_without_checks_has_no_trace_of_them(target):
    plain, declined = qp.kernel(scatter), qp.kernel(debug=False)(scatter)
    code = plain.compile(target)
    assert code.sites == ()
    assert not {hidden.name for hidden in code.hidden} & {"fault", "sites"}
    assert declined.compile(target).image == code.image
    text = print_ir(trace_for(plain, {}, parse_target(target)).kernel)
    assert "fault" not in text
    assert "labelled $stop" not in text


def test_an_assertion_that_is_not_checked_leaves_nothing_in_the_code():
    def run(x: I32, y: I32):
        for i in x:
            y[i] = x[i]

    def asserting(x: I32, y: I32):
        for i in x:
            assert x[i] > 0, f"{x[i]}"
            y[i] = x[i]

    asserting.__name__ = asserting.__qualname__ = "run"
    first, second = (print_ir(trace_for(qp.kernel(fn), {}).kernel) for fn in (run, asserting))
    assert first == second.replace("%x.1", "%x")


def test_checks_that_cannot_fail_are_left_out():
    @qp.kernel(debug=True)
    def stencil(x: F32, field: qp.template(), other: qp.template()):
        for i in x:
            x[i] += 1.0
        qp.loop_config(serialize=True)
        for i in range(1, x.shape[0] - 1):
            x[i] = x[i - 1] + x[i + 1] + x[i]
        for i, j in field:
            other[i, j] = field[(i + 1) % 8, j // 2]
        for i in range(8):
            n = i * 4 + 3
            other[i, n // 5 + (i & 3) % 2] = qp.f32(n % 7)

    given = {name: qp.field(qp.f32, shape=(8, 8)) for name in ("field", "other")}
    sites = trace_for(stencil, given).kernel.sites
    assert sites == ()


PROGRAM = """
import sys
import numpy as np, quadpy as qp
qp.init(arch=qp.cpu, debug=sys.argv[1] == "debug", cpu_max_num_threads=1)

@qp.kernel
def shift(x: qp.types.ndarray(qp.i32, 1), y: qp.types.ndarray(qp.i32, 1), k: qp.i32):
    for i in range(2):
        y[i] = x[i + k]

x = np.arange(4, dtype=np.int32)
shift(x, x.copy(), 1)
if sys.argv[1] == "debug":
    try:
        shift(x, x.copy(), 3)
    except IndexError as fault:
        print(fault)
"""


def test_the_cache_keeps_code_with_checks_apart_and_with_its_messages(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")

    def run(mode):
        environment = {"QUADPY_CACHE_DIR": str(tmp_path / "cache"), "PATH": "", "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run(
            [sys.executable, str(program), mode], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    cold = run("debug")
    assert "x[4] is out of range: index 4 of axis 0, which has extent 4" in cold
    assert "y[i] = x[i + k]" in cold
    assert "out of range" not in run("plain")
    assert run("debug") == cold  # from the cache, without a trace


def test_graphs_on_the_cpu_raise_at_the_launch():
    @qp.kernel(debug=True)
    def at(x: I32, k: qp.i32):
        x[k] = 1

    qp.init(arch=qp.cpu)
    x = qp.ndarray(qp.i32, 4)
    with qp.graph.capture() as captured:
        at(x, 9)
    run = captured.instantiate()
    with pytest.raises(IndexError, match=r"x\[9\] is out of range"):
        run.launch()


def test_a_graph_kernel_whose_checks_fail_ends():
    qp.init(arch=qp.cpu)
    x, y, go = np.ones(4, np.int32), np.ones(4, np.int32), np.array(3, np.int32)
    with pytest.raises(IndexError, match=r"x\[4\] is out of range"):
        CHECKED[2](x, y, go)
