"""``quadpy profile``: runs a program, and says what its devices spent their time on."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from quadpy.errors import QuadpyError

if TYPE_CHECKING:
    from quadpy.profiler import profile

__all__ = ["HELP", "NAME", "add_arguments", "run"]

NAME: Final = "profile"
HELP: Final = "run a program, and show what its devices spent their time on"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trace", metavar="FILE", help="also write a timeline, which https://ui.perfetto.dev opens")
    parser.add_argument("--sort", choices=("total", "mean", "calls", "name"), default="total", help="order of the rows")
    parser.add_argument("--limit", type=int, metavar="N", help="show N rows")
    parser.add_argument("--whole-graphs", action="store_true", help="time graphs as a whole, not node by node")
    parser.add_argument("--json", action="store_true", help="print JSON: each row of the table")
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module, as for python -m")
    parser.add_argument("program", help="a file of Python, or with -m a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Run the program as Python would, then print the table; the exit status is the program's."""
    from quadpy.profiler import profile

    if not args.module and not Path(args.program).is_file():
        raise QuadpyError(f"there is no file {args.program}", hint="write -m before the name of a module")
    measured = profile(nodes=not args.whole_graphs)
    status = 0
    try:
        with measured:
            _run_program(args)
    except SystemExit as end:
        status = _status(end)
    finally:  # also of a program that failed
        _show(args, measured, out)
    return status


def _show(args: argparse.Namespace, measured: profile, out: TextIO) -> None:
    if args.trace:
        measured.to_chrome(args.trace)
    if args.json:
        print(json.dumps(measured.to_json(), indent=2), file=out)
    else:
        print(measured.table(args.sort, args.limit), file=out)


def _run_program(args: argparse.Namespace) -> dict[str, Any]:
    sys.argv = [args.program, *args.arguments]
    if args.module:
        sys.path.insert(0, str(Path.cwd()))
        return runpy.run_module(args.program, run_name="__main__", alter_sys=True)
    sys.path.insert(0, str(Path(args.program).resolve().parent))
    return runpy.run_path(args.program, run_name="__main__")


def _status(end: SystemExit) -> int:
    """The exit status that ``end`` asks for; a text is printed, as Python does."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1
