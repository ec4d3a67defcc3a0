"""What `debug=True` costs: a step of each example program with and without checks.

A step is measured warm, with its arrays on the device: by events on a GPU, by the processor's time on one thread of the CPU.  Checked and plain steps
run in processes of their own; of several samples, the fastest counts.  On the simulated device (``recording``) the host alone is
measured, and a loop on the device, as `conjugate_gradient` has, does not end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

import quadpy as qp
from harness.report import table
from harness.simulated import open_simulated
from host.example_steps import EXAMPLES, Step

Times = Mapping[str, float]
WARM = 2  # steps before the first sample: they compile, and fill the caches


def main(words: Sequence[str]) -> int:
    """Prints a table; with ``--child``, measures the examples in this process, and prints JSON."""
    options = _options(words)
    names = options.examples or list(EXAMPLES)
    if options.child:
        if options.arch == "recording":
            open_simulated()
        else:
            qp.init(arch=options.arch, fast_math=True, cpu_max_num_threads=1)  # as the examples
        for name in names:
            _say(name, options)
        return 0
    plain, checked = (_measured(names, options, debug=debug) for debug in (False, True))
    both = [name for name in names if name in plain and name in checked]
    lines = [
        [name, f"{plain[name] * 1e3:.3f}", f"{checked[name] * 1e3:.3f}", f"{checked[name] / plain[name]:.2f}"]
        for name in both
    ]
    print(table(["example", "plain, ms", "debug, ms", "ratio"], lines, 1))
    if both:
        print(f"\ngeometric mean {statistics.geometric_mean([checked[name] / plain[name] for name in both]):.2f}")
    if missing := [name for name in names if name not in both]:
        print(f"not measured: {', '.join(missing)}", file=sys.stderr)
    return int(bool(missing))


def _measured(names: Sequence[str], options: argparse.Namespace, *, debug: bool) -> Times:
    """Seconds of a step of each example, from a process with or without checks."""
    command = [sys.executable, sys.argv[0], "debug", "--child", *names]
    command += ["--arch", options.arch, "--seconds", str(options.seconds)]
    environment = {**os.environ, "QUADPY_DEBUG": str(int(debug))}
    done = subprocess.run(command, env=environment, check=False, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


def _say(name: str, options: argparse.Namespace) -> None:
    """Prints the seconds of a step; if it fails, the error, because others are still to be measured."""
    try:
        print(json.dumps([name, _seconds(name, options)]), flush=True)
    except qp.QuadpyError as error:
        print(f"{name}: {error}", file=sys.stderr)


def _seconds(name: str, options: argparse.Namespace) -> float:
    step = EXAMPLES[name](options.arch in ("amdgpu", "cuda"))
    for _ in range(WARM):
        step()
    qp.sync()
    timed = _by_events if options.arch in ("amdgpu", "cuda") else _on_one_thread
    once = timed(step, 1)
    count = max(1, round(options.seconds / 25 / once))
    samples, end = [timed(step, count)], time.perf_counter() + options.seconds
    while time.perf_counter() + once * count < end or len(samples) < 3:
        samples.append(timed(step, count))
    return min(samples)


def _on_one_thread(step: Step, count: int) -> float:
    begin = time.thread_time()  # leaves out what other processes take
    for _ in range(count):
        step()
    return (time.thread_time() - begin) / count


def _by_events(step: Step, count: int) -> float:
    begin, end = qp.create_event(timing=True), qp.create_event(timing=True)
    begin.record()
    for _ in range(count):
        step()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3 / count


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.py debug", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "examples", nargs="*", metavar="EXAMPLE", help=f"the examples to measure: {', '.join(EXAMPLES)} (default: all)"
    )
    parser.add_argument("--arch", choices=("cpu", "recording", "amdgpu", "cuda"), default="cpu")
    parser.add_argument("--seconds", type=float, default=0.5, help="seconds of samples for each example (%(default)s)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if unknown := set(options.examples) - set(EXAMPLES):
        parser.error(f"unknown example: {', '.join(sorted(unknown))}")
    return options
