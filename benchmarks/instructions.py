"""What the kernels of the GPU benchmark are on AMD GPUs: registers, spills, occupancy, instructions; no GPU is needed.

`python benchmarks/run.py instructions --json now.json --baseline before.json` shows what a change to quadpy did.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quadpy as qp
from harness.options import report
from harness.report import table
from quadpy.codegen.report import classify, report_tasks
from quadpy.core.target import parse_target
from quadpy.jit.offline import compile_with_asm

TARGETS = ("gfx942", "gfx1100")
KERNELS = {
    "loops": ("copy", "saxpy", "total_array", "histogram", "transcendental"),
    "grids": ("sweep",),
    "nbody": ("nbody", "nbody_tiled"),
    "matmul": ("matmul_16", "matmul_32", "matmul_registers"),
    "histogram": ("histogram_shared",),
    "mpm88": ("substep",),
    "launches": ("launch0", "launch2", "launch8", "add"),
    "overlap": ("spin",),
}
SHOWN = ("instructions", "loop", "loop memory", "valu", "salu", "memory", "vgprs", "sgprs", "spills", "waves")
MEMORY = ("vmem load", "vmem store", "smem", "lds", "atomics", "flat")

_LABEL = re.compile(r"(\.LBB\w+):")
_JUMP = re.compile(r"s_c?branch\w*\s+(\.LBB\w+)")

Record = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One task of a kernel for one target; `before` is the record of the same task in the baseline."""

    key: str
    record: Record
    before: Record | None = None


def main(words: Sequence[str]) -> int:
    """Writes what the command line asks for; the exit status is 1 if a kernel could not be compiled."""
    options = _options(words)
    baseline: dict[str, Record] = json.loads(options.baseline.read_text()) if options.baseline else {}
    records = {key: record for mode in (False, True) for key, record in _records(options.targets, fast_math=mode)}
    report(options, markdown([Row(key, record, baseline.get(key)) for key, record in records.items()]), records)
    return 1 if any("problem" in record for record in records.values()) else 0


def markdown(rows: list[Row]) -> str:
    """A table; where there is a baseline, each number is `before → now` if it changed."""
    lines = []
    for row in rows:
        problem = row.record.get("problem")
        found = [problem, *[""] * (len(SHOWN) - 1)] if problem else [_change(row, name) for name in SHOWN]
        lines.append([*row.key.split(), *found])
    return table(["task", "target", "mode", *SHOWN], lines, 3) + "\n"


def _change(row: Row, name: str) -> str:
    now, before = row.record[name], (row.before or {}).get(name)
    return str(now) if before in (None, now) else f"{before} → {now}"


def _records(targets: list[str], *, fast_math: bool) -> Iterator[tuple[str, Record]]:
    qp.init(arch=qp.cpu, fast_math=fast_math)
    mode = "fast" if fast_math else "strict"
    for module, names in KERNELS.items():
        kernels = importlib.import_module(f"gpu.qp_like.{module}")
        for name in names:
            for target in targets:
                try:
                    yield from _of_kernel(getattr(kernels, name), name, target, mode)
                except Exception as problem:  # noqa: BLE001, PERF203 - the others are reported all the same
                    text = getattr(problem, "message", "") or str(problem)
                    yield f"{name} {target} {mode}", {"problem": f"{type(problem).__name__}: {text.splitlines()[0]}"}


def _of_kernel(kernel: Any, name: str, target: str, mode: str) -> Iterator[tuple[str, Record]]:
    spec = parse_target(target)
    code = compile_with_asm(kernel, spec, {})
    reports = report_tasks(code.image, code.asm, spec)
    for index, task in enumerate(reports):
        counts = task.instructions
        label = name if len(reports) == 1 else f"{name}/{index}"
        loop, accesses = _innermost(code.asm, task.task)
        yield (
            f"{label} {target} {mode}",
            {
                "instructions": task.instruction_count,
                "loop": loop,
                "loop memory": accesses,
                "valu": counts["valu"],
                "salu": counts["salu"],
                "memory": sum(counts[each] for each in MEMORY),
                "vgprs": task.vgprs,
                "sgprs": task.sgprs,
                "spills": task.vgpr_spills + task.sgpr_spills,
                "lds": task.lds_bytes,
                "waves": task.occupancy.waves_per_simd,
                "limit": task.occupancy.limited_by,
                "classes": counts,
            },
        )


def _innermost(assembly: str, task: str) -> tuple[int, int]:
    """How many instructions the longest innermost loop of a task has, and how many of them access memory.

    A loop is a jump back to a label; it is innermost if no other lies within it.
    """
    at: dict[str, int] = {}
    loops: list[tuple[int, int]] = []
    classes: list[str] = []
    inside = False
    for line in assembly.splitlines():
        text = line.strip()
        if line and not line[0].isspace() and ":" in line:
            label = _LABEL.match(line)
            inside = line.split(":")[0].strip('"') == task or (inside and label is not None)
            if label:
                at[label[1]] = len(classes)
        elif inside and text and text[0] not in ".;":
            if (kind := classify(text.split(maxsplit=1)[0])) != "wait":
                classes.append(kind)
            if (jump := _JUMP.match(text)) and jump[1] in at:
                loops.append((at[jump[1]], len(classes)))
    inner = [a for a in loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    start, end = max(inner, key=lambda loop: loop[1] - loop[0], default=(0, 0))
    return end - start, sum(kind in MEMORY for kind in classes[start:end])


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.py instructions", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    parser.add_argument("--baseline", type=Path, help="JSON of an earlier run: show what changed")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    return parser.parse_args(words)
