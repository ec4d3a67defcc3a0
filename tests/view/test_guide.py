"""The programs of the guide open windows that look like its pictures."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import quadpy as qp
from quadpy.runtime.device.current import current_config, set_config

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "guides/viewing.md").read_text(encoding="utf-8")
FRAMES = {"waves": 40, "space": 3}


def blocks():
    return re.findall(r"^```py\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def closed_after(monkeypatch, display):
    """Windows close after so many frames; a list gets the screen before."""
    before = current_config()

    def arrange(frames):
        screens, show = [], qp.view.Window.show

        def show_some(window):
            if window.on_screen and window._frames == frames - 1:
                show(window)
                screens.append(display())
                window.close()
            else:
                show(window)

        monkeypatch.setattr(qp.view.Window, "show", show_some)
        return screens

    yield arrange
    set_config(before)


def run(code, folder, names):
    file = folder / "program.py"  # kernels are read from a file
    file.write_text(code, encoding="utf-8")
    exec(compile(code, str(file), "exec"), names)


@pytest.mark.parametrize("name", FRAMES)
def test_a_program_shows_its_picture(name, closed_after, tmp_path, request, monkeypatch):
    screens = closed_after(FRAMES[name])
    (code,) = [block for block in blocks() if f'Window("{name}"' in block]
    run(code, tmp_path, names := {})
    width, height = names["window"].size
    seen = screens[0]
    rows, columns = np.nonzero((seen != 0).any(axis=2))
    seen = seen[rows.min() :, columns.min() :][:height, :width]
    file = DOCS / f"assets/view-{name}.png"
    if request.config.getoption("--update-golden"):
        Image.fromarray(seen).quantize(255).save(file, optimize=True)
    with Image.open(file) as picture:
        expected = np.asarray(picture.convert("RGB")).astype(int)
    assert seen.shape == expected.shape
    assert np.abs(seen - expected).mean() < 6  # its colours are from a palette
    if name == "waves":
        monkeypatch.chdir(tmp_path)
        for block in blocks()[2:]:
            run(block, tmp_path, names)
        assert Path("frame.png").exists()
