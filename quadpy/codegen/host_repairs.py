"""Changes to optimised modules that keep LLVM 22 from miscompiling them, or from ending the process, on x86 with AVX-512.

They are made after optimisation, because the inserted code would keep loops from being vectorised.
Instructions on vectors are not affected.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Final

import llvmlite.binding as llvm

__all__ = ["may_need_repair", "repaired"]

_EXTREME: Final = re.compile(
    r"^(  %\S+ = .*call [^@<]*@llvm\.(?:min|max)imumnum\.f\d+\()(float|double) (%[^,]+), \2 (%[^)]+)\)", re.MULTILINE
)
"""A call for two numbers, not vectors or constants."""

_HALF: Final = re.compile(r"^(  %\S+ = bitcast i16 )(%\S+)( to half)", re.MULTILINE)
"""The bits of one half."""

_SUFFIXES: Final = {"float": "f32", "double": "f64"}


def may_need_repair(ir_text: str) -> bool:
    """Whether ``repaired`` could change the module that LLVM makes of ``ir_text``."""
    return "imumnum" in ir_text or "half" in ir_text


def repaired(module: llvm.ModuleRef) -> llvm.ModuleRef:
    """``module``, or a module made from its repaired text if it contains code that LLVM gets wrong."""
    text, count = str(module), itertools.count(1)
    changed = _EXTREME.sub(lambda found: _fenced(found, count), text)
    changed = _HALF.sub(lambda found: _hidden(found, count), changed)
    if changed == text:
        return module
    declared = "".join(f"declare {t} @llvm.arithmetic.fence.{s}({t})\n" for t, s in _SUFFIXES.items())
    return llvm.parse_assembly(changed + declared, llvm.create_context())


def _fenced(found: re.Match[str], count: Iterator[int]) -> str:
    """Fences hide from LLVM that an operand is never a NaN: with AVX512DQ it would return the NaN of the other one."""
    head, t, *operands = found.groups()
    names = [f"%repaired.{next(count)}" for _ in operands]
    lines = [
        f"  {name} = call {t} @llvm.arithmetic.fence.{_SUFFIXES[t]}({t} {operand})\n"
        for name, operand in zip(names, operands, strict=True)
    ]
    return f"{''.join(lines)}{head}{t} {names[0]}, {t} {names[1]})"


def _hidden(found: re.Match[str], count: Iterator[int]) -> str:
    """An empty assembly statement hides where the bits come from: LLVM cannot select those of a comparison as a half."""
    head, bits, tail = found.groups()
    name = f"%repaired.{next(count)}"
    return f'  {name} = call i16 asm "", "=r,0"(i16 {bits})\n{head}{name}{tail}'
