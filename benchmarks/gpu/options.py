"""What a child process is told on its command line."""

from __future__ import annotations

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """`scale` is full, quick or tiny; `first` a workload whose first call is all that the child measures."""

    system: str
    arch: str
    scale: str
    cache: str
    first: str | None = None

    def command(self) -> list[str]:
        words = [self.system, "--arch", self.arch, "--scale", self.scale, "--cache", self.cache]
        return words + (["--first", self.first] if self.first else [])


def parse() -> Options:
    parser = argparse.ArgumentParser(description="The child process of gpu.py.")
    parser.add_argument("system")
    for option in ("arch", "scale", "cache"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--first")
    return Options(**vars(parser.parse_args()))
