"""Kernels with hundreds of array arguments: what a launch takes, and an error beyond it."""

from __future__ import annotations

import linecache
import re

import numpy as np
import pytest

import quadpy as qp


def kernel(count):
    """A kernel of ``count`` arrays that adds up the first elements of every 50th."""
    names = [f"a{k}" for k in range(count)]
    head = ", ".join(f"{name}: F" for name in names)
    text = f"import quadpy as qp\nF = qp.types.ndarray(dtype=qp.f32, ndim=1)\n@qp.kernel\ndef k({head}):\n    a0[0] = 0.0\n"
    text += "".join(f"    a0[0] += {name}[0]\n" for name in names[50::50])
    file = f"<ipython-input-{count}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {}
    exec(compile(text, file, "exec"), scope)
    return scope["k"]


def version(code):
    return tuple(map(int, re.search(r"\.version (\d+)\.(\d+)", code.image.decode()).groups()))


@pytest.mark.parametrize("arch", ["sm_70", "sm_90a", "sm_100"])
def test_many_parameters_take_a_version_of_ptx_that_has_them(arch):
    assert version(kernel(400).compile(arch)) >= (8, 1)


def test_few_parameters_take_the_oldest_version_of_ptx():
    assert version(kernel(200).compile("sm_70")) < (8, 1)


@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_more_parameters_than_a_launch_takes_are_an_error(target):
    with pytest.raises(
        qp.KernelTypeError, match=r"takes 2,100 parameters of .* bytes; a launch on \w+ takes at most 32,764"
    ) as caught:
        kernel(2100).compile(target)
    assert caught.value.span.line == 3
    assert caught.value.hint


def test_many_parameters_on_amd():
    assert kernel(512).compile("gfx942").layout.size == 512 * 16


def test_many_parameters_on_the_cpu():
    qp.init(arch=qp.cpu)
    arrays = [np.ones(1, np.float32) for _ in range(600)]
    kernel(600)(*arrays)
    assert arrays[0][0] == 11
