"""Plans of saved machine code: ordinary ones, except that nothing can be compiled again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from quadpy.core.artifact import AbiLayout, CodeObject, ResultShape
from quadpy.core.source import Span
from quadpy.core.target import parse_target
from quadpy.errors import ArgumentError, SavedGraphError
from quadpy.graph.saved.facts import code_from_json
from quadpy.graph.saved.hosts import here, load_library
from quadpy.graph.saved.manifest import SavedFile
from quadpy.jit.cpu_plan import ENTRY, CpuPlan
from quadpy.jit.gpu_plan import GpuPlan, effects_of
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.modules import is_code_for

if TYPE_CHECKING:
    from quadpy.runtime.drivers.driver import FunctionHandle
    from quadpy.runtime.drivers.graph_driver import CopyWork, FillWork
    from quadpy.runtime.launch.fusion import Fuse, OneLaunch
    from quadpy.runtime.launch.launch import Call, Prepared
    from quadpy.runtime.streams.stream import Stream


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
    setter = facts.get("setter")
    plan.origin = SavedOrigin(device, made.layout, repeated, None if setter is None else file.entries[setter])
    plan.effects = effects_of(made) if kernel["independent"] else None
    return plan


def span_of(place: str) -> Span | None:
    """The file and line that ``place_of`` wrote."""
    file, colon, line = place.rpartition(":")
    return Span(file, int(line)) if colon and line.isdecimal() else None


class SavedOrigin:
    """The ``Origin`` of saved code: it has what the file has, and compiles nothing."""

    def __init__(self, device: Device, layout: AbiLayout, repeated: GpuPlan | None, setter: bytes | None) -> None:
        self.layout, self.repeatable = layout, repeated is not None
        self._device, self._repeated, self._setter = device, repeated, setter

    why_not_alone = "a saved graph has a launch for each task"

    def fuse(self, levels: Sequence[Sequence[Call]], fuse: Fuse) -> OneLaunch | str:
        """See ``Origin.fuse``."""
        return self.why_not_alone

    def of(self, work: FillWork | CopyWork) -> Call | str:
        """See ``Origin.of``."""
        return self.why_not_alone

    def predicated(self, call: Prepared, before: Prepared | None, on: Stream) -> Prepared:
        """See ``Origin.predicated``."""
        assert self._repeated is not None
        return self._repeated.predicated(call, before, on)

    def condition_setter(self, *, indirect: bool) -> FunctionHandle:
        """See ``Origin.condition_setter``; the nodes of a saved graph are never indirect."""
        assert self._setter is not None
        arch = str(parse_target(self._device.driver.info.arch))
        module = self._device.modules.load(CodeObject(arch, self._setter, "", AbiLayout((), 0), ()))
        return module.function("quadpy_set_condition")
