"""``quadpy cache``: shows where the kernel cache is and how large it is, or clears it."""

from __future__ import annotations

import argparse
import json
from typing import Final, TextIO

from quadpy.cache.cache import open_cache
from quadpy.settings import settings

NAME: Final = "cache"
HELP: Final = "show or clear the kernel cache"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("size", "path", "clear"),
        default="size",
        help="print its size (the default) or its folder, or clear it",
    )
    parser.add_argument("--json", action="store_true", help="print JSON: path, entries, nbytes, limit, freed")


def run(args: argparse.Namespace, out: TextIO) -> int:
    cache = open_cache(settings())
    freed = cache.clear() if args.action == "clear" else 0
    if args.json:
        stats = cache.stats()
        found = {"path": str(cache.path) if cache.path else None, "entries": stats.entries, "nbytes": stats.nbytes}
        print(json.dumps({**found, "limit": stats.limit, "freed": freed}, indent=2), file=out)
    elif cache.path is None:
        print("the kernel cache is off", file=out)
    elif args.action == "path":
        print(cache.path, file=out)
    elif args.action == "clear":
        print(f"freed {freed / 2**20:.1f} MiB in {cache.path}", file=out)
    else:
        stats = cache.stats()
        used, limit = stats.nbytes / 2**20, stats.limit / 2**20
        print(f"{stats.entries} entries, {used:.1f} of {limit:.0f} MiB in {cache.path}", file=out)
    return 0
