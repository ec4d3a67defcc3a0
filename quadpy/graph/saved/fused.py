"""One launch for all works of a graph, as a file has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quadpy.core.artifact import AbiLayout, CodeObject
from quadpy.core.flow import depth_of, has_loop
from quadpy.core.importing import import_late
from quadpy.core.public import call_site
from quadpy.errors import CodegenError, GraphError
from quadpy.graph.model.nesting import in_levels
from quadpy.graph.saved.facts import layout_to_json
from quadpy.graph.saved.manifest import scalar_bytes
from quadpy.graph.saved.targets import KernelCode, stored
from quadpy.jit.fusion.call_code import unit_of

if TYPE_CHECKING:
    from quadpy.core.target import TargetSpec
    from quadpy.graph.model.nodes import Node
    from quadpy.graph.saved.memory import SavedArray
    from quadpy.runtime.launch.fusion import Fuse


_OTHER: Final = "its arguments differ from those for another target"


class _Call(NamedTuple):
    """A kernel, or a copy or fill of numbers of ``nbytes``; ``sources`` say where the values of its arguments come from."""

    code: KernelCode | tuple[str, int]
    sources: Sequence[Any]


def fused_to_json(
    nodes: Sequence[Node], works: Sequence[Mapping[str, Any]], arrays: Sequence[SavedArray], kernels: Sequence[KernelCode],
    specs: Sequence[TargetSpec], fuse: Fuse, entries: dict[str, bytes],
) -> dict[str, Any] | None:  # fmt: skip
    """What the file has for one launch of ``works``, which do the ``nodes``; machine code is added to ``entries``.

    None without GPUs, and if it is not wanted.

    Raises:
        GraphError: ``fuse`` is True, and it is not possible for a target.
    """
    gpus = [(number, spec) for number, spec in enumerate(specs) if spec.family != "cpu"]
    if not gpus or fuse is False:
        return None
    calls = [list(_calls_of(work, arrays, kernels)) for work in works]
    levels = in_levels(zip(nodes, calls, strict=True))
    every = list(chain.from_iterable(levels))
    codes = {str(spec): _compiled(levels, number) for number, spec in gpus}
    layout = next((code.layout for code in codes.values() if isinstance(code, CodeObject)), AbiLayout((), 0))
    made = {target: code for target, code in codes.items() if isinstance(code, CodeObject) and code.layout == layout}
    why_not = {
        target: _OTHER if isinstance(codes[target], CodeObject) else codes[target] for target in codes.keys() - made
    }
    if fuse is True and why_not:
        target, why = min(why_not.items())
        raise GraphError(
            f"the graph cannot be one launch on {target}: {why}", call_site(),
            hint='fuse="auto" uses one launch where that is possible',
        )  # fmt: skip
    depths = {str(spec): sum(max(_depth(call, number) for call in level) for level in levels) for number, spec in gpus}
    return {
        "always": fuse is True, "why_not": why_not,
        "levels": [[call.code.number if isinstance(call.code, KernelCode) else list(call.code) for call in level] for level in levels],
        "arguments": [source for call in every for source in call.sources] if made else [],
        "loops": any(isinstance(call.code, KernelCode) and has_loop(call.code.code.flow) for call in every),
        "kernel": {
            "name": "graph", "place": "", "layout": layout_to_json(layout), "conditions": [], "independent": False,
            "code": {target: stored(code, entries) | {"depth": depths[target]} for target, code in made.items()},
        },
    }  # fmt: skip


def _calls_of(work: Mapping[str, Any], arrays: Sequence[SavedArray], kernels: Sequence[KernelCode]) -> Iterator[_Call]:
    """The calls that do ``work``: one for each row of a fill."""
    match work["kind"]:
        case "kernel":
            yield _Call(kernels[work["kernel"]], work["arguments"])
        case "copy":
            places = work["target"], work["source"]
            nbytes = _number_bytes(places, work["bytes"], arrays)
            size = ["size", _quotient(work["bytes"], nbytes)]
            yield _Call(("copy", nbytes), [part for place in places for part in (["pointer", *place], size)])
        case "fill":
            number, start = work["target"]
            rows = [(number, start + row * work["pitch"]) for row in range(work["height"])]
            width = _product(work["width"], work["element"])
            nbytes = max(_number_bytes(rows, width, arrays), work["element"])
            bits = int.from_bytes(
                work["value"].to_bytes(work["element"], "little") * (nbytes // work["element"]), "little"
            )
            size = ["size", _quotient(width, nbytes)]
            yield from (_Call(("fill", nbytes), [["pointer", *row], size, ["bits", bits]]) for row in rows)


def _number_bytes(places: Sequence[Sequence[int]], nbytes: Any, arrays: Sequence[SavedArray]) -> int:
    """The bytes of the largest numbers of which all memory at ``places`` consists, in this and in every later run."""
    sizes = [nbytes if isinstance(nbytes, int) else nbytes[-1]]  # of a product, the last factor is known
    for number, start in places:
        array = arrays[number]
        if array.memory == "bound":
            array.aligned = max(array.aligned, scalar_bytes(array.type))
            sizes.append(array.aligned)
        sizes.append(start)
    return unit_of(*sizes)


def _product(formula: Any, factor: int) -> Any:
    return formula * factor if isinstance(formula, int) else [*formula[:-1], formula[-1] * factor]


def _quotient(formula: Any, divisor: int) -> Any:
    return formula // divisor if isinstance(formula, int) else [*formula[:-1], formula[-1] // divisor]


def _depth(call: _Call, target: int) -> int:
    return depth_of(call.code.codes[target].code.steps) if isinstance(call.code, KernelCode) else 1


def _compiled(levels: Sequence[Sequence[_Call]], target: int) -> CodeObject | str:
    """Code for the target of this number, or the reason why there is none."""
    kernels = [call.code for level in levels for call in level if isinstance(call.code, KernelCode)]
    forms = [kernel.codes[target] for kernel in kernels]
    moves = sum(map(len, levels)) - len(kernels)
    if not kernels or not (moves + sum(len(form.code.tasks) for form in forms) > 1 or has_loop(forms[0].code.flow)):
        return "there is only one launch" if kernels else "there is no kernel"
    if moves + len(kernels) == 1 and forms[0].one is not None:
        return forms[0].one
    requests = {kernel.number: kernel.requests[target] for kernel in kernels}
    options = {(each.options.index, each.options.fast_math, each.options.wave_size) for each in requests.values()}
    if len(options) > 1:
        return "its kernels differ in the width of their indices, in fast_math, or in their wave size"
    ((index, fast_math, _),) = options
    fused_code, compiler = import_late("quadpy.jit.fusion.fused_code"), import_late("quadpy.jit.compiler")
    made = {"copy": fused_code.copy_kernel, "fill": fused_code.fill_kernel}

    def kernel_of(call: _Call) -> Any:
        if isinstance(call.code, KernelCode):
            return compiler.traced_for(requests[call.code.number]).kernel
        kind, nbytes = call.code
        return made[kind](nbytes, index, fast_math=fast_math)

    try:
        code: CodeObject | str = fused_code.compiled_levels(
            [[kernel_of(call) for call in level] for level in levels], requests[kernels[0].number].target
        )
    except CodegenError as error:  # it cannot be traced again
        return error.message
    return code
