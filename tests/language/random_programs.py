"""Random kernels one after another, each by its number: many of them, quickly, and without Hypothesis.

``python random_programs.py --first 0 --count 1000`` calls each and compares it with what the reference says; ``--mode
same`` compares numbers of threads and variants with each other; ``--mode python`` compares what Python runs with compiled
code; ``--mode debug`` does so with checks and without, ``--mode device --arch cuda`` with a GPU and the CPU; ``--mode
targets`` compiles each for five targets in child processes, of which there is a new one where a child crashed.  With
``--subnormals`` a third of the inputs and constants are subnormal numbers.  A failure prints a program that shows it alone.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import program_files
from random_kernels import program_of

import quadpy as qp
from quadpy.codegen.objects.elf import SHT_DYNSYM, read_elf
from quadpy.codegen.objects.metadata import read_metadata
from quadpy.codegen.report import report_tasks
from quadpy.core.target import parse_target
from quadpy.errors import KernelRaceError
from quadpy.jit.offline import compile_with_asm
from quadpy.runtime.cpu.loader import load_object

TARGETS = ("cpu", "gfx942", "gfx1100", "gfx1201", "sm_90")
HEAD = "import numpy as np\nimport quadpy as qp\n"


def differing(found, expected):
    """Where two sets of arrays differ, or None: the same bytes are asked for, but that all NaNs are one."""
    for name, x in expected.items():
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(found[name])
        same = x.view(f"u{x.itemsize}") == y.view(f"u{x.itemsize}")
        if x.dtype.kind == "f":
            same |= np.isnan(x) & np.isnan(y)
        if not same.all():
            at = tuple(np.argwhere(~same)[0].tolist())
            return f"{name}{list(at)} is {y[at]!r}, not {x[at]!r}"
    return None


def module_of(program, folder):
    return program_files.module_of(f"random_program_{os.getpid()}", HEAD + program.text, folder)


# What is asked of each program: None, or what is wrong.


def computes(program, folder):
    """What the reference says."""
    qp.init(arch="cpu", cpu_max_num_threads=2)
    with module_of(program, folder) as module:
        return differing(program.called(module), program.expected())


def python_bits(program, folder):
    """Compiled and as Python."""
    results = []
    for arch in ("cpu", "python"):
        qp.init(arch=arch, random_seed=7)
        with module_of(program, folder) as module:
            results.append(program.called(module))
    return differing(results[1], results[0])


def same_bits(program, folder):
    """One thread and three, arrays that may overlap or not."""
    results = []
    for threads, overlapping in ((1, False), (3, False), (3, not program.sums_floats)):
        qp.init(arch="cpu", cpu_max_num_threads=threads, random_seed=7)
        with module_of(program, folder) as module:
            results.append(program.called(module, overlapping=overlapping))
    return differing(results[1], results[0]) or differing(results[2], results[0])


def debug_bits(program, folder):
    """With checks, unless one fails, and without."""
    results = []
    for debug in (False, True):
        qp.init(arch="cpu", random_seed=7, debug=debug)
        with module_of(program, folder) as module:
            try:
                results.append(program.called(module))
            except KernelRaceError as error:
                return f"no iterations of the programs meet: {error}"
            except qp.KernelFault:
                return None if debug else "a check failed that is not on"
    return differing(results[1], results[0])


def device_bits(program, folder):
    """A GPU and the CPU."""
    results = []
    for arch in ("cpu", DEVICE):
        qp.init(arch=arch, random_seed=7)
        with module_of(program, folder) as module:
            results.append(program.called(module))
    return differing(results[1], results[0])


DEVICE = "gpu"
"""Which one: ``--arch`` says so."""


def compiles(program, folder):
    """For each target; and the code is what a launch takes it for."""
    with module_of(program, folder) as module:
        given = {a.name: getattr(module, f"{a.name}_field") for a in program.known if a.form == "template"}
        given |= {name: qp.types.ndarray(dtype=qp.u8, ndim=1) for name in ("other", "again")}
        for target in map(parse_target, TARGETS):
            if wrong := check_code(compile_with_asm(module.k, target, given), target):
                return f"{target}: {wrong}"
    return None


def check_code(code, target):
    if target.family == "cpu":
        return None if load_object(code.image).address(code.entry) else "no entry point"
    symbols = {task.symbol for task in code.tasks}
    if target.family == "nvptx":
        text = bytes(code.image).decode()
        entries = set(re.findall(r"\.entry (\S+)\(", text))
        return f"entries {entries} for {symbols}" if not symbols <= entries or ".extern .func" in text else None
    kernels = {kernel.name: kernel for kernel in read_metadata(code.image).kernels}
    if not symbols <= kernels.keys():
        return f"kernels {set(kernels)} for {symbols}"
    if undefined := [name for name, s in read_elf(code.image).symbols(SHT_DYNSYM) if name and not s.section]:
        return f"undefined: {undefined}"
    for task in code.tasks:
        kernel = kernels[task.symbol]
        if kernel.max_block_size < task.block_dim or kernel.kernarg_bytes < code.layout.size or kernel.dynamic_stack:
            return f"{task.symbol} is not what a launch takes it for: {kernel}"
    reports = report_tasks(code.image, code.asm, target)
    return None if len(reports) >= len(symbols) else "a task without a report"


MODES = {
    "exact": (computes, True),
    "same": (same_bits, False),
    "python": (python_bits, False),
    "debug": (debug_bits, False),
    "device": (device_bits, False),
    "targets": (compiles, False),
}


def failure(seed, mode, folder, *, subnormals=False):
    """What is wrong with the program of that number, and the program; None if nothing is."""
    check, exact = MODES[mode]
    program = program_of(seed, exact=exact, subnormals=subnormals)
    try:
        wrong = check(program, folder)
    except Exception:  # noqa: BLE001  (whatever a kernel raises is a finding)
        wrong = traceback.format_exc()
    return wrong and f"program {seed}, {mode}: {wrong}\n{alone(program)}"


def alone(program):
    """The program with its arguments, to be run by itself."""
    arrays = "\n".join(
        f"{name} = np.array({x.tolist()}, '{x.dtype}')".replace("nan", "np.nan").replace("inf", "np.inf")
        for name, x in program.arrays().items()
    )
    forms = ", ".join(f"{a.name}: {a.form}" for a in program.known if a.form != "view plain")
    return f"{HEAD}{program.text}\n{arrays}\n# arguments in the order of the parameters: {program.scalars}; {forms}\n"


def run(first, count, mode, say=print, *, subnormals=False):
    """The numbers of programs that fail; ``say`` gets a text for each."""
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            if mode == "targets":
                print(f"at {seed}", file=sys.stderr, flush=True)
            if wrong := failure(seed, mode, folder, subnormals=subnormals):
                failed.append(seed)
                say(wrong)
    return failed


def in_children(first, count, *, subnormals=False):
    """As ``run`` with "targets", in child processes: what makes LLVM abort is one failure.  Gives what they say."""
    said, at, end = [], first, first + count
    while at < end:
        command = [sys.executable, __file__, "--mode", "targets", "--child", *["--subnormals"] * subnormals]
        child = subprocess.run(
            [*command, "--first", str(at), "--count", str(end - at)], capture_output=True, text=True, check=False
        )
        if child.stdout:
            said.append(child.stdout)
        if child.stderr.endswith("done\n"):
            break
        crashed = int(re.findall(r"^at (\d+)$", child.stderr, re.MULTILINE)[-1])
        last_words = "\n".join(child.stderr.splitlines()[-5:])
        said.append(f"program {crashed} ended the process ({child.returncode}): {last_words}\n"
                    f"{alone(program_of(crashed, exact=False, subnormals=subnormals))}")  # fmt: skip
        at = crashed + 1
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--mode", choices=MODES, default="exact")
    parser.add_argument("--arch", default="gpu", help="for --mode device: cuda or amdgpu")
    parser.add_argument("--subnormals", action="store_true", help="subnormal numbers among inputs and constants")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    global DEVICE  # noqa: PLW0603 - a script has one
    DEVICE = qp.gpu if given.arch == "gpu" else given.arch
    if given.mode == "targets" and not given.child:
        said = in_children(given.first, given.count, subnormals=given.subnormals)
        print(*said, f"{given.count} programs for {len(TARGETS)} targets, {len(said)} failures", sep="\n")
        return bool(said)
    failed = run(given.first, given.count, given.mode, subnormals=given.subnormals)
    if given.child:
        print("done", file=sys.stderr)
    else:
        print(f"{given.count} programs, {given.mode}: {len(failed)} failures {failed}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
