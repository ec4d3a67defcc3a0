"""Kernels of a file, compiled for each of its targets; no device is needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from quadpy.core.artifact import CodeObject
from quadpy.core.flow import conditions_of, has_loop
from quadpy.core.importing import import_late
from quadpy.core.light import dataclass
from quadpy.core.public import call_site
from quadpy.core.target import TargetSpec, parse_target, with_waves
from quadpy.errors import ArgumentError, GraphError
from quadpy.graph.model.arguments import sequence_of
from quadpy.graph.saved.container import name_of
from quadpy.graph.saved.facts import code_to_json, layout_to_json
from quadpy.graph.saved.hosts import here
from quadpy.jit.gpu_plan import item_bytes
from quadpy.runtime.device.current import current_config

if TYPE_CHECKING:
    from quadpy.jit.array_arguments import LaunchedCall
    from quadpy.runtime.arrays.view import ArrayView
    from quadpy.runtime.device.device import Device

_SETTER: Final = "setter"


@dataclass(slots=True)
class KernelCode:
    """A kernel of the file; ``codes`` has what it runs on each target, and the same in predicated form for loops."""

    number: int
    name: str
    place: str
    conditions: list[tuple[str, int]]
    independent: bool
    codes: list[tuple[TargetSpec, CodeObject, CodeObject | None]]

    @property
    def code(self) -> CodeObject:
        """That of the first target; all have its layout."""
        return self.codes[0][1]


def targets_of(given: Iterable[str] | str | None, device: Device) -> list[TargetSpec]:
    """The targets of a file, without duplicates; for None, that of ``device``.

    Raises:
        UnknownTargetError: there is no such target.
        ArgumentError: there are none, or two for one CPU or GPU.
    """
    if given is None:
        arch = device.driver.info.arch
        given = [str(parse_target(here()[0] if "host" in device.driver.features else arch))]
    names = [given] if isinstance(given, str) else sequence_of(given, "targets", "targets", "pass a list")
    found = list(dict.fromkeys(map(parse_target, names)))
    for spec in found:
        if spec.family == "cpu" and spec.arch == "native":
            raise ArgumentError(
                "the target 'cpu' is this machine's, and a file is for others too", call_site(),
                hint="targets=['x86-64'], ['x86-64-v3'] or ['arm64']",
            )  # fmt: skip
    if not found:
        raise ArgumentError("a saved graph needs at least one target", call_site(), hint="targets=['gfx942', 'x86-64']")
    return found


class Targets:
    """The kernels of one file for ``specs``."""

    def __init__(self, specs: Sequence[TargetSpec]) -> None:
        self._specs = specs
        self.names = sorted(map(str, specs))
        self._kernels: dict[tuple[object, frozenset[str]], KernelCode] = {}

    def kernel(
        self, call: LaunchedCall, aligned: Collection[str], name: str, place: str, wave: int | None
    ) -> KernelCode:
        """The kernel of ``call``, whose arrays ``aligned`` begin at multiples of 16 bytes.

        Raises:
            GraphError: it needs what a file does not have.
            CompilationError: a target cannot have it.
        """
        key = call.plan, frozenset(aligned)
        if key not in self._kernels:
            codes = [self._compiled(call, spec, aligned, wave) for spec in self._specs]
            require_storable([code for _, code, _ in codes], name)
            conditions = conditions_of(codes[0][1].flow)
            arrays = dict(
                zip((v.param for v in call.plan.code.layout.values if v.part == "pointer"), call.arrays, strict=False)
            )
            sizes = [(each, item_bytes(cast("ArrayView", arrays[each]))) for each in conditions]
            independent = getattr(call.plan, "effects", None) is not None
            self._kernels[key] = KernelCode(len(self._kernels), name, place, sizes, independent, codes)
        return self._kernels[key]

    def _compiled(
        self, call: LaunchedCall, spec: TargetSpec, aligned: Collection[str], wave: int | None
    ) -> tuple[TargetSpec, CodeObject, CodeObject | None]:
        elsewhere: Any = call.plan.elsewhere  # type: ignore[attr-defined]  # which the writer has seen
        there = with_waves(spec, wave or current_config().wave_size)
        code = elsewhere(there, aligned).code
        repeats = spec.family != "cpu" and has_loop(code.flow)
        return spec, code, elsewhere(there, aligned, predicated=True).code if repeats else None

    def kernels_to_json(self, entries: dict[str, bytes]) -> list[dict[str, Any]]:
        """The kernels as the file has them; machine code is added to ``entries``."""
        return kernels_to_json(list(self._kernels.values()), entries)


def require_storable(codes: Sequence[CodeObject], name: str) -> None:
    """GraphError for a kernel that prints, or that needs memory that only this process provides."""
    for code in codes:
        why = "it prints" if code.messages else "its launches need memory for sums of gradients" if code.shadow else ""
        if not why and code.layout != codes[0].layout:
            why = f"its arguments differ between {codes[0].target} and {code.target}"
        if why:
            raise GraphError(f"the kernel {name} cannot be saved: {why}", call_site(), hint="save a kernel without it")


def kernels_to_json(kernels: Sequence[KernelCode], entries: dict[str, bytes]) -> list[dict[str, Any]]:
    """See ``Targets.kernels_to_json``."""
    libraries = {}
    for number, (spec, _, _) in enumerate(kernels[0].codes if kernels else ()):
        if spec.family == "cpu":
            codes = [kernel.codes[number][1] for kernel in kernels]
            link = import_late("quadpy.jit.shared_library").shared_library
            libraries[str(spec)] = link([(code.image, code.entry) for code in codes], spec)

    def stored(spec: TargetSpec, code: CodeObject, number: int) -> dict[str, Any]:
        image = libraries.get(str(spec), code.image)
        entries[name_of("code", image)] = image
        facts = code_to_json(code, name_of("code", image))
        return facts | {"entry": f"qpg_{number}"} if spec.family == "cpu" else facts

    def of_target(
        kernel: KernelCode, spec: TargetSpec, code: CodeObject, repeated: CodeObject | None
    ) -> dict[str, Any]:
        facts = stored(spec, code, kernel.number)
        if repeated is not None:
            facts["predicated"] = stored(spec, repeated, kernel.number)
        if has_loop(code.flow) and spec.family == "nvptx":
            setter = import_late("quadpy.codegen.support.loop_condition").condition_setter_code(spec).image
            entries[name_of("code", setter)] = setter
            facts[_SETTER] = name_of("code", setter)
        return facts

    return [
        {
            "name": kernel.name, "place": kernel.place, "layout": layout_to_json(kernel.code.layout),
            "conditions": [list(each) for each in kernel.conditions], "independent": kernel.independent,
            "code": {str(spec): of_target(kernel, spec, code, again) for spec, code, again in kernel.codes},
        }
        for kernel in kernels
    ]  # fmt: skip
