"""The options that all comparisons have."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def parser_of(name: str, about: str | None, names: Sequence[str], systems: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of one comparison: which workloads and systems, for how long, and where the report goes."""
    parser = argparse.ArgumentParser(prog=f"run.py {name}", description=(about or "").partition("\n")[0])
    parser.add_argument("--only", type=_among(names), default=names, metavar="NAME,...", help=" ".join(names))
    parser.add_argument("--systems", type=_among(systems), default=systems, metavar="NAME,...", help=", ".join(systems))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer and shorter rounds")
    parser.add_argument("--check", action="store_true", help="run the smallest sizes once, to check the results")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    return parser


def scale_of(options: argparse.Namespace) -> str:
    return "tiny" if options.check else "quick" if options.quick else "full"


def rounds_of(options: argparse.Namespace) -> int:
    return int(options.rounds or (1 if options.check else 3 if options.quick else 5))


def report(options: argparse.Namespace, text: str, data: dict[str, Any]) -> None:
    """Prints the tables, and writes the requested files."""
    print(text)
    if options.json:
        write(options.json, json.dumps(data, indent=1) + "\n")
    if options.markdown:
        write(options.markdown, text)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _among(known: Sequence[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        found = [name for name in text.split(",") if name]
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {name!r}; there are {', '.join(known)}")
        return found

    return names
