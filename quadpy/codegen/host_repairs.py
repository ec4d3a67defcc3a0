"""Changes to optimised modules for x86, whose code LLVM 22 would get wrong, or slow, with AVX-512.

They are made after optimisation, because the inserted code would keep loops from being vectorised.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Final

import llvmlite.binding as llvm

_EXTREME: Final = re.compile(
    r"^  (%\S+) = (?:tail )?call ([^@<]*)(float|double|<(\d+) x (float|double)>) @llvm\.(min|max)imumnum\.\w+"
    r"\(\3 (%[^,]+), \3 (%[^)]+)\).*",
    re.MULTILINE,
)
"""A call for two numbers or vectors, not for constants."""

_HALF: Final = re.compile(r"^(  %\S+ = bitcast i16 )(%\S+)( to half)", re.MULTILINE)
"""The bits of one half."""

_BITS: Final = {"float": "i32", "double": "i64"}


def may_need_repair(ir_text: str) -> bool:
    """Whether ``repaired_text`` could change the module that LLVM makes of ``ir_text``."""
    return "imumnum" in ir_text or "half" in ir_text


def repaired_text(module: llvm.ModuleRef) -> str | None:
    """The repaired text of ``module``, or None if it contains nothing that LLVM gets wrong."""
    if not module.triple.startswith("x86_64"):
        return None
    text, count = str(module), itertools.count(1)
    changed = _EXTREME.sub(lambda found: _compared(found, count), text)
    changed = _HALF.sub(lambda found: _hidden(found, count), changed)
    return None if changed == text else changed


def _compared(found: re.Match[str], count: Iterator[int]) -> str:
    """The extreme of two values as comparisons of these alone, none of which waits for another.

    LLVM orders the operands by sign first, with AVX-512 through general registers and back: three times the latency.
    If one of them is never a NaN, AVX512DQ code would return the NaN of the other one.
    """
    result, flags, t, lanes, element, extreme, a, b = found.groups()
    less, both = ("olt", "or") if extreme == "min" else ("ogt", "and")
    bits, bit = (f"<{lanes} x {_BITS[element]}>", f"<{lanes} x i1>") if lanes else (_BITS[t], "i1")
    new = f"%repaired.{next(count)}"
    number = f"select {bit} {new}.nan, {t} {a}, {t} {new}.first"
    lines = [
        f"{new}.less = fcmp {less} {t} {a}, {b}",
        f"{new}.first = select {bit} {new}.less, {t} {a}, {t} {b}",  # b where one is a NaN: an instruction of SSE
        f"{new}.nan = fcmp uno {t} {b}, {b}",
    ]
    if "nsz" in flags:
        lines.append(f"{result} = {number}")
    else:
        lines += [
            f"{new}.number = {number}",
            f"{new}.equal = fcmp oeq {t} {a}, {b}",
            f"{new}.a = bitcast {t} {a} to {bits}",
            f"{new}.b = bitcast {t} {b} to {bits}",
            f"{new}.both = {both} {bits} {new}.a, {new}.b",  # of two zeros, the sign
            f"{new}.zero = bitcast {bits} {new}.both to {t}",
            f"{result} = select {bit} {new}.equal, {t} {new}.zero, {t} {new}.number",
        ]
    return "\n".join(f"  {line}" for line in lines)


def _hidden(found: re.Match[str], count: Iterator[int]) -> str:
    """An empty assembly statement hides where the bits come from: LLVM cannot select those of a comparison as a half."""
    head, bits, tail = found.groups()
    name = f"%repaired.{next(count)}"
    return f'  {name} = call i16 asm "", "=r,0"(i16 {bits})\n{head}{name}{tail}'
