"""The command line of the examples, their loop over steps, and a progress display."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import quadpy as qp
from quadpy.examples._moving import sink_for
from quadpy.examples._pictures import Picture, Sink

__all__ = ["count", "parser", "play", "progress", "run"]

QUIET_S: Final = 1.0
"""A shorter run shows no progress."""
LINE_S: Final = 10.0
"""The interval between progress messages if stderr is not a terminal."""


def parser(
    doc: str | None, *, out: str, steps: int, size: int, steps_help: str, size_help: str
) -> argparse.ArgumentParser:
    """A parser with the options of every example; ``doc`` is the docstring of the example."""
    arguments = argparse.ArgumentParser(Path(out).stem, description=(doc or "").partition("\n")[0])
    arguments.add_argument(
        "--arch",
        default="cpu",
        choices=("cpu", "amdgpu", "cuda", "gpu", "python"),
        help="the device to run on (%(default)s)",
    )
    arguments.add_argument("--steps", type=count, default=steps, metavar="N", help=f"{steps_help} (%(default)s)")
    arguments.add_argument("--size", type=count, default=size, metavar="N", help=f"{size_help} (%(default)s)")
    where = arguments.add_mutually_exclusive_group()
    where.add_argument(
        "--out", type=Path, metavar="FILE",
        help=f"the picture; an animation if the name ends in .gif or .apng, a film if it ends in .mp4 or .webm ({out})",
    )  # fmt: skip
    where.add_argument("--view", action="store_true", help="show the steps in a window, and write no file")
    return arguments


def run(
    arguments: argparse.ArgumentParser, argv: Sequence[str] | None, body: Callable[[argparse.Namespace, Sink], None], *,
    fast_math: bool = True,
) -> int:  # fmt: skip
    """Parse ``argv``, initialise quadpy and run ``body``; returns 0, or 1 with a message on stderr.

    Pictures need speed, not identical bits everywhere; but without ``fast_math`` any number of ranks gives the same.

    With several ranks, the first one writes the picture.
    """
    args = arguments.parse_args(argv)
    try:
        sink = sink_for(args.out, args.view, arguments.prog)
        qp.init(arch=args.arch, fast_math=fast_math)
        body(args, sink)
        if qp.dist.world().rank:
            return 0
        done = sink.close()
    except (qp.QuadpyError, OSError) as error:
        print(f"{arguments.prog}: {error}", file=sys.stderr)
        return 1
    print(done)
    return 0


def play(steps: int, step: Callable[[], object], draw: Callable[[], Picture], sink: Sink, *, substeps: int = 1) -> None:
    """Call ``step`` ``steps`` times ``substeps``, and give ``sink`` the last picture, or the frames of its animation.

    A window that is closed ends it.
    """
    every = -(-steps // sink.most)
    for done in progress(steps):
        for _ in range(substeps):
            step()
        if (done + 1) % every == 0:
            sink.add(draw())
        if not sink.open:
            break


def progress(steps: int) -> Iterator[int]:
    """``range(steps)``, with progress on stderr: updated in place on a terminal, otherwise a line now and then."""
    terminal = sys.stderr.isatty()
    began = shown = time.monotonic()
    for done in range(steps):
        yield done
        now = time.monotonic()
        if now - began > QUIET_S and now - shown > (0.2 if terminal else LINE_S):
            left = (now - began) * (steps - done - 1) / (done + 1)
            text = f"step {done + 1} of {steps}, {left:.0f} s left"
            print(f"\r{text:<40}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)
            shown = now
    if terminal and shown != began:
        print(f"\r{'':<40}\r", end="", file=sys.stderr, flush=True)


def count(text: str) -> int:
    """A positive number from the command line."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value
