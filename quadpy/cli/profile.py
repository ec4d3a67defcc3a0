"""``quadpy profile``: runs a program, and says what its devices spent their time on."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Final, TextIO

from quadpy.errors import QuadpyError

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
    """Run the program as Python would, then print the table, also of a program that fails; returns the program's status."""
    from quadpy.dist.rank import program_frames, run_program, status_of
    from quadpy.profiler import profile

    if not args.module and not Path(args.program).is_file():
        raise QuadpyError(f"there is no file {args.program}", hint="write -m before the name of a module")
    if args.trace and not Path(args.trace).resolve().parent.is_dir():
        raise QuadpyError(f"{args.trace} is in a folder that does not exist", hint="make the folder first")
    if args.limit is not None and args.limit < 0:
        raise QuadpyError(f"--limit {args.limit}: a table has 0 rows or more")
    measured, status = profile(nodes=not args.whole_graphs), 0
    try:
        with measured:
            run_program([*(["-m"] if args.module else []), args.program, *args.arguments])
    except SystemExit as end:
        status = status_of(end)
    except Exception as error:  # noqa: BLE001 - the program's own, which is shown as Python shows it
        status, trace = 1, program_frames(error)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    print(json.dumps(measured.to_json(), indent=2) if args.json else measured.table(args.sort, args.limit), file=out)
    if args.trace:
        measured.to_chrome(args.trace)
    return status
