"""Kernels of a file, compiled for each of its targets; no device is needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from quadpy.core.artifact import CodeObject
from quadpy.core.flow import conditions_of, has_loop
from quadpy.core.importing import import_late
from quadpy.core.light import dataclass
from quadpy.core.public import call_site
from quadpy.core.target import TargetSpec, parse_target, with_waves
from quadpy.errors import ArgumentError, CodegenError, GraphError
from quadpy.graph.model.arguments import sequence_of
from quadpy.graph.saved.container import name_of
from quadpy.graph.saved.facts import code_to_json, layout_to_json
from quadpy.graph.saved.hosts import usual
from quadpy.jit.gpu_plan import item_bytes
from quadpy.runtime.device.current import current_config

if TYPE_CHECKING:
    from quadpy.jit.array_arguments import LaunchedCall
    from quadpy.jit.compilation import Request
    from quadpy.jit.plan import Elsewhere
    from quadpy.runtime.arrays.view import ArrayView
    from quadpy.runtime.device.device import Device


class Forms(NamedTuple):
    """What a kernel runs on the target ``spec``.

    repeated  for loops on a GPU: the same in predicated form
    one       and in one launch; None where that is not possible
    """

    spec: TargetSpec
    code: CodeObject
    repeated: CodeObject | None
    one: CodeObject | None

    @staticmethod
    def of(spec: TargetSpec, compiled: Callable[..., CodeObject]) -> Forms:
        """``compiled`` takes the form that it is to have, as in ``Options``."""
        code, one = compiled(), None
        if spec.family == "cpu" or not has_loop(code.flow):
            return Forms(spec, code, None, None)
        with suppress(CodegenError):  # it needs more shared memory than a block has, for example
            one = compiled(fused=True)
        return Forms(spec, code, compiled(predicated=True), one)


@dataclass(slots=True)
class KernelCode:
    """A kernel of the file.

    codes     what it runs on each target
    requests  for each target, how the code was asked for
    """

    number: int
    name: str
    place: str
    conditions: list[tuple[str, int]]
    independent: bool
    codes: list[Forms]
    requests: Sequence[Request] = ()

    @property
    def code(self) -> CodeObject:
        """That of the first target; all have its layout."""
        return self.codes[0].code


def targets_of(given: Iterable[str] | str | None, device: Device) -> list[TargetSpec]:
    """The targets of a file, without duplicates; for None, that of ``device``.

    Raises:
        UnknownTargetError: there is no such target.
        ArgumentError: there are none, or two for one CPU or GPU.
    """
    if given is None:
        arch = device.driver.info.arch
        given = [str(parse_target(usual() if "host" in device.driver.features else arch))]
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
        self.specs = specs
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
            elsewhere: Elsewhere = call.plan.elsewhere  # type: ignore[attr-defined]  # which the writer has seen
            compile_request = import_late("quadpy.jit.compilation").compile_request
            there = [with_waves(spec, wave or current_config().wave_size) for spec in self.specs]
            codes = [
                Forms.of(spec, lambda t=target, **form: compile_request(elsewhere(t, aligned, **form)).code)
                for spec, target in zip(self.specs, there, strict=True)
            ]
            require_storable([forms.code for forms in codes], name)
            conditions = conditions_of(codes[0].code.flow)
            arrays = dict(
                zip((v.param for v in call.plan.code.layout.values if v.part == "pointer"), call.arrays, strict=False)
            )
            sizes = [(each, item_bytes(cast("ArrayView", arrays[each]))) for each in conditions]
            independent = getattr(call.plan, "effects", None) is not None
            requests = [elsewhere(target, aligned) for target in there]
            self._kernels[key] = KernelCode(len(self._kernels), name, place, sizes, independent, codes, requests)
        return self._kernels[key]

    @property
    def kernels(self) -> list[KernelCode]:
        """Those so far, by their numbers."""
        return list(self._kernels.values())


def require_storable(codes: Sequence[CodeObject], name: str) -> None:
    """GraphError for a kernel that prints, or that needs memory that only this process provides."""
    for code in codes:
        why = "it prints" if code.messages else "its launches need memory for sums of gradients" if code.shadow else ""
        if not why and code.layout != codes[0].layout:
            why = f"its arguments differ between {codes[0].target} and {code.target}"
        if why:
            raise GraphError(f"the kernel {name} cannot be saved: {why}", call_site(), hint="save a kernel without it")


def stored(code: CodeObject, entries: dict[str, bytes], library: bytes | None = None) -> dict[str, Any]:
    """``code`` as the file has it; its image, or the ``library`` that has it, is added to ``entries``."""
    image = code.image if library is None else library
    entries[name_of("code", image)] = image
    return code_to_json(code, name_of("code", image))


def kernels_to_json(kernels: Sequence[KernelCode], entries: dict[str, bytes]) -> list[dict[str, Any]]:
    """The kernels as the file has them; machine code is added to ``entries``."""
    libraries = {}
    for number, (spec, *_) in enumerate(kernels[0].codes if kernels else ()):
        if spec.family == "cpu":
            codes = [kernel.codes[number].code for kernel in kernels]
            link = import_late("quadpy.jit.shared_library").shared_library
            libraries[str(spec)] = link([(code.image, code.entry) for code in codes], spec)

    def of_target(kernel: KernelCode, spec: TargetSpec, code: CodeObject, *others: CodeObject | None) -> dict[str, Any]:
        if spec.family == "cpu":
            return stored(code, entries, libraries[str(spec)]) | {"entry": f"qpg_{kernel.number}"}
        facts = stored(code, entries)
        facts |= {name: stored(form, entries) for name, form in zip(("predicated", "one"), others, strict=True) if form}
        if has_loop(code.flow) and spec.family == "nvptx":
            setter = import_late("quadpy.codegen.support.loop_condition").condition_setter_code(spec).image
            entries[name_of("code", setter)] = setter
            facts["setter"] = name_of("code", setter)
        return facts

    return [
        {
            "name": kernel.name, "place": kernel.place, "layout": layout_to_json(kernel.code.layout),
            "conditions": [list(each) for each in kernel.conditions], "independent": kernel.independent,
            "code": {str(forms.spec): of_target(kernel, *forms) for forms in kernel.codes},
        }
        for kernel in kernels
    ]  # fmt: skip
