"""Kernels in files: they are called, captured and put in graphs as others are; fat binaries of HIP's."""

from __future__ import annotations

import re
import struct
import subprocess
import sys

import numpy as np
import pytest
import saved_cases
from saved_cases import F32, State, floats, half_step, saxpy, sums, vec3

import quadpy as qp
from quadpy.errors import ArgumentError, BoundsError, GraphError, SavedGraphError
from quadpy.runtime.device.current import Config, set_config


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kernel.qpk"


@qp.kernel
def mixed(a: qp.f64, n: qp.i32, by: vec3, x: qp.types.ndarray(), factor: qp.template()) -> qp.f64:
    total = 0.0
    for i in x:
        x[i] += factor * by[1]
        total += x[i]
    return qp.cast(total, qp.f64) * a + n


def test_a_call_does_what_the_kernel_does(path):
    mixed.save(path, None, x=qp.types.ndarray(dtype=qp.f32, ndim=1), factor=3)
    loaded = qp.load_kernel(path)
    x, y = floats(1, 2, 3), floats(1, 2, 3)
    expected = mixed(0.1, 7, [1.0, 0.5, 2.0], x, 3)
    assert loaded(0.1, 7, [1.0, 0.5, 2.0], x=y) == expected
    assert x.to_numpy().tobytes() == y.to_numpy().tobytes()
    assert loaded(0.1, n=7, by=qp.Vector([1.0, 0.5, 2.0]), x=np.zeros(0, np.float32)) == 7


def test_random_numbers_are_those_of_the_next_launch(path):
    sums.save(path)
    loaded = qp.load_kernel(path)
    outcomes = []
    for kernel in (sums, loaded):
        set_config(Config(arch="cpu", random_seed=5))
        if kernel is loaded:
            kernel = qp.load_kernel(path)
        x, total = floats(*range(50)), floats(0)
        for _ in range(2):
            kernel(x, total)
        outcomes.append(x.to_numpy().tobytes())
    assert outcomes[0] == outcomes[1]


def test_in_graphs_and_captures(path):
    half_step.save(path)
    loaded = qp.load_kernel(path)
    x, y = floats(2, 4), floats(0, 0)
    g = qp.graph.Graph()
    g.add_kernel(loaded, x, y)
    g.add_kernel(loaded, y, x)
    with qp.graph.capture() as captured:
        loaded(x, y)
    for graph in (g, captured):
        with graph.instantiate() as live:
            live.launch()
    assert (x.to_numpy().tolist(), y.to_numpy().tolist()) == ([2.5, 5.0], [2.25, 4.5])
    with pytest.raises(GraphError, match=r"(?s)half_step.*only has machine code.*build the graph"):
        g.save(path, bind={"x": x, "y": y})


def constant(n):
    made = np.ones(n, np.float32)
    made.flags.writeable = False
    return made


WRONG = {
    "few": (lambda k, x: k(1.0, x), "takes a, x, y, each once, and lacks y"),
    "unknown": (lambda k, x: k(1.0, x, floats(1), z=3), "takes a, x, y, each once"),
    "constant": (lambda k, x: k(1.0, x, constant(2)), "y is read-only, and the kernel writes it"),
    "twice": (lambda k, x: k(1.0, x, x, a=2.0), "takes a, x, y, each once"),
    "type": (lambda k, x: k("a", x, floats(1)), "a takes a number"),
    "array": (lambda k, x: k(1.0, np.ones(2), x), "x takes elements of f32, not f64"),
    "overlap": (lambda k, x: k(1.0, x, x), "'x' and 'y' share memory"),
}


@pytest.mark.parametrize("name", WRONG)
def test_arguments_that_do_not_fit(name, path):
    saxpy.save(path)
    call, message = WRONG[name]
    with pytest.raises(ArgumentError, match=re.escape(message)):
        call(qp.load_kernel(path), floats(1, 2))
    with pytest.raises(BoundsError):
        qp.load_kernel(path)(1.0, floats(1, 2), floats(1))


@qp.kernel
def rotated(turn: qp.types.matrix(2, 2, qp.f32), x: F32):
    for i in x:
        x[i] = turn[0, 1]


def test_rows_of_different_lengths_are_named(path):
    rotated.save(path)
    with pytest.raises(ArgumentError, match=r"turn takes shape \(2, 2\), not rows of different lengths"):
        qp.load_kernel(path)([[1, 2], [3]], floats(1))


LEVEL = qp.field(qp.f32, 2)


@qp.kernel
def named(x: F32):
    for i in x:
        x[i] += LEVEL[i]


@qp.kernel
def talking(x: F32):
    for i in x:
        print(x[i])


@pytest.mark.parametrize(("kernel", "message"), [(named, "names field"), (talking, "it prints")])
def test_what_cannot_be_saved(kernel, message, path):
    with pytest.raises(ArgumentError, match=r"(?s)no parameter 'targets'.*targets are passed by position"):
        half_step.save(path, targets=["x86-64"])
    with pytest.raises(GraphError, match=message):
        kernel.save(path)
    assert not path.exists()


Turn = qp.types.struct(by=saved_cases.mat2, add=qp.types.struct(scale=qp.f64, whole=qp.u8))


@qp.kernel
def turned(x: F32, turn: Turn, y: F32):
    for i in x:
        v = turn.by @ qp.Vector([x[i], y[i]])
        x[i], y[i] = v[0] + turn.add.whole, v[1] * qp.cast(turn.add.scale, qp.f32)


def test_structs_are_passed_by_value(path):
    turned.save(path)
    loaded = qp.load_kernel(path)
    by, results = [[0.5, -1.0], [1.0, 0.25]], []
    turn = Turn(by=by, add={"scale": 0.1, "whole": 7})
    for call in (turned, loaded):
        for given in (turn, {"by": by, "add": {"scale": 0.1, "whole": 7}}):
            x, y = floats(1, 2, 3), floats(5, 6, 7)
            call(x, given, y)
            results.append(x.to_numpy().tobytes() + y.to_numpy().tobytes())
    assert len(set(results)) == 1
    x, y = floats(1), floats(2)
    with pytest.raises(ArgumentError, match=r"turn takes a struct or a dict with add\.scale"):
        loaded(x, {"by": by}, y)
    with pytest.raises(ArgumentError, match=r"turn\.by takes shape \(2, 2\), not \(3,\)"):
        loaded(x, {"by": [1, 2, 3], "add": {"scale": 1, "whole": 2}}, y)
    with pytest.raises(ArgumentError, match=r"turn\.add\.whole"):
        loaded(x, {"by": by, "add": {"scale": 0.1, "whole": 256}}, y)
    g = qp.graph.Graph()
    g.add_kernel(loaded, x, turn, y)
    with g.instantiate() as live:
        live.launch()
    assert x.to_numpy().tolist() == [0.5 - 2 + 7]


def test_members_of_dataclasses_are_arguments_by_their_paths(path):
    @qp.kernel
    def lift(state: State):
        for i, j in state.pos:
            state.pos[i, j].y += qp.cast(state.scale, qp.f32)

    lift.save(path)
    pos = np.zeros((2, 2, 3), np.float32)
    qp.load_kernel(path)(**{"state.pos": pos, "state.scale": 0.5})
    assert pos[..., 1].tolist() == [[0.5, 0.5]] * 2


def test_a_graph_is_no_kernel(path):
    saxpy.save(path)
    with pytest.raises(SavedGraphError, match="is a saved kernel"):
        qp.graph.load(path)
    x, y = floats(1), floats(1)
    g = qp.graph.Graph()
    g.add_kernel(half_step, x, y)
    g.save(path, bind={"x": x, "y": y})
    with pytest.raises(SavedGraphError, match="is a saved graph"):
        qp.load_kernel(path)


@pytest.mark.quadpy_hazards(allow="it is to find one")
def test_a_tape_refuses_it_and_the_checker_sees_it(path):
    half_step.save(path)
    loaded, x, y = qp.load_kernel(path), qp.ndarray(qp.f32, 3, needs_grad=True), qp.ndarray(qp.f32, 3, needs_grad=True)
    with pytest.raises(ArgumentError, match="half_step is called on a tape"), qp.ad.Tape(y):
        loaded(x, y)
    with qp.create_stream() as one, qp.create_stream() as two, qp.hazards.check(collect=True) as found:
        loaded(x, y, stream=one)
        loaded(x, y, stream=two)
    assert found.possible
    with qp.profile() as profile:
        loaded(x, y)
    assert any(record.name == "half_step" for record in profile.records)


def test_a_fat_binary(tmp_path):
    file = tmp_path / "saxpy.hipfb"
    saxpy.save(file, ["gfx942", "gfx1100"])
    data = file.read_bytes()
    assert data[:24] == b"__CLANG_OFFLOAD_BUNDLE__"
    (count,) = struct.unpack_from("<Q", data, 24)
    at, found = 32, {}
    for _ in range(count):
        start, size, length = struct.unpack_from("<QQQ", data, at)
        found[data[at + 24 : at + 24 + length].decode()] = (start, data[start : start + size])
        at += 24 + length
    assert list(found) == [
        "host-x86_64-unknown-linux-gnu-", "hipv4-amdgcn-amd-amdhsa--gfx942", "hipv4-amdgcn-amd-amdhsa--gfx1100",
    ]  # fmt: skip
    for target in ("gfx942", "gfx1100"):
        start, image = found[f"hipv4-amdgcn-amd-amdhsa--{target}"]
        assert start % 4096 == 0
        assert image == saxpy.compile(target).image
    with pytest.raises(ArgumentError, match="not for sm_90"):
        saxpy.save(file, ["gfx942", "sm_90"])


def test_nothing_of_the_compiler_is_imported(path):
    saxpy.save(path)
    program = (
        f"import sys, numpy as np, quadpy as qp; qp.load_kernel({str(path)!r})(2.0, np.ones(3, np.float32), np.ones(3, np.float32));"
        "print([n for n in sys.modules if n.startswith(('llvmlite', 'quadpy.ir', 'quadpy.codegen', 'quadpy.jit.comp'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[]\n"
