"""The manifest of a saved graph: what a file of format 1 consists of, and the checks of one that is read."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any, Final, NamedTuple

from quadpy.core.dtypes import BY_NAME
from quadpy.errors import SavedGraphError
from quadpy.graph.saved.container import MANIFEST, damaged, packed, reading, unpacked

FORMAT: Final = 1


class _Or(NamedTuple):
    """The ``wanted``, or null."""

    wanted: Any


_FORMULA: Final = "formula"
_ANY: Final = range(-(1 << 63), 1 << 63)
_SOME: Final = range(1 << 63)
_NUMBERS: Final = {1, 2, 4, 8}
"""The bytes that a number may have."""

_TASK: Final = {
    "symbol": str, "parallel": bool, "threads": _ANY, "grid_stride": bool, "extent": _Or(_FORMULA),
    "coarsened": _Or(_FORMULA), "shared": _ANY, "barrier": bool, "cooperative": bool, "effects": [[str]],
    "scratch": str, "latch": bool,
}  # fmt: skip
_CODE: Final = {
    "image": str, "entry": str, "slots": _ANY, "block": _ANY, "hidden": [list], "flow": _Or(list), "results": [str],
    "limits": [list], "tasks": [_TASK],
}  # fmt: skip
_KERNEL: Final = {
    "name": str, "place": str, "layout": {"size": _ANY, "values": [(str, str, _ANY, str, _ANY)]},
    "conditions": [(str, _NUMBERS)], "independent": bool, "code": dict,
}  # fmt: skip
_FUSED: Final = {
    "always": bool, "why_not": dict, "levels": [list], "arguments": [list], "loops": bool, "kernel": _KERNEL,
}  # fmt: skip
_ARRAY: Final = {
    "name": str, "memory": {"bound", "internal", "constant"}, "type": str, "element": [_ANY], "item": range(1, 1 << 63),
    "shape": [_FORMULA], "access": str, "aligned": _ANY, "most": _Or(_ANY), "data": _Or(str),
}  # fmt: skip
_FILE: Final = {
    "format": _ANY, "quadpy": str, "arrays": [_ARRAY], "sizes": [(_SOME, _SOME)], "kernels": [_KERNEL], "works": [dict],
    "guards": [{"kind": {"same"}, "arrays": ((_SOME, _SOME), (_SOME, _SOME))}], "targets": [str],
    "parameters": _Or({"values": [[str]], "result": str}),
}  # fmt: skip
_DEPTH: Final = 60


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
    """SavedGraphError unless ``value`` is as ``wanted``.

    That is a class, some of which it is one, ``_Or``, a list of one kind, a tuple of a kind for each item, or keys.
    """
    if depth > _DEPTH:
        raise damaged(f"{where} is nested too deeply")
    if isinstance(wanted, _Or):
        if value is not None:
            _conform(value, wanted.wanted, where, depth)
    elif isinstance(wanted, (list, tuple)):
        _conform(value, list, where)
        kinds = wanted if isinstance(wanted, tuple) else wanted * len(value)
        for number, (item, kind) in enumerate(zip(value, kinds, strict=True)):
            _conform(item, kind, f"{where}[{number}]", depth + 1)
    elif isinstance(wanted, dict):
        _conform(value, dict, where)
        for key, inner in wanted.items():
            _conform(value[key], inner, f"{where}.{key}", depth + 1)
    elif wanted == _FORMULA:
        _check_formula(value, where, depth)
    elif isinstance(wanted, (range, set)):
        is_plain = type(value) is int or (type(value) is str and isinstance(wanted, set))  # a range would be searched
        _require(is_plain and value in wanted, where)
    elif type(value) is not wanted:
        raise damaged(f"{where} is not {wanted.__name__}")


def _check_formula(value: Any, where: str, depth: int) -> None:
    """A formula is a number, ``["value", k]``, or ``[name, bits, signed, operand, …]``."""
    if type(value) is int:
        _conform(value, _ANY, where)
    elif value[0] == "value":
        _conform(value, (str, _ANY), where)
    else:
        _conform(value, (str, _ANY, bool, *[_FORMULA] * len(value[3:])), where, depth)


def _check(manifest: dict[str, Any], entries: dict[str, bytes]) -> None:
    """Whether all that the manifest refers to is there."""
    arrays, kernels = manifest["arrays"], manifest["kernels"]
    for array in arrays:
        _require(array["data"] is None or array["data"] in entries, f"the data of {array['name']!r}")
        if array["memory"] != "bound":
            _conform(array["shape"], [_SOME], f"the shape of {array['name']!r}")
    for number, axis in chain(manifest["sizes"], *(guard["arrays"] for guard in manifest["guards"])):
        _require(axis < len(arrays[number]["shape"]), "an axis")
    for kernel in kernels:
        _require(sorted(kernel["code"]) == manifest["targets"], f"the code of {kernel['name']}")
        _check_kernel(kernel, entries)
    for number, work in enumerate(manifest["works"]):
        where = f"works[{number}]"
        _conform(work, _form_of(work["kind"], range(number), range(len(arrays)), range(len(kernels))), where)
        if work["kind"] == "kernel":
            values = kernels[work["kernel"]]["layout"]["values"]
            _require(len(work["arguments"]) == len(values), "the arguments of a kernel")
            for kind, *rest in work["arguments"]:
                first = range(1 << 64) if kind == "bits" else range(len(arrays))
                _conform([kind, *rest], ({"pointer", "extent", "bits"}, first, *[_ANY] * len(rest[1:])), "an argument")
        _require(work["kind"] != "fill" or work["value"] < 1 << 8 * work["element"], where)
    if manifest["fused"] is not None:
        _check_fused(manifest["fused"], range(len(kernels)), entries)


def _form_of(kind: str, before: range, arrays: range, kernels: range) -> dict[str, Any]:
    """The form of a work of this kind."""
    place = arrays, _ANY
    forms: dict[str, dict[str, Any]] = {
        "kernel": {"kernel": kernels, "arguments": [list], "priority": _Or(_ANY)},
        "copy": {"target": place, "source": place, "bytes": _FORMULA},
        "fill": {"target": place, "value": _SOME, "element": {1, 2, 4}, "width": _FORMULA, "height": range(1, 1 << 63),
                 "pitch": _ANY, "first": bool},
        "empty": {},
    }  # fmt: skip
    return {"kind": str, "name": str, "place": str, "after": [before], "derived": bool, **forms[kind]}


def _check_fused(fused: dict[str, Any], kernels: range, entries: dict[str, bytes]) -> None:
    _conform(fused, _FUSED, "fused")
    _check_kernel(fused["kernel"], entries)
    for code in fused["kernel"]["code"].values():
        _require(len(code["tasks"]) == 1, "the tasks of one launch")
    _conform(list(fused["why_not"].values()), [str], "why_not")
    for code in chain(*fused["levels"]):
        _conform(code, ({"copy", "fill"}, _NUMBERS) if isinstance(code, list) else kernels, "levels")


def _check_kernel(kernel: dict[str, Any], entries: dict[str, bytes]) -> None:
    for target, code in kernel["code"].items():
        one = code.get("one")
        for form in filter(None, (code, code.get("predicated"), one)):
            _conform(form, _CODE, f"the code for {target}")
            _require(form["image"] in entries, f"the code for {target}")
        _require(one is None or len(one["tasks"]) == 1, "the tasks of one launch")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise damaged(f"{what} is out of range")


def scalar_bytes(type_text: str) -> int:
    """The bytes of the scalars of an array of this type; 1 for structs, whose members are checked by their text."""
    return BY_NAME[type_text].nbytes if type_text in BY_NAME else 1
