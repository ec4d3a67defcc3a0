"""Weak scaling of the heat equation over several GPUs, compared with one GPU and with torch.distributed's NCCL."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("heat.py")
WAYS = ("distributed", "exchange first", "captured", "torch")


def run(way: str, ranks: int, options: argparse.Namespace) -> dict[str, Any] | str:
    """What rank 0 measured, or why it could not."""
    words = ["--arch", options.arch, "--cells", str(options.cells), "--steps", str(options.steps)]
    if options.trace and way == "distributed" and ranks > 1:
        words += ["--trace", options.trace]
    command = [sys.executable, "-m", "quadpy", "run", "-n", str(ranks), str(PROGRAM), way, *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return f"no result after {options.limit} s"
    lines = [line.partition("{")[2] for line in done.stdout.splitlines() if '{"way"' in line]
    if done.returncode or not lines:
        told = [line for line in done.stderr.splitlines() if "Error" in line] or done.stderr.splitlines()[-1:]
        return told[0] if told else f"exit status {done.returncode}"
    found: dict[str, Any] = json.loads("{" + lines[-1])
    return found


def main(words: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="run.py ranks", description=__doc__)
    parser.add_argument("--arch", default="gpu", help="cpu, cuda, amdgpu or gpu")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2], help="numbers of ranks; 1 is always measured")
    parser.add_argument("--cells", type=int, default=512, help="cells along each side of a rank's block")
    parser.add_argument("--steps", type=int, default=100, help="steps of each of four runs")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--limit", type=float, default=180, help="seconds after which a run is aborted")
    parser.add_argument("--trace", help="a file for the Chrome trace of two steps of rank 0")
    parser.add_argument("--json", help="a file for the results")
    options = parser.parse_args(words)
    base = run("alone", 1, options)
    if isinstance(base, str):
        print(f"one device: {base}")
        return 1
    print(f"{options.cells}³ cells on each rank, float32; ms of a step, the slowest rank's median of 3 runs")
    print(f"{'way':16} {'ranks':>5} {'transport':>9} {'step':>9} {'weak scaling':>13} {'exchange':>9} {'hidden':>7}")
    print(f"{'one device':16} {1:5} {'':9} {base['step']:9.4f} {'100.0%':>13}")
    results: list[Any] = [base]
    for ranks in options.ranks:
        for way in options.ways:
            found = run(way, ranks, options)
            if isinstance(found, str):
                print(f"{way:16} {ranks:5} {found}")
                continue
            results.append(found)
            scaling = base["step"] / found["step"]
            line = f"{way:16} {ranks:5} {found['transport']:>9} {found['step']:9.4f} {scaling:13.1%}"
            line += f" {found['exchange']:9.4f}" if "exchange" in found else ""
            line += f" {found['hidden']:7.0%}" if "hidden" in found else ""
            print(line)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2), encoding="utf-8")
    return 0
