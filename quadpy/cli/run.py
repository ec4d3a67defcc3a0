"""``quadpy run``: runs a program on several ranks."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final, TextIO

from quadpy.cli.program_arguments import add_program, program_of
from quadpy.dist.launching import command_for, environment_for, run_again_after_failures

NAME: Final = "run"
HELP: Final = "run a program on several ranks of this host, or of the hosts that mpiexec knows"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--ranks", type=int, default=1, metavar="N", help="the number of ranks (default: 1)")
    parser.add_argument(
        "--restarts", type=int, default=0, metavar="N", help="start the program again after a failure, at most N times"
    )
    parser.add_argument("--show", action="store_true", help="print the command instead of running it")
    add_program(parser)


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Become mpiexec, which passes on signals and the ranks' exit status."""
    command = command_for(args.ranks, program_of(args))
    if args.show:
        print(*command, file=out)
        return 0
    sys.stdout.flush()
    if args.restarts:
        return run_again_after_failures(command, environment_for(args.ranks), args.restarts)
    os.execvpe(command[0], command, environment_for(args.ranks))  # noqa: S606 - the user's own mpiexec
