"""The program that a command runs, with its own arguments, as after ``python``."""

from __future__ import annotations

import argparse
from pathlib import Path

from quadpy.errors import QuadpyError

__all__ = ["add_program", "program_of"]


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add ``-m``, the program, and all that comes after it, which is the program's."""
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module, as for python -m")
    parser.add_argument(
        "program",
        nargs=argparse.PARSER,
        metavar="program",
        help="a file of Python, or with -m a module; then its arguments",
    )


def program_of(args: argparse.Namespace) -> list[str]:
    """The arguments for Python: the program, with ``-m`` before a module, and its own arguments.

    Raises:
        QuadpyError: there is no such file.
    """
    program: list[str] = args.program
    if args.module:
        return ["-m", *program]
    file = Path(program[0])
    if not file.exists():
        raise QuadpyError(f"there is no file {file}", hint="write -m before the name of a module")
    if file.is_dir() and not (file / "__main__.py").is_file():
        raise QuadpyError(f"{file} is a folder without a program: it has no __main__.py")
    return program
