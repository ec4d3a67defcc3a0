"""``quadpy lint``: finds races inside parallel loops, without running a kernel."""

from __future__ import annotations

import argparse
import json
from typing import Final, TextIO

from quadpy.cli.selection import add_kernel_arguments, select

__all__ = ["HELP", "NAME", "add_arguments", "run"]

NAME: Final = "lint"
HELP: Final = "find races between the iterations of parallel loops"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_kernel_arguments(parser)
    parser.add_argument("--all", action="store_true", help="also show what is proved free of races")
    parser.add_argument("--json", action="store_true", help="print JSON: each array of each loop, and what is known")


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Print what was found; the exit status is 1 if there are definite races."""
    from quadpy.jit.lint import lint_kernels

    report = lint_kernels({each.name: (each.kernel, each.given) for each in select(args)})
    if args.json:
        print(json.dumps(report.to_json(), indent=2), file=out)
    else:
        proved = [each for each in report.checked if each.outcome == "proved"] if args.all else []
        for each in proved:
            print(each, file=out)
        print(report, file=out)
    return 1 if report.races else 0
