"""Changes to LLVM's PTX that keep NVIDIA's compiler from misreading it."""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from typing import Final

_WRAPPING: Final = (
    (re.compile(r"neg\.s16 \t(%rs\d+), (%rs\d+);"), r"mul.lo.s16 \t\1, \2, -1;"),
    (re.compile(r"abs\.s16 \t(%rs\d+), (%rs\d+);"), r"mul.lo.s16 \t\1, \2, -1;\n\tmax.s16 \t\1, \1, \2;"),
)
"""The smallest i16 is its own negative; ptxas treats it as 32768 if the result is widened."""

_NARROW_STORE: Final = re.compile(r"\tst\S*\.b(8|16|32) \t\[[^\]]*\], (?:\{[^}]*\}|%\w+);")
_REGISTER: Final = re.compile(r"%(?:rs|rd|r)\d+\b")
_OF_FLOATS: Final = re.compile(r"\t\S*\.b?f(?:16|32|64)\S* +\t?(%(?:rs|rd|r)\d+),")
"""An instruction on floats, and the register that it writes."""
_BITS: Final = {"%rs": 16, "%r": 32, "%rd": 64}

_WRITTEN: Final = re.compile(r"^\t\S+ +\t?(%(?:p|rd)\d+)\b", re.MULTILINE)
_CHOICE: Final = re.compile(r"\tselp\.f64 \t(%rd\d+), 0d([0-9A-F]{16}), 0d([0-9A-F]{16}), (%p\d+);")
_NARROWING: Final = re.compile(r"cvt\.rn\.f32\.f64 \t(%r\d+), (%rd\d+);")


def repaired(ptx: str) -> str:
    """``ptx``, which LLVM wrote, in instructions that ptxas translates as the PTX specification says."""
    for pattern, wrapping in _WRAPPING:
        ptx = pattern.sub(wrapping, ptx)
    return "\n}\n".join(map(_with_narrow_choices, _with_plain_stores(ptx).split("\n}\n")))


def _with_narrow_choices(function: str) -> str:
    """``function`` without conversions to f32 of a choice between two f64 constants: it chooses between f32 constants.

    ptxas 13.0 takes the result of an earlier conversion of such a choice if the lower halves of the constants are the same.
    """
    writes = Counter(_WRITTEN.findall(function))
    choices = {
        target: (*map(_narrow, (yes, no)), condition)
        for target, yes, no, condition in _CHOICE.findall(function)
        if writes[target] == writes[condition] == 1
    }

    def narrow(found: re.Match[str]) -> str:
        target, source = found.groups()
        return f"selp.f32 \t{target}, {', '.join(choices[source])};" if source in choices else found.group()

    return _NARROWING.sub(narrow, function) if choices else function


def _narrow(bits: str) -> str:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    try:
        single = struct.pack(">f", number)
    except OverflowError:
        single = struct.pack(">f", math.copysign(math.inf, number))
    return f"0f{single.hex().upper()}"


def _with_plain_stores(ptx: str) -> str:
    """``ptx`` without stores of the low bits of a register that an instruction on floats wrote.

    ptxas up to 12.9 converts such a float to an integer instead; it does not after a ``mov``.
    """
    floats = set(_OF_FLOATS.findall(ptx))

    def plain(found: re.Match[str]) -> str:
        store, bits = found.group(), int(found.group(1))
        address, values = store.rsplit("],", 1)
        moves: list[str] = []
        for k, register in enumerate(dict.fromkeys(_REGISTER.findall(values))):
            width = _BITS[register.rstrip("0123456789")]
            if width > bits and register in floats:
                moves.append(f"\t.reg .b{width} %low{k};\n\tmov.b{width} \t%low{k}, {register};\n")
                values = re.sub(rf"{register}\b", f"%low{k}", values)
        return f"\t{{\n{''.join(moves)}{address}],{values}\n\t}}" if moves else store

    return _NARROW_STORE.sub(plain, ptx) if floats else ptx
