"""Plans of saved machine code: ordinary ones, except that nothing can be compiled again."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, NoReturn

from quadpy.core.artifact import CodeObject, ResultShape
from quadpy.core.importing import import_late
from quadpy.core.public import call_site
from quadpy.core.source import Span
from quadpy.core.target import parse_target
from quadpy.errors import ArgumentError, SavedGraphError
from quadpy.graph.saved.facts import code_from_json
from quadpy.graph.saved.hosts import here, load_library
from quadpy.graph.saved.manifest import SavedFile, read
from quadpy.graph.saved.saving import file_of
from quadpy.jit.cpu_plan import ENTRY, CpuPlan
from quadpy.jit.gpu_plan import GpuPlan, effects_of
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.modules import is_code_for


def opened(path: str | os.PathLike[str], target: str | None, kind: str) -> tuple[SavedFile, str, Device]:
    """The file at ``path``, which has a "graph" or a "kernel"; the target whose code runs; and the current device.

    Raises:
        SavedGraphError: it is neither, has the other one, is damaged, or has no code for the device.
        OSError: the file cannot be read.
    """
    file, device = read(file_of(path).read_bytes()), current_device()
    if file.kind != kind:
        how = {"graph": "qp.graph.load", "kernel": "qp.load_kernel"}[file.kind]
        raise SavedGraphError(
            f"{os.fspath(path)} is a saved {file.kind}, not a {kind}", call_site(), hint=f"{how} loads it"
        )
    return file, target_for(file, device, target), device


def target_for(file: SavedFile, device: Device, asked: str | None) -> str:
    """The target of ``file`` whose code runs on ``device``, or the one that is ``asked`` for.

    Raises:
        SavedGraphError: there is none.
        UnknownTargetError: there is no target of this name.
    """
    arch = device.driver.info.arch
    if "host" in device.driver.features:
        runs = [target for target in here() if target in file.targets]
    else:
        runs = [target for target in reversed(file.targets) if is_code_for(target, arch)]
    fitting = runs if asked is None else [target for target in runs if target == str(parse_target(asked))]
    if not fitting:
        arch_here = str(here()[-1] if "host" in device.driver.features else arch)
        raise SavedGraphError(
            f"the file has no code for {asked or arch}{'' if asked is None else f' that runs on {device}'}; it has code for "
            f"{', '.join(file.targets) or 'no target'}",
            hint=f"leave target out: {runs[0]} runs here" if runs else f"save it with targets=[{arch_here!r}]",
        )  # fmt: skip
    return fitting[0]


def plan_of(
    file: SavedFile, kernel: dict[str, Any], target: str, device: Device, *, keep_hidden: bool = False, seed: int = 0,
    result_shape: ResultShape = None,
) -> CpuPlan | GpuPlan:  # fmt: skip
    """The plan of a kernel of ``file``; with ``keep_hidden``, launches compute the seed and the number of the launch."""
    facts, name = kernel["code"][target], kernel["name"]

    def code(facts: dict[str, Any]) -> CodeObject:
        made = code_from_json(facts, kernel["layout"], target, file.entries[facts["image"]])
        after = tuple(each for each in made.hidden if each.offset >= made.layout.size)
        return made if keep_hidden else replace(made, hidden=after, results=())

    made = code(facts)
    spans = (span_of(kernel["place"]),) * len(made.tasks)
    if "host" in device.driver.features:
        library = load_library(made.image)
        try:
            entry = ENTRY((made.entry, library))
        except AttributeError as error:
            raise SavedGraphError(f"the code of the kernel {name} lacks its entry {made.entry}") from error
        return CpuPlan(made, name=name, spans=spans, entry=entry, seed=seed, result_shape=result_shape)

    def wider() -> NoReturn:
        raise ArgumentError(f"{name}: more iterations than a grid has threads", hint="bind smaller arrays")

    plan = GpuPlan(made, device, name=name, spans=spans, wider=wider, seed=seed, result_shape=result_shape)
    again = facts.get("predicated")
    repeated = None if again is None else GpuPlan(code(again), device, name=name, wider=wider)
    one, setter = facts.get("one"), facts.get("setter")
    plan.origin = import_late("quadpy.graph.saved.one_launch").SavedOrigin(
        device, made, repeated, None if one is None else code(one), None if setter is None else file.entries[setter]
    )
    plan.effects = effects_of(made) if kernel["independent"] else None
    return plan


def span_of(place: str) -> Span | None:
    """The file and line that ``place_of`` wrote."""
    file, colon, line = place.rpartition(":")
    return Span(file, int(line)) if colon and line.isdecimal() else None
