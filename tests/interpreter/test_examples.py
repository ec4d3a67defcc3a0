"""Examples, small: the pictures that Python computes are those of compiled kernels, bit by bit."""

from __future__ import annotations

import functools
import importlib

import numpy as np
import pytest
from PIL import Image

import quadpy as qp

SMALL = {
    "cloth": ["--steps", "1", "--size", "24", "--threads", "6"],
    "game_of_life": ["--steps", "3", "--size", "16"],
    "path_tracer": ["--steps", "1", "--size", "12"],
    "two_stream": ["--steps", "1", "--size", "24", "--electrons", "200"],
}


def _strict(init, chosen, arch=None, fast_math=None):
    """Examples ask for ``fast_math``."""
    init(arch=chosen)


@pytest.mark.parametrize("name", SMALL)
def test_the_same_picture(name, tmp_path, monkeypatch, capsys):
    init, pictures = qp.init, []
    for arch in (qp.cpu, qp.python):
        monkeypatch.setattr(qp, "init", functools.partial(_strict, init, arch))
        assert (
            importlib.import_module(f"quadpy.examples.{name}").main(
                [*SMALL[name], "--out", str(tmp_path / arch) + ".png"]
            )
            == 0
        )
        with Image.open(tmp_path / f"{arch}.png") as picture:
            pictures.append(np.asarray(picture))
    assert "wrote" in capsys.readouterr().out
    np.testing.assert_array_equal(*pictures)
    assert pictures[0].std() > 0
