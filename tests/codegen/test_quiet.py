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


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names x86's processors")
@pytest.mark.parametrize("target", ["cpu:x86-64", "cpu:x86-64-v4"])
def test_a_loop_that_becomes_straight_code_is_compiled_without_a_word(target, capfd, monkeypatch):
    monkeypatch.setenv("QUADPY_CACHE", "0")
    code = update.compile(target)
    assert code.image
    assert capfd.readouterr().err == ""
