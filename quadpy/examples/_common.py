"""What the examples share: the command line, the loop over steps, a progress display.

Owns: parser, count, run, play, progress.  Imports: the standard library, quadpy and the examples' pictures.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import quadpy as qp
from quadpy.examples._pictures import Picture, Sink

__all__ = ["count", "parser", "play", "progress", "run"]

FRAMES: Final = 100
"""The most frames an animation gets; it shows every n-th step where there are more steps."""
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


def count(text: str) -> int:
    """A positive number of the command line."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value
