"""``quadpy profile``: runs a program, and shows how its devices spent their time."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from quadpy.cli.program_arguments import add_program, program_of
from quadpy.errors import QuadpyError

NAME: Final = "profile"
HELP: Final = "run a program, and show how its devices spent their time"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trace", metavar="FILE", help="also write a timeline for https://ui.perfetto.dev")
    parser.add_argument(
        "--sort",
        choices=("total", "mean", "calls", "name"),
        default="total",
        help="the order of the rows (default: total)",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="show at most N rows")
    parser.add_argument("--whole-graphs", action="store_true", help="time graphs as a whole, not node by node")
    parser.add_argument(
        "--json", action="store_true", help="print JSON: each row of the table; the program's output goes to stderr"
    )
    add_program(parser)


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Run the program as Python would, then print the table, even if the program fails; returns its status."""
    from quadpy.dist.programs import run_program, shown_error, status_of
    from quadpy.profiler import profile

    program = program_of(args)
    if args.trace and not Path(args.trace).resolve().parent.is_dir():
        raise QuadpyError(f"{args.trace} is in a folder that does not exist", hint="make the folder first")
    if args.limit is not None and args.limit < 0:
        raise QuadpyError(f"--limit {args.limit}: a table has 0 rows or more")
    measured, status = profile(nodes=not args.whole_graphs), 0
    try:
        with measured, on_stderr() if args.json else contextlib.nullcontext():
            run_program(program)
    except SystemExit as end:
        status = status_of(end)
    except Exception as error:  # noqa: BLE001 - the program's own, which is shown as Python shows it
        status, shown = 1, shown_error(error)
        sys.excepthook(type(shown), shown, shown.__traceback__)
    print(json.dumps(measured.to_json(), indent=2) if args.json else measured.table(args.sort, args.limit), file=out)
    if args.trace:
        measured.to_chrome(args.trace)
    return status


@contextlib.contextmanager
def on_stderr() -> Iterator[None]:
    """Meanwhile, output of Python, libraries and child processes to stdout goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
