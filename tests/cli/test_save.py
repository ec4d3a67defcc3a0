"""``quadpy save`` writes files, and ``quadpy inspect`` shows what is in them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import quadpy as qp
from quadpy.cli import main
from quadpy.runtime.device.current import current_config, set_config

PROGRAM = """
import quadpy as qp

A = qp.types.ndarray(dtype=qp.f32, ndim=1)

@qp.kernel
def saxpy(a: qp.f32, x: A, y: A):
    for i in x:
        y[i] = a * x[i] + y[i]

State = qp.types.struct(scale=qp.f64, by=qp.types.vector(3, qp.f32))

@qp.kernel
def typed(state: State, turn: qp.types.matrix(2, 2, qp.f32), n: qp.i32, x: A) -> qp.f32:
    total = 0.0
    for i in x:
        total += x[i] * state.by[1] + turn[0, 1]
    return total + n

@qp.kernel
def open_type(x: qp.types.ndarray()):
    for i in x:
        x[i] += 1

def step():
    print("building")
    x, y = qp.ndarray(qp.f32, 4), qp.ndarray(qp.f32, 4)
    g = qp.graph.Graph()
    g.add_kernel(saxpy, 2.0, x, y)
    g.add_memset(x, 1.0)
    return g, {"bind": {"x": x, "y": y}}

@qp.kernel
def ratio(x: A, y: A):
    for i in x:
        x[i] = x[i] / y[i] - y[i] / 3.0

def ratios():
    x, y = qp.ndarray(qp.f32, 4), qp.ndarray(qp.f32, 4)
    g = qp.graph.Graph()
    g.add_kernel(ratio, x, y)
    return g, {"bind": {"x": x, "y": y}}

def misspelt():
    graph, options = step()
    return graph, {"bound": options["bind"]}

def nothing():
    return 3

def broken():
    raise ValueError("why")
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    before = current_config()
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAM, encoding="utf-8")
    yield "program.py"
    set_config(before)


def test_a_graph_for_many_targets_and_what_is_in_it(program, capsys):
    targets = "gfx90a,gfx942,gfx950,gfx1100,gfx1201,sm_80,sm_90,x86-64,arm64"
    assert main(["save", f"{program}:step", "--target", targets, "-o", "one.qpg"]) == 0
    assert capsys.readouterr().out == f"one.qpg  {Path('one.qpg').stat().st_size} bytes\n"
    assert main(["inspect", "one.qpg", "--svg", "one.svg"]) == 0
    shown = capsys.readouterr().out
    assert "one.qpg: a graph in format 1, saved by quadpy" in shown
    assert "  x: f32[any] bound, rw\n  y: f32[any] bound, rw\n" in shown
    assert "graph of 2 nodes\n  saxpy: kernel (saxpy)\n  memset: memset after saxpy\n" in shown
    for target in targets.replace("x86-64", "cpu:x86-64").replace("arm64", "cpu:arm64").split(","):
        assert f"\n{target}: {'1 image' if 'cpu' in target else '2 images'}, " in shown
    assert shown.count("VGPRs") == 10
    assert shown.count("; its blocks meet 1 time, in place of 2 launches\n") == 7
    assert "saxpy" in Path("one.svg").read_text(encoding="utf-8")
    with qp.graph.load("one.qpg") as loaded:
        x, y = np.ones(3, np.float32), np.ones(3, np.float32)
        loaded.run(x=x, y=y)
        assert y.tolist() == [3.0] * 3


def test_kernels(program, capsys):
    assert main(["save", f"{program}:saxpy", "--target", "x86-64,gfx942"]) == 0
    assert main(["save", f"{program}:open_type", "--arg", "x=i32[1]", "--target", "x86-64"]) == 0
    assert main(["save", f"{program}:saxpy", "--target", "gfx942,gfx1100", "-o", "saxpy.hipfb"]) == 0
    assert main(["inspect", "open_type.qpk"]) == 0
    assert "a kernel in format 1" in capsys.readouterr().out
    x = np.zeros(2, np.int32)
    qp.load_kernel("open_type.qpk")(x)
    assert x.tolist() == [1, 1]
    assert Path("saxpy.hipfb").read_bytes().startswith(b"__CLANG_OFFLOAD_BUNDLE__")


def test_parameters_of_a_kernel_are_listed(program, capsys):
    assert main(["save", f"{program}:typed", "--target", "x86-64,gfx942"]) == 0
    capsys.readouterr()
    assert main(["inspect", "typed.qpk"]) == 0
    head, parameters, *lines = capsys.readouterr().out.splitlines()
    assert (head.startswith("typed.qpk: a kernel in format 1"), parameters) == (True, "parameters")
    assert lines[:5] == [
        "  state: struct(scale: f64, by: f32x3)", "  turn: f32x2x2", "  n: i32", "  x: f32[any] bound, r", "  returns f32",
    ]  # fmt: skip
    assert lines[5].startswith("cpu:x86-64: 1 image, ")
    assert any(re.search(r"typed: .* VGPRs", line) for line in lines)


def test_a_graph_is_compiled_with_fast_math(program):
    assert main(["save", "program.py:ratios", "--target", "x86-64", "-o", "exact.qpg"]) == 0
    assert main(["save", "program.py:ratios", "--target", "x86-64", "-o", "fast.qpg", "--fast-math"]) == 0
    assert Path("exact.qpg").read_bytes() != Path("fast.qpg").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["save", "program.py:misspelt", "--target", "gfx942"], "'bound', which Graph.save does not take"),
        (["save", "program.py:step", "--target", "gfx942", "--arg", "n=3"], "--arg: program.py:step is no kernel"),
        (["save", "program.py:saxpy", "--target", "gfx942", "--debug"], "a saved file has no checks"),
        (["save", "program.py:nothing", "--target", "gfx942"], "returns int, not a graph and a dict"),
        (["save", "program.py:broken", "--target", "gfx942"], "cannot be run: ValueError: why"),
        (["save", "program.py:none", "--target", "gfx942"], "no kernel or function 'none'"),
        (["save", "program.py:step", "--target", "gfx1"], "there is no target 'gfx1'"),
        (["save", "program.py:open_type", "--target", "gfx942"], "'x' needs an array type"),
        (["inspect", "none.qpg"], "none.qpg"),
        (["inspect", "program.qpg"], "not a saved graph"),
    ],
)
def test_mistakes(program, capsys, arguments, message):
    Path("program.qpg").write_bytes(b"something")
    assert main(arguments) == 1
    assert message in capsys.readouterr().err
    assert not list(Path().glob("*.qpk"))
