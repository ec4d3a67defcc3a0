"""LLVM writes to stderr what it could not vectorise as it was told; users have not told it anything."""

from __future__ import annotations

import platform

import pytest

import quadpy as qp

sources = qp.Struct.field({"pos": qp.math.vec2, "q": qp.f32}, shape=20)
arrows = qp.Struct.field({"base": qp.math.vec2, "dir": qp.math.vec2}, shape=(15, 10))


@qp.func
def velocity(pos):
    vel = qp.math.vec2(1.0, 0.0)
    for i in range(20):
        uv = pos - sources[i].pos
        uv[0] *= 20 / 30
        vel += uv * sources[i].q / (uv[0] ** 2 + uv[1] ** 2)
    return vel


@qp.kernel
def update():
    for x, y in arrows:
        vel = velocity(arrows[x, y].base)
        arrows[x, y].dir = vel / vel.norm()


@qp.real_func
def heavy(v: qp.f32, w: qp.f64) -> qp.f32:
    r = v
    for _ in qp.static(range(12)):
        r = qp.sin(r) * v
    return r + qp.cast(w, qp.f32)


@qp.kernel
def weigh(x: qp.types.ndarray(dtype=qp.f32, ndim=1), y: qp.types.ndarray(dtype=qp.f32, ndim=1), n: qp.i32):
    """Iterations would go side by side, but for calls that have no form for several values."""
    for i in x:
        s = 0.0
        for _ in range(n):
            s = s * 0.5 + heavy(y[i], 1.0) + heavy(x[i], 2.0) + heavy(s, 3.0)
        y[i] = s


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names x86's processors")
@pytest.mark.parametrize("target", ["cpu:x86-64", "cpu:x86-64-v4"])
@pytest.mark.parametrize("kernel", [update, weigh], ids=["straight code", "calls"])
def test_loops_are_compiled_without_a_word(kernel, target, capfd, monkeypatch):
    monkeypatch.setenv("QUADPY_CACHE", "0")
    code = kernel.compile(target)
    assert code.image
    assert capfd.readouterr().err == ""
