"""What ``quadpy inspect`` shows of a file that ``quadpy save`` or ``graph.save`` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from quadpy.core.messages import counted
from quadpy.core.target import parse_target
from quadpy.errors import ArgumentError

ENDINGS: Final = (".qpg", ".qpk")
"""Of files with a graph, and with a kernel alone."""


def show(path: str, picture: str | None, out: TextIO) -> int:
    """Print arrays or parameters, works with their order, and for each target the registers of each task.

    The works are drawn in ``picture``, if that is a path.
    """
    from quadpy.graph.model.drawing import svg_of
    from quadpy.graph.model.inspect import table_of
    from quadpy.graph.saved.arrays import ArrayInfo
    from quadpy.graph.saved.manifest import read
    from quadpy.graph.saved.nodes import info_of

    file = read(Path(path).read_bytes())
    manifest = file.manifest
    print(f"{path}: a {file.kind} in format {manifest['format']}, saved by quadpy {manifest['quadpy']}", file=out)
    arrays = {array["name"]: str(ArrayInfo.of(array)) for array in manifest["arrays"]}
    info = info_of(manifest["works"], manifest["kernels"])
    if file.kind == "graph":
        print("arrays", *arrays.values(), sep="\n  ", file=out)
        print(table_of(info), file=out)
    else:
        print("parameters", *_parameters(manifest, arrays), sep="\n  ", file=out)
    fused = [] if manifest["fused"] is None else [manifest["fused"]["kernel"]]
    for target in file.targets:
        codes = [kernel["code"] for kernel in manifest["kernels"] + fused]
        images = {code[target]["image"] for code in codes if target in code}
        size = sum(len(file.entries[image]) for image in images)
        print(f"{target}: {counted(len(images), 'image')}, {size:,} bytes", file=out)
        for kernel in manifest["kernels"]:
            for line in _tasks(kernel["code"][target], target, file.entries):
                print(f"  {kernel['name']}: {line}", file=out)
        for line in _one_launch(manifest["fused"], target, file.entries):
            print(f"  one launch: {line}", file=out)
    if picture is not None:
        if (drawing := svg_of(info)) is None:
            raise ArgumentError(f"{path} has no works to draw, or too many")
        Path(picture).write_text(drawing, encoding="utf-8")
    return 0


def _parameters(manifest: dict[str, Any], arrays: Mapping[str, str]) -> Iterator[str]:
    """Each parameter of a kernel with its type, in order, and what it returns."""
    for name, kind, *more in manifest["parameters"]["values"]:
        if kind == "array":
            yield arrays[name]
        elif kind == "struct":
            members = (_by_value(path, *type) for path, *type in map(str.split, more))
            yield f"{name}: struct({', '.join(members)})"
        else:
            yield _by_value(name, kind, *more)
    for code in list(manifest["kernels"][0]["code"].values())[:1]:
        if code["results"]:
            yield f"returns {', '.join(code['results'])}"


def _by_value(name: str, scalar: str, *shape: str) -> str:
    return f"{name}: {'x'.join([scalar, *shape])}"


def _one_launch(fused: dict[str, Any] | None, target: str, entries: dict[str, bytes]) -> list[str]:
    """A line about all works in one launch; or why that is not possible."""
    if fused is None or target not in fused["kernel"]["code"]:
        return [] if fused is None or target not in fused["why_not"] else [f"no, {fused['why_not'][target]}"]
    code = fused["kernel"]["code"][target]
    (task,), meetings = _tasks(code, target, entries), code["tasks"][0]["meetings"]
    return [f"{task}; its blocks meet {counted(meetings, 'time')}, in place of {counted(code['depth'], 'launch')}"]


def _tasks(code: dict[str, Any], target: str, entries: dict[str, bytes]) -> list[str]:
    """A line for each task: the registers and shared memory of AMD's code, which has notes of them."""
    spec = parse_target(target)
    if spec.family != "amdgpu":
        return [f"{task['symbol']}" for task in code["tasks"]]
    from quadpy.codegen.report import report_tasks

    return [
        f"{report.task}: {report.vgprs} VGPRs, {report.sgprs} SGPRs, {report.lds_bytes} bytes of LDS, "
        f"{report.occupancy.waves_per_simd} waves per SIMD"
        for report in report_tasks(entries[code["image"]], "", spec)
    ]
