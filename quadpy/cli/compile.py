"""``quadpy compile``: writes code objects, even for targets that this machine does not have.

The folder gets one file per kernel and target, and ``manifest.json``, which lists for each file its symbols, the layout
of its arguments, how each task accesses each array, and which resources it uses.
"""

from __future__ import annotations

import argparse
import json
import struct
from pathlib import Path
from typing import Any, Final, TextIO

from quadpy._version import __version__
from quadpy.cli.selection import add_kernel_arguments, add_target_arguments, select, targets_of
from quadpy.codegen.report import report_tasks
from quadpy.core.artifact import AbiValue, CodeObject
from quadpy.core.flow import flow_to_json
from quadpy.core.target import TargetSpec

NAME: Final = "compile"
HELP: Final = "write code objects and a manifest"

MANIFEST: Final = "manifest.json"
_ENDINGS: Final = {"cpu": "o", "amdgpu": "hsaco", "nvptx": "ptx"}
_SCHEMA: Final = 1
_RESOURCES: Final = (
    "wave_size", "block_dim", "vgprs", "agprs", "sgprs", "vgpr_spills", "sgpr_spills", "scratch_bytes", "lds_bytes",
    "kernarg_bytes", "occupancy",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_kernel_arguments(parser)
    add_target_arguments(parser)
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="the folder to write to (default: the current folder)",
    )


def run(args: argparse.Namespace, out: TextIO) -> int:
    from quadpy.jit.offline import compile_for

    targets = targets_of(args)
    selected = select(args)
    args.out.mkdir(parents=True, exist_ok=True)
    entries = []
    for name, kernel, given in selected:
        for target in targets:
            code = compile_for(kernel, target, given)
            file = args.out / _file_name(name, target)
            file.write_bytes(code.image)
            entries.append({"kernel": name, "file": file.name, **describe(code, target)})
            print(f"{file}  {len(code.image)} bytes", file=out)
    manifest = {"schema": _SCHEMA, "quadpy": __version__, "code_objects": entries}
    (args.out / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return 0


def _file_name(kernel: str, target: TargetSpec) -> str:
    return f"{kernel}-{str(target).replace(':', '-')}.{_ENDINGS[target.family]}"


def describe(code: CodeObject, target: TargetSpec) -> dict[str, Any]:
    """Everything that a launch of ``code`` needs, and the resources of its tasks, in types that JSON has.

    ``effects`` combines how the tasks access each array: ``r`` reads, ``w`` writes, ``a`` updates atomically; ``flow`` is
    their order.
    """
    effects: dict[str, str] = {}
    for task in code.tasks:
        for array, letters in task.effects:
            effects[array] = "".join(letter for letter in "rwa" if letter in effects.get(array, "") + letters)
    return {
        "target": code.target,
        "entry": code.entry if target.family == "cpu" else None,
        "tasks": [{**task.to_json(), "effects": dict(task.effects)} for task in code.tasks],
        "flow": flow_to_json(code.steps),
        "arguments": [_argument(value) for value in code.layout.values],
        "argument_bytes": code.layout.size,
        "scratch_slots": code.slots,
        "results": list(code.results),
        "effects": effects,
        "resources": _resources(code, target),
    }


def _argument(value: AbiValue) -> dict[str, Any]:
    """``format`` is the type of the value as a format character of Python's ``struct``."""
    return {
        "parameter": value.param, "part": value.part, "axis": value.axis, "offset": value.offset,
        "bytes": struct.calcsize(value.code), "format": value.code,
    }  # fmt: skip


def _resources(code: CodeObject, target: TargetSpec) -> dict[str, dict[str, object]]:
    """By task; empty for the CPU, and for NVIDIA, whose driver allocates registers."""
    if target.family != "amdgpu":
        return {}
    reports = {report.task: report.to_dict() for report in report_tasks(code.image, "", target)}
    return {task: {key: facts[key] for key in _RESOURCES} for task, facts in reports.items()}
