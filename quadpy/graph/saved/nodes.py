"""The works of a file as nodes of a graph."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quadpy.core.formula import formula_from_json
from quadpy.core.importing import import_late
from quadpy.errors import ArgumentError
from quadpy.graph.model.inspect import GraphInfo, NodeInfo
from quadpy.graph.model.kernels import node_of_launches
from quadpy.graph.model.nodes import EmptyNode, MemcpyNode, MemsetNode, Node
from quadpy.graph.saved.arrays import Bound, Part, SavedArrays
from quadpy.graph.saved.container import damaged, reading
from quadpy.graph.saved.manifest import SavedFile
from quadpy.graph.saved.plans import plan_of, span_of
from quadpy.jit.formula import Evaluator, compile_formula
from quadpy.jit.misfits import Misfit

if TYPE_CHECKING:
    from quadpy.graph.saved.one_launch import SavedFusion
    from quadpy.runtime.arrays.view import ArrayMemory
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.launch.fusion import Fuse


class SavedNodes:
    """Makes the nodes of ``file`` for the arrays of a run."""

    def __init__(self, file: SavedFile, target: str, device: Device, arrays: SavedArrays) -> None:
        self._device, self._arrays = device, arrays
        self._works: list[dict[str, Any]] = file.manifest["works"]
        self._kernels = file.manifest["kernels"]
        with reading("the facts of its code cannot be read"):
            self._plans = [plan_of(file, kernel, target, device) for kernel in self._kernels]
            self._fusion: SavedFusion | None = None
            if "host" not in device.driver.features:
                self._fusion = import_late("quadpy.graph.saved.one_launch").join(file, target, self._plans)
            self._formulas = [
                {key: _evaluator(work[key]) for key in ("bytes", "width") if key in work} for work in self._works
            ]

    @property
    def fuse(self) -> Fuse:
        """What those who saved it want of one launch for all nodes."""
        return "auto" if self._fusion is None else self._fusion.wanted

    @property
    def may_fuse(self) -> bool:
        """Whether there is code for one launch."""
        return self._fusion is not None and not isinstance(self._fusion.code, str)

    def __len__(self) -> int:
        return len(self._works)

    def bound(self, views: Sequence[ArrayMemory], shapes: Sequence[tuple[int, ...]]) -> list[Node]:
        """The nodes with these arrays of the user's.

        Raises:
            ArgumentError, BoundsError: the arrays do not fit, or the graph has a part that none fits.
        """
        arrays = self._arrays.bound(views, shapes)
        sizes = [arrays[number].shape[axis] for number, axis in self._arrays.sizes]
        with reading("its works do not fit its kernels"):
            return [self._node(number, arrays, sizes) for number in range(len(self._works))]

    def _node(self, number: int, arrays: Sequence[Bound], sizes: Sequence[int]) -> Node:
        work = self._works[number]
        match work["kind"]:
            case "kernel":
                made: Node = self._kernel(work, arrays)
            case "copy":
                nbytes = self._formulas[number]["bytes"](sizes)
                to, of = (_part(work[end], nbytes, arrays) for end in ("target", "source"))
                made = MemcpyNode.of(to.pointer, of.pointer, nbytes, (to, of))
            case "fill":
                width = self._formulas[number]["width"](sizes)
                element, height, pitch = work["element"], work["height"], work["pitch"]
                if height > 1 and not 0 < width * element <= pitch:
                    raise damaged("the rows of a fill overlap")
                to = _part(work["target"], (height - 1) * pitch + width * element, arrays)
                made = MemsetNode(
                    target=to.pointer, value=work["value"], element=element, width=width, height=height, pitch=pitch,
                    first=work["first"], writes=((to.pointer, to.nbytes),), keep=(to,),
                )  # fmt: skip
            case _:
                made = EmptyNode()
        names = tuple(self._works[before]["name"] for before in work["after"])
        whole = tuple(part.keep for part in made.keep if isinstance(part, Part) and part.keep is not None)
        return replace(
            made, name=work["name"], after=names, derived=work["derived"], span=span_of(work["place"]),
            keep=(*made.keep, *whole),
        )  # fmt: skip

    def _kernel(self, work: Mapping[str, Any], arrays: Sequence[Bound]) -> Node:
        kernel, plan = self._kernels[work["kernel"]], self._plans[work["kernel"]]
        conditions, values = dict(kernel["conditions"]), []
        views: list[Any] = []
        for (name, part, _, code, _), (kind, *rest) in zip(kernel["layout"]["values"], work["arguments"], strict=True):
            if kind == "bits":
                values.append(_number(code, rest[0]))
            elif kind == "extent":
                values.append(arrays[rest[0]].shape[rest[1]])
            else:
                number, offset, *limits = rest
                whole = arrays[number]
                start, nbytes = limits or (0, whole.memory.nbytes)
                _require_inside(whole, start, nbytes)
                values.append(whole.memory.pointer + offset)
            if part == "pointer":
                item = conditions.get(name, 1)
                views.append(_NOTHING if kind == "bits" else whole.part(start, nbytes, item))
        try:
            prepared = plan.prepare(values, views)
        except Misfit:
            raise ArgumentError(
                f"the arrays are too large for the code of {kernel['name']}", hint="bind smaller ones"
            ) from None
        return node_of_launches(self._device, prepared, priority=work["priority"])


def info_of(works: Sequence[Mapping[str, Any]], kernels: Sequence[Mapping[str, Any]]) -> GraphInfo:
    """The works of a manifest as data, for tables and pictures."""

    def one(work: Mapping[str, Any]) -> NodeInfo:
        detail = kernels[work["kernel"]]["name"] if work["kind"] == "kernel" else ""
        after = tuple(works[before]["name"] for before in work["after"])
        kind = {"copy": "memcpy", "fill": "memset"}.get(work["kind"], work["kind"])
        return NodeInfo(work["name"], kind, after, detail, (), (), work["place"])

    return GraphInfo(tuple(map(one, works)))


_NOTHING = Part(("nd", "u8", 1, ()), 0, 0, None, None, None)


def _evaluator(facts: Any) -> Evaluator:
    formula = formula_from_json(facts)
    if formula is None:
        raise ValueError("a formula is missing")
    return compile_formula(formula)


def _part(place: Sequence[int], nbytes: int, arrays: Sequence[Bound]) -> Part:
    number, offset = place
    _require_inside(arrays[number], offset, nbytes)
    return arrays[number].part(offset, nbytes, 1)


def _require_inside(array: Bound, start: int, nbytes: int) -> None:
    if start < 0 or nbytes < 0 or start + nbytes > array.memory.nbytes:
        raise damaged("a work leaves its array")


def _number(code: str, bits: int) -> Any:
    """The value with these bits, whose letter in ``struct``'s language is ``code``."""
    return struct.unpack(f"={code}", bits.to_bytes(struct.calcsize(f"={code}"), "little"))[0]
