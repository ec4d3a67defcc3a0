"""``quadpy lint``: finds races inside parallel loops, without running a kernel."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Final, TextIO

from quadpy.cli.loading import CannotRunError
from quadpy.cli.selection import add_kernel_arguments, select
from quadpy.errors import QuadpyError

NAME: Final = "lint"
HELP: Final = "find races between the iterations of parallel loops"

STATUS: Final[Mapping[str, int]] = {"clean": 0, "races": 1, "unchecked": 3}
"""The exit status for each outcome of a report; a file that cannot be run is unchecked, too."""
WRONG_COMMAND_LINE: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_kernel_arguments(parser)
    parser.epilog = (
        "exit status: 0: no definite races; 1: definite races; 2: wrong command line; 3: no definite races, but "
        "not all kernels could be checked"
    )
    parser.add_argument("--all", action="store_true", help="also show arrays that are proved free of races")
    parser.add_argument("--json", action="store_true", help="print JSON: each array of each loop, and what is known")


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Print the findings; the exit status is one of ``STATUS``, or 2 if the command line names no kernel."""
    from quadpy.jit.lint import lint_kernels

    try:
        selected = select(args)
    except (QuadpyError, OSError) as error:
        print(f"quadpy: {error}", file=sys.stderr)
        return STATUS["unchecked"] if isinstance(error, CannotRunError) else WRONG_COMMAND_LINE
    report = lint_kernels({each.name: (each.kernel, each.given) for each in selected})
    if args.json:
        print(json.dumps(report.to_json(), indent=2), file=out)
    else:
        proved = [each for each in report.checked if each.outcome == "proved"] if args.all else []
        for each in proved:
            print(each, file=out)
        print(report, file=out)
    return STATUS[report.outcome]
