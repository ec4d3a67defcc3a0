"""``quadpy cache``: shows where the kernel cache is and how large it is, or clears it."""

from __future__ import annotations

import argparse
from typing import Final, TextIO

from quadpy.codegen.cache.cache import open_cache
from quadpy.settings import settings

__all__ = ["HELP", "NAME", "add_arguments", "run"]

NAME: Final = "cache"
HELP: Final = "show or clear the kernel cache"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("size", "path", "clear"), default="size")


def run(args: argparse.Namespace, out: TextIO) -> int:
    cache = open_cache(settings())
    if cache.path is None:
        print("the kernel cache is off", file=out)
    elif args.action == "path":
        print(cache.path, file=out)
    elif args.action == "clear":
        print(f"freed {cache.clear() / 2**20:.1f} MiB in {cache.path}", file=out)
    else:
        stats = cache.stats()
        used, limit = stats.nbytes / 2**20, stats.limit / 2**20
        print(f"{stats.entries} entries, {used:.1f} of {limit:.0f} MiB in {cache.path}", file=out)
    return 0
