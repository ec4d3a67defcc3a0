"""``quadpy save``: writes a graph or a kernel to a file that runs without the compiler."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from quadpy.cli.loading import call_quietly, load_function
from quadpy.cli.selection import add_kernel_arguments, configure, select
from quadpy.errors import ArgumentError
from quadpy.jit.kernel import Kernel

if TYPE_CHECKING:
    from quadpy.graph.building.graph import Graph

NAME: Final = "save"
_OPTIONS: Final = ("bind", "constants", "internal", "fuse")
HELP: Final = "write a graph, which a function returns, or a kernel to a file that runs without the compiler"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_kernel_arguments(
        parser,
        "MODULE:FUNCTION",
        "a function of a module (package.module:function) or file (file.py:function) that takes nothing and returns a graph "
        "and the arguments of its save method, such as (graph, {'bind': {'x': x}}); or a kernel",
    )
    parser.add_argument(
        "--target", required=True, metavar="T[,T...]", help="targets such as gfx942, gfx1100, sm_90, x86-64, arm64"
    )
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE",
        help="the file to write (default: the name of the function, with .qpg for a graph and .qpk for a kernel; "
        "with .hipfb, a kernel becomes a fat binary of HIP's)",
    )  # fmt: skip


def run(args: argparse.Namespace, out: TextIO) -> int:
    targets = args.target.split(",")
    name = args.kernels.rpartition(":")[2]
    found = load_function(args.kernels)
    if args.debug:
        raise ArgumentError("--debug: a saved file has no checks", hint="leave it out")
    if isinstance(found, Kernel):
        ((_, kernel, given),) = select(args)
        file = args.out or Path(f"{name}.qpk")
        kernel.save(file, targets, **given)
    else:
        if args.arguments:
            raise ArgumentError(
                f"--arg: {args.kernels} is no kernel", hint="give the function's arguments in the function"
            )
        configure(args)
        graph, options = _graph_of(args.kernels, found)
        file = args.out or Path(f"{name}.qpg")
        graph.save(file, targets=targets, **options)
    print(f"{file}  {file.stat().st_size} bytes", file=out)
    return 0


def _graph_of(where: str, function: Any) -> tuple[Graph, dict[str, Any]]:
    """What ``function`` returns; ArgumentError if that is no graph with the options of its save method."""
    found = call_quietly(where, function)
    match found:
        case (graph, dict() as options) if hasattr(graph, "save"):
            if unknown := [name for name in options if name not in _OPTIONS]:
                raise ArgumentError(
                    f"{where} returns {unknown[0]!r}, which Graph.save does not take",
                    hint=f"it takes {', '.join(_OPTIONS)}",
                )
            return graph, options
    raise ArgumentError(
        f"{where} returns {type(found).__name__}, not a graph and a dict",
        hint="return graph, {'bind': {'x': x}, 'internal': [grid]}",
    )
