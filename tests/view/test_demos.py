"""``--view`` of the examples: the pictures of their files, in a window."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from PIL import Image

import quadpy as qp
from quadpy import settings
from quadpy.cli import main as quadpy_command
from quadpy.examples import _moving
from quadpy.runtime.device.current import current_config, set_config

SMALL = {
    "game_of_life": ["--steps", "4", "--size", "240"],
    "mandelbrot": ["--steps", "50", "--size", "240"],
    "conjugate_gradient": ["--steps", "60", "--size", "240"],
    "decode": ["--steps", "20", "--size", "4"],
}


@pytest.fixture(autouse=True)
def configuration():
    before = current_config()
    yield
    set_config(before)


@pytest.fixture
def in_memory(graphics, monkeypatch):
    """The last picture of each window that a program closes."""
    monkeypatch.setenv("QUADPY_VIEW", "memory")
    settings.settings.cache_clear()
    shown, close = [], qp.view.Window.close
    monkeypatch.setattr(qp.view.Window, "close", lambda self: (shown.append(self.picture()), close(self)))
    return shown


@pytest.mark.parametrize("name", SMALL)
def test_the_last_picture_in_the_window_is_that_of_the_file(name, in_memory, tmp_path, capsys, monkeypatch):
    example = importlib.import_module(f"quadpy.examples.{name}")
    monkeypatch.setattr(example, "frames", 3, raising=False)
    assert example.main([*SMALL[name], "--out", str(tmp_path / "a.png")]) == 0
    assert example.main([*SMALL[name], "--view"]) == 0
    assert capsys.readouterr().out.endswith("the window is closed\n")
    (seen,) = in_memory
    with Image.open(tmp_path / "a.png") as file:
        written = np.asarray(file.convert("RGB").resize(seen.shape[1::-1], Image.Resampling.NEAREST)).astype(int)
    assert np.abs(seen - written).max() <= 1


def test_a_demo_shows_its_last_picture_until_its_window_is_closed(display, monkeypatch, capsys):
    import glfw

    windows, pixels = [], []
    make = qp.view.Window.__init__
    monkeypatch.setattr(
        qp.view.Window, "__init__", lambda self, *a, **k: (windows.append(self), make(self, *a, **k))[1]
    )

    def wait(seconds):
        if windows[0].running:
            pixels.append(display())
            glfw.set_window_should_close(windows[0].canvas._window, True)

    monkeypatch.setattr(_moving, "sleep", wait)
    assert quadpy_command(["demo", "game_of_life", "--steps", "3", "--size", "48", "--view"]) == 0
    assert len(pixels) == 1
    assert pixels[0].any(axis=2).mean() > 0.1
    assert capsys.readouterr().out == "the window is closed\n"


def test_a_window_that_is_closed_ends_the_steps(in_memory):
    from quadpy.examples._common import play

    steps, sink = [], _moving.Live("test")

    def draw():
        if len(steps) == 2:
            sink._window.canvas.close()
        return np.zeros((20, 20, 3), np.uint8)

    play(1000, lambda: steps.append(0), draw, sink)
    assert len(steps) == 2


def test_a_demo_is_written_as_a_film(tmp_path):
    av = pytest.importorskip("av", reason="films need av, of the extra tools")
    out = tmp_path / "life.mp4"
    assert quadpy_command(["demo", "game_of_life", "--steps", "5", "--size", "32", "--out", str(out)]) == 0
    with av.open(str(out)) as film:
        assert len(list(film.decode(video=0))) == 5


def test_a_file_and_a_window_at_once_are_a_wrong_command_line(capsys):
    with pytest.raises(SystemExit, match="2"):
        quadpy_command(["demo", "game_of_life", "--view", "--out", "a.png"])
    assert "--out: not allowed with argument --view" in capsys.readouterr().err


def test_without_a_display_the_demo_says_so(graphics, capsys):
    assert quadpy_command(["demo", "game_of_life", "--steps", "1", "--view"]) == 1
    assert "game_of_life: there is no display to open a window on" in capsys.readouterr().err
