"""``Kernel.compile``: code for any target, without a call or a device."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.objects.metadata import read_metadata
from quadpy.jit import compiler


@qp.kernel
def scale(x: qp.types.ndarray(ndim=1), n: qp.template(), by: qp.f32 = 2.0):
    for i in range(x.shape[0]):
        x[i] = x[i] * by + n


@qp.kernel
def chosen(x: qp.types.ndarray(dtype=qp.f32, ndim=1), n: qp.template() = 5):
    for i in x:
        x[i] = n


FLOATS = qp.types.ndarray(dtype=qp.f32, ndim=1)


def test_code_for_a_gpu_that_is_not_there():
    code = scale.compile("gfx942", x=FLOATS, n=3)
    assert read_metadata(code.image).target == "amdgcn-amd-amdhsa--gfx942"
    assert [slot.param for slot in code.layout.values] == ["x", "x", "by"]


def test_the_cpu_is_the_default_target():
    assert chosen.compile().entry == "chosen_entry"


def test_a_launch_finds_what_was_compiled_ahead(monkeypatch):
    qp.init(arch=qp.cpu)
    scale.compile("cpu", x=FLOATS, n=4)
    monkeypatch.setattr(compiler, "compile_kernel", lambda *_: pytest.fail("compiled a second time"))
    x = np.ones(5, np.float32)
    scale(x, 4)
    assert x.tolist() == [6.0] * 5


def test_a_default_is_a_value():
    given, default = chosen.compile("gfx942", n=5), chosen.compile("gfx942")
    assert given.image == default.image
    assert chosen.compile("gfx942", n=6).image != default.image


def test_the_defaults_of_init_hold(monkeypatch):
    @qp.kernel
    def add(a: float, x: FLOATS):
        for i in x:
            x[i] = x[i] + a

    assert [slot.code for slot in add.compile("gfx942").layout.values] == ["f", "Q", "i"]
    qp.init(default_fp=qp.f64)
    assert [slot.code for slot in add.compile("gfx942").layout.values] == ["d", "Q", "i"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 3}, "'x' needs an array type with dtype and ndim"),
        ({"n": 3, "x": qp.types.ndarray(dtype=qp.f32)}, "'x' needs an array type with dtype and ndim"),
        ({"n": 3, "x": np.float32}, "'x' needs an array type with dtype and ndim"),
        ({"n": 3, "x": qp.types.ndarray(dtype=qp.f32, ndim=2)}, "x takes 1 dimension, not 2"),
        ({"x": FLOATS}, "the compile-time parameter 'n' has no value"),
        ({"x": FLOATS, "n": 3, "by": 1.0}, "the annotation of 'by' decides its type"),
        ({"x": FLOATS, "n": 3, "z": 1}, "there is no parameter 'z'"),
    ],
)
def test_types_that_stay_open_or_contradict_are_named(given, message):
    with pytest.raises(qp.ArgumentError, match=f"scale: {message}") as caught:
        scale.compile("gfx942", **given)
    assert caught.value.span in (scale.source.span, scale.source.span_of_parameter("x"))


def test_an_unknown_target():
    with pytest.raises(qp.UnknownTargetError, match="did you mean 'gfx942'"):
        chosen.compile("gfx943")
