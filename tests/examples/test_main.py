"""The command line of each example: it writes pictures and animations, and reports errors."""

import importlib
import io
import sys

import numpy as np
import pytest
from PIL import Image

from quadpy.cli import main as quadpy_command
from quadpy.cli.demo import EXAMPLES
from quadpy.examples import _common, _pictures

SMALL = {
    "mpm88": ["--steps", "2", "--size", "64"],
    "nbody": ["--steps", "3", "--size", "64", "--bodies", "40"],
    "mandelbrot": ["--steps", "50", "--size", "32"],
    "stable_fluids": ["--steps", "4", "--size", "32"],
    "game_of_life": ["--steps", "5", "--size", "24"],
    "image_filter": ["--steps", "1", "--size", "48"],
    "conjugate_gradient": ["--steps", "60", "--size", "32"],
    "decode": ["--steps", "20", "--size", "2"],
    "materials": ["--steps", "1", "--size", "48"],
    "cloth": ["--steps", "2", "--size", "32", "--threads", "8"],
    "sph": ["--steps", "1", "--size", "48", "--spacing", "0.05"],
    "path_tracer": ["--steps", "2", "--size", "32"],
    "lattice_boltzmann": ["--steps", "1", "--size", "24"],
    "two_stream": ["--steps", "3", "--size", "32", "--electrons", "2000"],
    "seismic": ["--steps", "2", "--size", "12"],
    "crawler": ["--steps", "1", "--size", "64", "--time-steps", "20"],
    "predator_prey": ["--steps", "2", "--size", "64"],
    "throw": ["--steps", "2", "--size", "64"],
    "heat_sink": ["--steps", "2", "--size", "8"],
}


def run(name, *options):
    return importlib.import_module(f"quadpy.examples.{name}").main([*SMALL[name], *map(str, options)])


def test_every_example_is_tested():
    assert SMALL.keys() == set(EXAMPLES)


@pytest.mark.parametrize("name", SMALL)
def test_it_writes_a_picture(name, tmp_path, capsys):
    out = tmp_path / "picture.png"
    assert run(name, "--out", out) == 0
    captured = capsys.readouterr()
    assert captured.out.endswith(f"wrote {out}\n")
    assert name == "decode" or captured.out.count("\n") == 1, "only what writes text shows more"
    assert captured.err == ""
    with Image.open(out) as picture:
        assert picture.format == "PNG"
        assert np.asarray(picture).std() > 1, "it shows something"


@pytest.mark.parametrize(("name", "frames"), [("game_of_life", 5), ("image_filter", 1)])
@pytest.mark.parametrize("suffix", ["gif", "apng"])
def test_it_writes_an_animation(name, frames, suffix, tmp_path):
    out = tmp_path / f"moving.{suffix}"
    assert run(name, "--out", out) == 0
    with Image.open(out) as moving:
        assert getattr(moving, "n_frames", 1) == frames


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "picture.unheard-of"], "picture.unheard-of is not a type of picture"),
        (["--out", "no/such/folder/picture.png"], "there is no folder no/such/folder"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_the_work(options, message, capsys):
    assert run("mpm88", *options) == 1
    assert message in capsys.readouterr().err


def test_no_steps_is_a_wrong_command_line(capsys):
    with pytest.raises(SystemExit, match="2"):
        run("nbody", "--steps", 0)
    assert "0 is not positive" in capsys.readouterr().err


def test_without_pillow_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    assert run("game_of_life") == 1
    assert "pip install 'quadpy-lang[examples]'" in capsys.readouterr().err


def test_a_file_that_is_no_picture(tmp_path, capsys):
    text = tmp_path / "notes.txt"
    text.write_text("not a picture")
    assert run("image_filter", text, "--out", tmp_path / "out.png") == 1
    assert f"{text} is not a picture" in capsys.readouterr().err


def test_demo_lists_and_runs(tmp_path, capsys):
    assert quadpy_command(["demo"]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in EXAMPLES)
    out = tmp_path / "life.png"
    assert quadpy_command(["demo", "game_of_life", *SMALL["game_of_life"], "--out", str(out)]) == 0
    assert out.exists()


def test_an_animation_has_at_most_a_hundred_frames(tmp_path):
    sink = _pictures.File(tmp_path / "long.gif")
    steps = iter(range(1000))
    _common.play(1000, lambda: next(steps), lambda: np.zeros((2, 2, 3), np.uint8), sink)
    assert len(sink.frames) == _pictures.FRAMES
    assert next(steps, None) is None


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_of_a_long_run(terminal, monkeypatch):
    stderr = Terminal() if terminal else io.StringIO()
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(_common.time, "monotonic", lambda: float(next(clock)))
    assert list(_common.progress(6)) == list(range(6))
    shown = stderr.getvalue()
    if terminal:
        assert "\rstep 1 of 6, 20 s left" in shown
        assert shown.endswith("\r"), "the line is cleared"
    else:
        assert shown.split("\n") == [f"{'step 3 of 6, 12 s left'}", f"{'step 6 of 6, 0 s left'}", ""]


def test_a_short_run_shows_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(_common.progress(3)) == [0, 1, 2]
    assert sys.stderr.getvalue() == ""


def test_palette_mixes_its_neighbours():
    assert _pictures.palette([0, 0.5, 0.75, 1, 2], ["000000", "0000ff", "ff00ff"]).tolist() == [
        [0, 0, 0],
        [0, 0, 255],
        [127, 0, 255],
        [255, 0, 255],
        [255, 0, 255],
    ]


def test_large_pictures_are_reduced(tmp_path):
    file = tmp_path / "large.png"
    Image.new("RGB", (200, 100), (255, 0, 0)).save(file)
    read = _pictures.read_picture(file, 50)
    assert read.shape == (25, 50, 3)
    assert read.dtype == np.float32
    assert read[0, 0].tolist() == [1, 0, 0]
