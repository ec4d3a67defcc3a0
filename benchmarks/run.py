"""All benchmarks: `python benchmarks/run.py NAME --help`."""

from __future__ import annotations

import importlib
import sys

COMMANDS = {
    "cpu": ("cpu.command", "quadpy on the CPU compared with Taichi, Quadrants and numba"),
    "gpu": ("gpu.command", "quadpy on a GPU compared with CUDA C, Quadrants, numba-cuda, Triton and torch"),
    "graphs": ("gpu.graphs", "steps of several tasks, in every way to launch them"),
    "algorithms": ("host.algorithms", "qp.algorithms compared with NumPy, or torch (CUB)"),
    "launch": ("host.launch", "what a kernel call costs compared with the bare call of the driver"),
    "handles": ("host.handles", "what events, streams, small arrays and reads cost on a GPU"),
    "replay": ("host.replay", "what a replayed function costs compared with the calls that it replaces"),
    "debug": ("host.debug", "what debug=True costs the example programs"),
    "hazards": ("host.hazards", "what the hazard checker costs a launch"),
    "derivatives": ("host.derivatives", "what backward kernels cost compared with forward ones"),
    "profiler": ("host.profiler", "what a profile costs a launch, and what its events add"),
    "pool": ("host.pool", "what the CPU's thread pool costs, and what it gives"),
    "ranks": ("ranks.command", "weak scaling over several GPUs, compared with one, and with torch.distributed"),
    "instructions": ("instructions", "what kernels are on AMD GPUs: instructions, registers, waves"),
}


def main() -> int:
    """Runs the benchmark that the first word names, and returns its exit status."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in COMMANDS:
        print("usage: python benchmarks/run.py NAME [options]\n")
        print("\n".join(f"  {name:<13} {about}" for name, (_, about) in COMMANDS.items()))
        return 2 * (name not in ("-h", "--help"))
    status: int = importlib.import_module(COMMANDS[name][0]).main(sys.argv[2:])
    return status


if __name__ == "__main__":
    sys.exit(main())
