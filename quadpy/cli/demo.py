"""``quadpy demo``: lists the examples, or runs one."""

from __future__ import annotations

import argparse
import importlib
from typing import Any, Final, TextIO

NAME: Final = "demo"
HELP: Final = "run an example, which draws a picture, or list all examples"

EXAMPLES: Final = (
    "mpm88",
    "nbody",
    "mandelbrot",
    "stable_fluids",
    "game_of_life",
    "image_filter",
    "conjugate_gradient",
    "decode",
    "materials",
    "cloth",
    "sph",
    "path_tracer",
    "lattice_boltzmann",
    "two_stream",
    "seismic",
    "crawler",
    "predator_prey",
    "throw",
    "heat_sink",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", choices=EXAMPLES, help="the example to run; without a name, all examples are listed"
    )
    parser.add_argument("options", nargs=argparse.REMAINDER, help="options for the example, such as --help")


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Returns the exit status of the example."""
    if args.name is not None:
        return int(_module(args.name).main(args.options))
    for name in EXAMPLES:
        summary, *_ = (_module(name).__doc__ or "").splitlines()
        print(f"  {name:<19} {summary}", file=out)
    print("run one: quadpy demo NAME --out picture.png; watch one: quadpy demo NAME --view", file=out)
    print("see its options: quadpy demo NAME --help", file=out)
    return 0


def _module(name: str) -> Any:
    return importlib.import_module(f"quadpy.examples.{name}")
