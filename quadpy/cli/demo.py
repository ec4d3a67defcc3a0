"""``quadpy demo``: lists the examples, or runs one with the options that follow its name."""

from __future__ import annotations

import argparse
import importlib
from typing import Any, Final, TextIO

__all__ = ["HELP", "NAME", "add_arguments", "run"]

NAME: Final = "demo"
HELP: Final = "list the examples, or run one: they draw pictures"

EXAMPLES: Final = (
    "mpm88",
    "nbody",
    "mandelbrot",
    "stable_fluids",
    "game_of_life",
    "image_filter",
    "conjugate_gradient",
    "decode",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", choices=EXAMPLES, help="without one, the examples are listed")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of the example; --help tells which it has")


def run(args: argparse.Namespace, out: TextIO) -> int:
    """The exit status is that of the example."""
    if args.name is not None:
        return int(_module(args.name).main(args.options))
    for name in EXAMPLES:
        summary, *_ = (_module(name).__doc__ or "").splitlines()
        print(f"  {name:<19} {summary}", file=out)
    print("run one with: quadpy demo NAME --out picture.png, and see its options with --help", file=out)
    return 0


def _module(name: str) -> Any:
    return importlib.import_module(f"quadpy.examples.{name}")
