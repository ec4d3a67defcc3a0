"""The program that a command runs, with its own arguments, as after ``python``."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

from quadpy.errors import QuadpyError


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add ``-m``, the program, and all following arguments, which belong to the program."""
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module, as for python -m")
    parser.add_argument(
        "program",
        nargs=argparse.PARSER,
        metavar="program",
        help="a Python file or, with -m, a module, followed by its arguments",
    )


def program_of(args: argparse.Namespace) -> list[str]:
    """The arguments for Python: the program, with ``-m`` before a module, and its own arguments.

    Raises:
        QuadpyError: there is no such file or module.
    """
    program: list[str] = args.program
    if args.module:
        _require_module(program[0])
        return ["-m", *program]
    file = Path(program[0])
    if not file.exists():
        raise QuadpyError(f"there is no file {file}", hint="write -m before the name of a module")
    if file.is_dir() and not (file / "__main__.py").is_file():
        raise QuadpyError(f"{file} is a folder without a program: it has no __main__.py")
    return program


def _require_module(name: str) -> None:
    found = find_module(name)
    if found is None:
        raise QuadpyError(f"there is no module {name!r}", hint="name it as for python -m; a file is named without -m")
    if found.submodule_search_locations is not None and find_module(f"{name}.__main__") is None:
        raise QuadpyError(f"{name!r} is a package without __main__", hint="name one of its modules")


def find_module(name: str) -> ModuleSpec | None:
    """The module ``name``, which may be in the current folder; None if there is none."""
    if sys.path[:1] != [""]:
        sys.path.insert(0, "")  # a console script does not have the current folder in its path
    try:
        return importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):
        return None
