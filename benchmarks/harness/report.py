"""Rows as tables for people (Markdown) and as JSON for programs; and what the numbers depend on."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.runner import SCALE, Plan, Row, W

PACKAGES = ("quadpy", "llvmlite", "cuda-bindings", "quadrants", "numba", "numba-cuda", "triton", "torch", "numpy")


def facts(plan: Plan, device: str) -> dict[str, Any]:
    """The date, the machine and the software of the measurement."""
    return {
        "date": dt.datetime.now(tz=dt.timezone.utc).strftime("%d %B %Y").lstrip("0"),
        "device": device,
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "rounds": plan.rounds,
        "scale": plan.scale,
    }


def heading(about: dict[str, Any]) -> str:
    """The same in one sentence."""
    packages = [f"{name} {version}" for name, version in about["packages"].items()]
    more = [f"{name} {about[name]}" for name in about if name not in ("date", "device", "packages", "rounds", "scale")]
    scale = f", scale {about['scale']}" * (about["scale"] != "full")
    things = ", ".join(filter(None, [about["device"], *more, *packages]))
    return f"{about['date']}: {things}; {about['rounds']} rounds{scale}."


def table(head: Sequence[str], lines: Iterable[Sequence[str]], texts: int) -> str:
    """A table whose first `texts` columns are text, and the others numbers."""
    rows = [head, *lines]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    rule = ["-" * width if i < texts else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    aligned = [
        [cell.ljust(w) if i < texts else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in [aligned[0], rule, *aligned[1:]])


def bullets(title: str, lines: Sequence[str]) -> list[str]:
    """A list under its title; nothing if it is empty."""
    return [f"{title}:\n\n" + "\n".join(f"- {line}" for line in lines)] if lines else []


def not_measured(rows: Iterable[Any], absent: dict[str, str]) -> list[str]:
    """What failed, and which systems are missing."""
    lines = [f"{system} is not there: {text}" for system, text in absent.items()]
    lines += [f"{row.title}, {system}: {text}" for row in rows for system, text in row.problems.items()]
    return bullets("Not measured", lines)


def scaled(time: float | None, unit: str) -> str:
    """A time as a number in its unit."""
    if time is None:
        return "-"
    value = time * SCALE[unit]
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def cell(row: Row[W], system: str) -> str:
    """A system's time, or why there is none."""
    if problem := row.problems.get(system):
        return problem.split()[0] if problem.startswith(("wrong", "differs")) else "failed"
    return scaled(row.time(system), row.workload.unit)


def record(row: Row[W], **more: Any) -> dict[str, Any]:
    """A row for JSON."""
    return {
        "workload": row.workload.name,
        "title": row.title,
        "size": row.size,
        "fast_math": row.fast_math,
        "unit": row.workload.unit,
        "seconds": row.seconds,
        "time": {system: row.time(system) for system in row.seconds},
        "spread": {system: row.spread(system) for system in row.seconds},
        "ways": row.ways,
        "problems": row.problems,
        **more,
    }


def first_line(*words: str, last: bool = False) -> str:
    """The first line that a program prints, or the last; empty if the program is not installed."""
    if not shutil.which(words[0]):
        return ""
    lines = subprocess.run(words, check=False, capture_output=True, text=True).stdout.strip().splitlines()
    return lines[-1 if last else 0].strip() if lines else ""


def processor() -> str:
    """The model of this machine's processors, and how many there are."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} x {len(names)}" if names else platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
