"""The table of what waves do by target: the instructions are those of the code that quadpy makes."""

from __future__ import annotations

import re
from collections import Counter

import quadpy as qp
from quadpy.core.target import parse_target
from quadpy.errors import KernelTypeError
from quadpy.intrinsics import BY_NAME, Builtin
from quadpy.jit.offline import compile_with_asm

__all__ = ["print_waves"]

_TARGETS = ("gfx942", "gfx1030:w64", "gfx1100", "gfx1100:w64", "gfx1201", "sm_70", "sm_90")
_AMD = r"ds_bpermute|ds_swizzle|v_(?:permlanex16|permlane64|readlane|readfirstlane|writelane)"
_NVIDIA = r"(?:shfl|redux|vote|match|bar)\.(?:warp\.)?(?:sync|any\.sync)(?:\.(?:bfly|idx|up|down|add|ballot|any|all))?"

_sg = qp.simt.subgroup
_F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
_I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def _of_float(x: _F32, y: _F32, k: _I32, f: qp.template(), n: qp.template()):  # type: ignore[valid-type]  # annotations are values
    for i in range(x.shape[0]):
        y[i] = f(x[i], k[i] if qp.static(n < 0) else n) if qp.static(n is not None) else f(x[i])


@qp.kernel
def _of_integer(x: _I32, y: _I32, f: qp.template()):  # type: ignore[valid-type]
    for i in range(x.shape[0]):
        y[i] = qp.i32(f(x[i]))


@qp.kernel
def _of_truth(x: _I32, y: _I32, f: qp.template()):  # type: ignore[valid-type]
    for i in range(x.shape[0]):
        y[i] = qp.i32(f(x[i] > 0))


_ROWS: tuple[tuple[Builtin, qp.Kernel, str, dict[str, object]], ...] = (
    (_sg.shuffle, _of_float, "any lane", {"n": -1}),
    (_sg.shuffle_up, _of_float, "", {"n": 1}),
    (_sg.shuffle_xor, _of_float, "mask 1", {"n": 1}),
    (_sg.shuffle_xor, _of_float, "mask 4", {"n": 4}),
    (_sg.shuffle_xor, _of_float, "mask 16", {"n": 16}),
    (_sg.broadcast, _of_float, "", {"n": 3}),
    (_sg.ballot, _of_truth, "", {}),
    (_sg.any_true, _of_truth, "", {}),
    (_sg.all_true, _of_truth, "", {}),
    (_sg.match_any, _of_integer, "", {}),
    (_sg.reduce_add, _of_float, "f32", {"n": None}),
    (_sg.reduce_add, _of_integer, "i32", {}),
    (_sg.inclusive_add, _of_float, "f32", {"n": None}),
    (_sg.exclusive_add, _of_float, "f32", {"n": None}),
)


def _instructions(kernel: qp.Kernel, target: str, given: dict[str, object]) -> str:
    """The instructions of waves in the code of ``kernel``, each with its number."""
    try:
        text = compile_with_asm(kernel, parse_target(target), given).asm.split(".section")[0]
    except KernelTypeError:
        return "an error"
    found = Counter({"DPP": len(re.findall("bank_mask", text))})
    found.update(word.removeprefix("v_") for word in re.findall(_AMD, text))
    if target.startswith("sm_"):
        found = Counter(re.findall(_NVIDIA, text))
    shown = [f"{count} x {name}" if count > 1 else name for name, count in found.items() if count]
    return ", ".join(shown) or "comparison"


def print_waves() -> str:
    """One line for each operation, one column for each target."""
    lines = [("operation", *(f"`{target}`" for target in _TARGETS))]
    lines.append(("---",) * len(lines[0]))
    for builtin, kernel, note, given in _ROWS:
        name = BY_NAME[builtin.row.name].name.partition(".")[2]
        cells = (_instructions(kernel, target, {**given, "f": builtin}) for target in _TARGETS)
        lines.append((f"`{name}`" + (f", {note}" if note else ""), *cells))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
