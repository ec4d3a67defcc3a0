"""Inner loops that load what does not change in them: the load happens once, if it happens at all, and the code is packed."""

from __future__ import annotations

import platform
import re

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.target import parse_target
from quadpy.jit.offline import compile_with_asm

A = qp.types.ndarray
ROWS, ROW = A(qp.f32, 2), A(qp.f32, 1)


@qp.kernel
def literal(a: qp.i32, z: qp.i32, x: ROWS, out: ROW):
    for i in range(a, z):
        total = 0.0
        for j in range(x.shape[0]):
            d = x[j, 0] - x[i, 0]
            total += d / (d * d + 0.25)
        out[i] = total


@qp.kernel
def argument(a: qp.i32, z: qp.i32, x: ROWS, out: ROW, softening: qp.f32):
    for i in range(a, z):
        total = 0.0
        for j in range(x.shape[0]):
            d = x[j, 0] - x[i, 0]
            total += d / (d * d + softening)
        out[i] = total


@qp.kernel
def others(a: qp.i32, z: qp.i32, x: ROWS, out: ROW, softening: qp.f32):
    for i in range(a, z):
        total = 0.0
        for j in range(x.shape[0]):
            if i != j:
                d = x[j, 0] - x[i, 0]
                total += d / (d * d + softening)
        out[i] = total


@qp.kernel
def skipping(a: qp.i32, z: qp.i32, x: ROW, out: ROW, softening: qp.f32):
    for i in range(a, z):
        total = 0.0
        for j in range(x.shape[0]):
            if j == i:
                continue
            d = x[j] - x[i]
            total += d / (d * d + softening)
        out[i] = total


@qp.kernel
def all_others(x: ROW, out: ROW, softening: qp.f32):
    for i in x:
        total = 0.0
        for j in range(x.shape[0]):
            if i != j:
                d = x[j] - x[i]
                total += d / (d * d + softening)
        out[i] = total


@pytest.mark.parametrize("n", [1, 16, 53])
def test_the_bits_are_those_of_numpy(arch, n):
    x = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
    line, soft = x[:, 0].copy(), np.float32(0.25)
    d = line[None, :] - line[:, None]
    terms = d / (d * d + soft)
    total, without = np.zeros(n, np.float32), np.zeros(n, np.float32)
    for j in range(n):
        total += terms[:, j]
        without = np.where(np.arange(n) == j, without, without + terms[:, j])
    cases = [
        (literal, (0, n, x), (), total),
        (argument, (0, n, x), (soft,), total),
        (others, (0, n, x), (soft,), without),
        (skipping, (0, n, line), (soft,), without),
        (all_others, (line,), (soft,), without),
    ]
    for kernel, before, after, expected in cases:
        out = np.zeros(n, np.float32)
        kernel(*before, out, *after)
        assert out.tobytes() == expected.tobytes(), kernel.__name__


@qp.kernel
def far_away(n: qp.i32, far: qp.i32, x: ROW, out: ROW):
    for i in x:
        total = 1.0
        for j in range(n):
            total += x[j] * x[i + far]
        out[i] = total


def test_a_loop_without_turns_loads_nothing(arch):
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    far_away(0, 1 << 30, x, out)  # an element gigabytes away would end the process
    assert (out == 1).all()


@qp.kernel
def in_place(n: qp.i32, x: ROW, y: ROW):
    for i in x:
        total = 0.0
        for _j in range(n):
            total = total * 0.5 + x[i]
            y[i] = total


def test_an_element_that_the_loop_writes_is_loaded_each_time(arch):
    x = np.linspace(1, 2, 40, dtype=np.float32)
    expected, total = x.copy(), np.zeros_like(x)
    for _ in range(5):
        total = total * np.float32(0.5) + expected
        expected = total
    in_place(5, x, x)
    assert x.tobytes() == expected.tobytes()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for x86's instructions")
@pytest.mark.parametrize("kernel", [literal, argument, skipping, all_others], ids=lambda k: k.__name__)
def test_a_literal_or_an_argument_gives_packed_instructions(kernel):
    qp.init(arch="cpu")
    asm = compile_with_asm(kernel, parse_target("cpu:x86-64-v3"), {}).asm
    assert re.search(r"vdivps.*%ymm", asm)
    inner = asm[: asm.index("vdivps")].rsplit("\n.L", 1)[1]
    assert not re.search(r"vblendps|vpinsrd|vinsertps", inner)  # lanes one by one
