"""What `debug=True` costs: the example programs with and without checks.

Each number is the time of one more step: a run of twice the steps minus a run of the steps, which leaves out compilation and
pictures.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

EXAMPLES = {
    # steps and size on the CPU, then on a GPU
    "mandelbrot": ((2000, 160), (40000, 960)),
    "game_of_life": ((400, 512), (2000, 2048)),
    "nbody": ((3, 320), (40, 960)),
    "mpm88": ((200, 320), (400, 320)),
    "stable_fluids": ((10, 256), (60, 960)),
    "image_filter": ((4, 400), (200, 1200)),
    "conjugate_gradient": ((200, 256), (2000, 1024)),
    "decode": ((100, None), (240, None)),
}
"""Name -> what to run; a size of None leaves it to the example."""
MORE_WORDS = {"mandelbrot": ["--centre", "0", "--width", "0.1"]}  # inside the set, where each point takes all steps


def main(words: Sequence[str]) -> int:
    """Prints a table; with ``--child``, measures one example in this process, and prints JSON."""
    parser = argparse.ArgumentParser(prog="run.py debug", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help=f"of {', '.join(EXAMPLES)} (default: all)")
    parser.add_argument("--arch", default="cpu", help="cpu, amdgpu or cuda (%(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="measurements, of which the best counts (%(default)s)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if unknown := set(args.examples) - set(EXAMPLES):
        parser.error(f"there is no example {', '.join(unknown)}")
    if args.child:
        print(json.dumps(_seconds_a_step(args.examples[0], args.arch, args.runs)))
        return 0
    print(f"{'example':<20} {'plain':>12} {'debug':>12} {'ratio':>6}")
    for name in args.examples or EXAMPLES:
        plain, checked = (_measured(name, args, debug=debug) for debug in (False, True))
        print(f"{name:<20} {plain * 1e3:>9.3f} ms {checked * 1e3:>9.3f} ms {checked / plain:>6.2f}", flush=True)
    return 0


def _measured(name: str, args: argparse.Namespace, *, debug: bool) -> float:
    command = [sys.executable, sys.argv[0], "debug", "--child", name, "--arch", args.arch, "--runs", str(args.runs)]
    environment = {**os.environ, "QUADPY_DEBUG": str(int(debug))}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def _seconds_a_step(name: str, arch: str, runs: int) -> float:
    steps, size = EXAMPLES[name][arch != "cpu"]
    example = importlib.import_module(f"quadpy.examples.{name}")
    with tempfile.TemporaryDirectory() as folder:

        def run(count: int) -> float:
            words = ["--arch", arch, "--steps", str(count), "--out", str(Path(folder) / "picture.png")]
            words += [*(["--size", str(size)] if size else []), *MORE_WORDS.get(name, [])]
            start = time.perf_counter()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
                status = example.main(words)
            if status:
                raise SystemExit(f"{name}: {said.getvalue()}")
            return time.perf_counter() - start

        run(steps)  # compiles
        once, twice = zip(*((run(steps), run(2 * steps)) for _ in range(runs)), strict=True)
        return (min(twice) - min(once)) / steps
