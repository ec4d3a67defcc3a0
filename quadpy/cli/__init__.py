"""The command ``quadpy``.

A subcommand is a module with four names: ``NAME``, ``HELP``, ``add_arguments(parser)`` and ``run(args, out)``, which
returns the exit status.  It parses, calls the library and prints.  A ``QuadpyError`` or an ``OSError`` becomes a message
on stderr and exit status 1.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol, TextIO

from quadpy._version import __version__
from quadpy.cli import cache, compile, demo, doctor, inspect, lint, new, profile, report, run, save, selftest  # noqa: A004 - the module is named as the command
from quadpy.cli.parser import Parser
from quadpy.errors import QuadpyError

__all__ = ["main"]


class Subcommand(Protocol):
    """The names that each subcommand defines."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None: ...

    def run(self, args: argparse.Namespace, out: TextIO, /) -> int: ...


SUBCOMMANDS: Final[tuple[Subcommand, ...]] = (
    doctor,
    selftest,
    compile,
    save,
    report,
    inspect,
    lint,
    profile,
    cache,
    demo,
    new,
    run,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns 0 for success, 1 for a failure, 2 for a wrong command line, 3 for an exceeded budget."""
    args = _parser().parse_whole(argv)
    run = args.run
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - it may be closed
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8
    try:
        return int(run(args, sys.stdout))
    except BrokenPipeError:  # the reader, such as head, has closed the pipe; flushing at exit would fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT  # the exit status that shells use
    except (QuadpyError, OSError) as error:
        print(f"quadpy: {error}", file=sys.stderr)
        return 1


def _parser() -> Parser:
    parser = Parser(prog="quadpy", description="Kernels in Python, for AMD GPUs, NVIDIA GPUs and every CPU.")
    parser.add_argument("--version", action="version", version=f"quadpy {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in SUBCOMMANDS:
        sub = commands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser
