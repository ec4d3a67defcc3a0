"""The manifest of a saved graph: what a file of format 1 consists of, and the checks of one that is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from quadpy.core.dtypes import BY_NAME
from quadpy.errors import SavedGraphError
from quadpy.graph.saved.container import MANIFEST, damaged, packed, reading, unpacked

FORMAT: Final = 1

_FORMULA: Final = "formula"
_TASK: Final = {
    "symbol": str, "parallel": bool, "threads": int, "grid_stride": bool, "extent": (_FORMULA, None),
    "coarsened": (_FORMULA, None), "shared": int, "barrier": bool, "cooperative": bool, "effects": [[str]],
    "scratch": str, "latch": bool,
}  # fmt: skip
_CODE: Final = {
    "image": str, "entry": str, "slots": int, "block": int, "hidden": [list], "flow": (list, None), "results": [str],
    "limits": [list], "tasks": [_TASK],
}  # fmt: skip
_KERNEL: Final = {
    "name": str, "place": str, "layout": {"size": int, "values": [list]}, "conditions": [list], "independent": bool,
    "code": dict,
}  # fmt: skip
_FUSED: Final = {
    "always": bool, "why_not": dict, "levels": [list], "arguments": [list], "loops": bool, "kernel": _KERNEL,
}  # fmt: skip
_ARRAY: Final = {
    "name": str, "memory": str, "type": str, "element": [int], "item": int, "shape": [_FORMULA], "access": str,
    "aligned": int, "most": (int, None), "data": (str, None),
}  # fmt: skip
_WORK: Final = {"kind": str, "name": str, "place": str, "after": [int], "derived": bool}
_WORKS: Final = {
    "kernel": _WORK | {"kernel": int, "arguments": [list], "priority": (int, None)},
    "copy": _WORK | {"target": [int], "source": [int], "bytes": _FORMULA},
    "fill": _WORK
    | {"target": [int], "value": int, "element": int, "width": _FORMULA, "height": int, "pitch": int, "first": bool},
    "empty": _WORK,
}
_FILE: Final = {
    "format": int, "quadpy": str, "arrays": [_ARRAY], "sizes": [[int]], "kernels": [_KERNEL], "works": [dict],
    "guards": [{"kind": str, "arrays": [[int]]}], "targets": [str], "parameters": ({"values": [[str]], "result": str}, None),
}  # fmt: skip
_DEPTH: Final = 60
_MOST: Final = 1 << 63


class SavedFile(NamedTuple):
    """A file that was read: the manifest, whose parts have their types, and the entries by name."""

    manifest: dict[str, Any]
    entries: dict[str, bytes]

    @property
    def kind(self) -> str:
        """What it contains: a graph, or a kernel alone."""
        return "graph" if self.manifest["parameters"] is None else "kernel"

    @property
    def targets(self) -> list[str]:
        """The targets for which the file has code, in order."""
        return self.manifest["targets"]  # type: ignore[no-any-return]  # which ``read`` has checked


def write(manifest: dict[str, Any], entries: dict[str, bytes]) -> bytes:
    """The file of ``manifest``; its text is the same for equal content."""
    return packed(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode("ascii"), entries)


def read(file: bytes) -> SavedFile:
    """What is in ``file``.

    Raises:
        SavedGraphError: it is not a saved graph, is damaged, or has a newer format.
    """
    entries = unpacked(file)
    with reading("its manifest cannot be read"):
        manifest = json.loads(entries[MANIFEST].decode("ascii"), parse_constant=_refuse)
        newer = manifest["format"] if isinstance(manifest, dict) and isinstance(manifest.get("format"), int) else FORMAT
        if newer > FORMAT:
            raise SavedGraphError(
                f"this graph has format {newer}; this quadpy reads formats up to {FORMAT}",
                hint="install a newer quadpy",
            )
        _conform(manifest, _FILE, "manifest")
        manifest.setdefault("fused", None)  # the first files have none
        _check(manifest, entries)
    return SavedFile(manifest, entries)


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not a number of JSON")


def _conform(value: Any, wanted: Any, where: str, depth: int = 0) -> None:
    """SavedGraphError unless ``value`` has the type ``wanted``: a class, alternatives, a list of one type, or keys."""
    if depth > _DEPTH:
        raise damaged(f"{where} is nested too deeply")
    if isinstance(wanted, tuple):
        if value is not None:
            _conform(value, wanted[0], where, depth)
    elif isinstance(wanted, list):
        _conform(value, list, where)
        for number, item in enumerate(value):
            _conform(item, wanted[0], f"{where}[{number}]", depth + 1)
    elif isinstance(wanted, dict):
        _conform(value, dict, where)
        for key, inner in wanted.items():
            _conform(value[key], inner, f"{where}.{key}", depth + 1)
    elif wanted == _FORMULA:
        _check_formula(value, where, depth)
    elif type(value) is not wanted or (wanted is int and not -_MOST <= value < _MOST):
        raise damaged(f"{where} is not {wanted.__name__}")


def _check_formula(value: Any, where: str, depth: int) -> None:
    """A formula is a number, ``["value", k]``, or ``[name, bits, signed, operand, …]``."""
    if type(value) is int:
        _conform(value, int, where)
        return
    name, *rest = value
    if name == "value":
        (index,) = rest
        _conform(index, int, where)
    else:
        bits, signed, *operands = rest
        _conform(name, str, where)
        _conform(bits, int, where)
        _conform(signed, bool, where)
        for operand in operands:
            _conform(operand, _FORMULA, where, depth + 1)


def _check(manifest: dict[str, Any], entries: dict[str, bytes]) -> None:
    """Whether all that the manifest refers to is there."""
    arrays, kernels, works = manifest["arrays"], manifest["kernels"], manifest["works"]
    for array in arrays:
        in_file = array["data"] is None or array["data"] in entries
        if not in_file or array["memory"] not in ("bound", "internal", "constant") or array["item"] < 1:
            raise damaged(f"the array {array['name']!r} is not one of this format")
        if array["memory"] != "bound" and any(type(extent) is not int or extent < 0 for extent in array["shape"]):
            raise damaged(f"the array {array['name']!r} has no size")
    for array, axis in manifest["sizes"]:
        _require(0 <= axis < len(arrays[_number(array, arrays)]["shape"]), "sizes")
    for kernel in kernels:
        _require(sorted(kernel["code"]) == manifest["targets"], f"the code of {kernel['name']}")
        _check_kernel(kernel, entries)
    for number, work in enumerate(works):
        where = f"works[{number}]"
        _conform(work, _WORKS[work["kind"]], where)
        _require(all(0 <= before < number for before in work["after"]), where)
        if work["kind"] == "fill":
            fits = work["element"] in (1, 2, 4) and 0 <= work["value"] < 1 << 8 * work["element"]
            _require(fits and work["height"] > 0, where)
        for array in _arrays_of(work, kernels):
            _number(array, arrays)
    if manifest["fused"] is not None:
        _check_fused(manifest["fused"], kernels, entries)
    for guard in manifest["guards"]:
        _require(guard["kind"] == "same" and len(guard["arrays"]) == 2, "guards")
        for array, axis in guard["arrays"]:
            _require(0 <= axis < len(arrays[_number(array, arrays)]["shape"]), "guards")


def _check_fused(fused: dict[str, Any], kernels: list[Any], entries: dict[str, bytes]) -> None:
    _conform(fused, _FUSED, "fused")
    _check_kernel(fused["kernel"], entries)
    for code in fused["kernel"]["code"].values():
        _require(len(code["tasks"]) == 1, "the tasks of one launch")
    for why in fused["why_not"].values():
        _conform(why, str, "why_not")
    for level in fused["levels"]:
        for code in level:
            if isinstance(code, list):
                kind, nbytes = code
                _require(kind in ("copy", "fill") and nbytes in (1, 2, 4, 8), "levels")
            else:
                _number(code, kernels)


def _check_kernel(kernel: dict[str, Any], entries: dict[str, bytes]) -> None:
    for target, code in kernel["code"].items():
        one = code.get("one")
        for form in filter(None, (code, code.get("predicated"), one)):
            _conform(form, _CODE, f"the code for {target}")
            _require(form["image"] in entries, f"the code for {target}")
        _require(one is None or len(one["tasks"]) == 1, "the tasks of one launch")
    for value in kernel["layout"]["values"]:
        for part, wanted in zip(value, (str, str, int, str, int), strict=True):
            _conform(part, wanted, f"the layout of {kernel['name']}")
    for name, nbytes in kernel["conditions"]:
        _conform(name, str, "a condition")
        _require(nbytes in (1, 2, 4, 8), "a condition")


def _arrays_of(work: dict[str, Any], kernels: list[Any]) -> Iterator[int]:
    """The numbers of the arrays that ``work`` names."""
    if work["kind"] != "kernel":
        yield from (work[end][0] for end in ("target", "source") if end in work)
        return
    layout = kernels[_number(work["kernel"], kernels)]["layout"]["values"]
    _require(len(work["arguments"]) == len(layout), "the arguments of a kernel")
    for kind, *rest in work["arguments"]:
        _require(kind in ("pointer", "extent", "bits"), "an argument")
        _conform(rest, [int], "an argument") if kind != "bits" else _require(0 <= rest[0] < 1 << 64, "an argument")
        if kind != "bits":
            yield rest[0]


def _number(value: Any, among: list[Any]) -> int:
    _conform(value, int, "a number")
    _require(0 <= value < len(among), "a number")
    return int(value)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise damaged(f"{what} is out of range")


def scalar_bytes(type_text: str) -> int:
    """The bytes of the scalars of an array of this type; 1 for structs, whose members are checked by their text."""
    return BY_NAME[type_text].nbytes if type_text in BY_NAME else 1
