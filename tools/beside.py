"""Prints the numbers of two reports of benchmarks side by side: python -m tools.beside LAST.json NOW.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from quadpy.selftest.comparison import lines_of, ratios

_NOISE = ("spread", "rounds", "load")


def main(last: str, now: str) -> None:
    trees = [json.loads(Path(file).read_text(encoding="utf-8")) for file in (last, now)]
    rows = [row for row in ratios(*trees) if not any(word in _NOISE for word in row[0].split())]
    print(*lines_of([("", "last", "now", ""), *rows]), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
