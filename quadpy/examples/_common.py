"""What the examples share: the command line, a progress display, writing pictures and animations.

Owns: parser, count, run, play, progress, Sink, read_picture, palette.  Imports: numpy; pillow when it is needed.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

import quadpy as qp

__all__ = ["Floats", "Picture", "Sink", "count", "palette", "parser", "play", "progress", "read_picture", "run"]

Picture: TypeAlias = npt.NDArray[np.uint8]
"""Rows from the top, columns, and red, green, blue: shape (height, width, 3)."""
Floats: TypeAlias = npt.NDArray[np.float32]

ANIMATIONS: Final = {".gif": "GIF", ".apng": "PNG"}
FRAMES: Final = 100
"""The most frames an animation gets; it shows every n-th step where there are more steps."""
FRAME_MS: Final = 40
QUIET_S: Final = 1.0
"""A run shorter than this shows no progress."""
LINE_S: Final = 10.0
"""How often progress is told where stderr is no terminal."""


def parser(
    doc: str | None, *, out: str, steps: int, size: int, steps_help: str, size_help: str
) -> argparse.ArgumentParser:
    """A command line with the options that every example takes; ``doc`` is the example's docstring."""
    made = argparse.ArgumentParser(Path(out).stem, description=(doc or "").partition("\n")[0])
    made.add_argument(
        "--arch", default="cpu", choices=("cpu", "amdgpu", "cuda", "gpu"), help="where it runs (%(default)s)"
    )
    made.add_argument("--steps", type=count, default=steps, metavar="N", help=f"{steps_help} (%(default)s)")
    made.add_argument("--size", type=count, default=size, metavar="N", help=f"{size_help} (%(default)s)")
    made.add_argument(
        "--out", type=Path, default=Path(out), metavar="FILE",
        help="the picture, or the animation if it ends in .gif or .apng (%(default)s)",
    )  # fmt: skip
    return made


def run(
    made: argparse.ArgumentParser, argv: Sequence[str] | None, body: Callable[[argparse.Namespace, Sink], None]
) -> int:
    """Parses ``argv``, initialises quadpy and runs ``body``; the exit status: 0, or 1 with a message on stderr."""
    args = made.parse_args(argv)
    try:
        sink = Sink(args.out)
        qp.init(arch=args.arch, fast_math=True)  # pictures need speed, not the same bits everywhere
        body(args, sink)
        sink.close()
    except (qp.QuadpyError, OSError) as error:
        print(f"{made.prog}: {error}", file=sys.stderr)
        return 1
    print(f"wrote {args.out}")
    return 0


def play(steps: int, step: Callable[[], object], draw: Callable[[], Picture], sink: Sink) -> None:
    """Calls ``step`` that often, and gives ``sink`` the last picture, or all that its animation has room for."""
    every = max(1, -(-steps // FRAMES)) if sink.animated else steps
    for done in progress(steps):
        step()
        if (done + 1) % every == 0:
            sink.add(draw())
    if not sink.frames:
        sink.add(draw())


def progress(steps: int) -> Iterator[int]:
    """``range(steps)``, shown on stderr: in place on a terminal, else as a line now and then."""
    terminal = sys.stderr.isatty()
    began = told = time.monotonic()
    for done in range(steps):
        yield done
        now = time.monotonic()
        if now - began > QUIET_S and now - told > (0.2 if terminal else LINE_S):
            left = (now - began) * (steps - done - 1) / (done + 1)
            text = f"step {done + 1} of {steps}, {left:.0f} s left"
            print(f"\r{text:<40}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)
            told = now
    if terminal and told != began:
        print(f"\r{'':<40}\r", end="", file=sys.stderr, flush=True)


class Sink:
    """The file that an example writes: one picture, or the frames of an animation."""

    def __init__(self, path: Path) -> None:
        """Checks that ``path`` can be written, before anything is computed for it.

        Raises:
            QuadpyError: pillow is missing, or it knows no such kind of file.
            OSError: there is no such folder.
        """
        self.path, self.image = path, _pillow()
        suffix = path.suffix.lower()
        self.image.init()
        if suffix not in ANIMATIONS and suffix not in self.image.EXTENSION:
            raise qp.QuadpyError(f"no picture can be written to {path}", hint="take a name that ends in .png or .gif")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent}")
        self.animated = suffix in ANIMATIONS
        self.frames: list[Any] = []

    def add(self, picture: Picture) -> None:
        """One more frame; of a still picture, the last counts."""
        if not self.animated:
            self.frames.clear()
        self.frames.append(self.image.fromarray(picture))

    def close(self) -> None:
        """Writes the file."""
        first, *others = self.frames
        if not self.animated:
            first.save(self.path, optimize=True)
            return
        kind = ANIMATIONS[self.path.suffix.lower()]
        first.save(self.path, kind, save_all=True, append_images=others, duration=FRAME_MS, loop=0)


def read_picture(path: Path, longest: int) -> Floats:
    """A picture as floats in [0, 1], reduced where its longer side has more than ``longest`` pixels.

    Raises:
        QuadpyError: it is no picture that pillow can read.
        OSError: the file cannot be read.
    """
    image = _pillow()
    try:
        with image.open(path) as file:
            rgb = file.convert("RGB")
    except image.UnidentifiedImageError:
        raise qp.QuadpyError(f"{path} is no picture that pillow knows") from None
    rgb.thumbnail((longest, longest))
    return np.asarray(rgb, np.float32) / np.float32(255)


def palette(values: npt.ArrayLike, colours: Sequence[str]) -> Picture:
    """``values`` in [0, 1] through a colour map: ``colours`` as hexadecimal digits, evenly spaced, mixed between."""
    stops = np.array([list(bytes.fromhex(colour)) for colour in colours], float)
    at = np.clip(np.asarray(values, float), 0, 1) * (len(stops) - 1)
    mixed = [np.interp(at, np.arange(len(stops)), stops[:, channel]) for channel in range(3)]
    return np.stack(mixed, axis=-1).astype(np.uint8)


def count(text: str) -> int:
    """A positive number of the command line."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value


def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise qp.QuadpyError("pillow is not installed", hint="pip install 'quadpy[examples]'") from None
