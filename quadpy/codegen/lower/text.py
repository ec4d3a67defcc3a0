"""LLVM IR as text while it is written.

It is text because LLVM parses it about as fast as any builder builds, and because llvmlite's builder cannot express
everything: scopes of atomics, address spaces of variables, attributes with values.
"""

from __future__ import annotations

import functools
import math
import re
import struct
from typing import Final, NamedTuple

from quadpy.codegen.plans.inlining import kept_calls
from quadpy.core.dtypes import Scalar

_LLVM: Final = {
    "u1": "i1", "i8": "i8", "u8": "i8", "i16": "i16", "u16": "i16", "i32": "i32", "u32": "i32", "i64": "i64",
    "u64": "i64", "f16": "half", "bf16": "i16", "f32": "float", "f64": "double",
}  # fmt: skip
UNOPTIMISED: Final = "noinline nounwind optnone"
"""The attributes of functions that run once a call or chunk: optimised, they would take a fifth of a compilation's time."""
_PLAIN: Final = re.compile(r"[A-Za-z$._][-A-Za-z0-9$._]*")


def llvm_type(t: Scalar) -> str:
    """The type of a value in registers.  bf16 is held as bits, since LLVM's handling of the type depends on the CPU."""
    return _LLVM[t.name]


def memory_type(t: Scalar) -> str:
    """The type of a value in memory: a ``u1`` takes a byte."""
    return "i8" if t.name == "u1" else _LLVM[t.name]


def symbol(name: str, sigil: str = "@") -> str:
    """``name`` as a global name in LLVM, or with ``%`` a local one."""
    if _PLAIN.fullmatch(name):
        return sigil + name
    return sigil + '"' + name.replace("\\", "\\5C").replace('"', "\\22") + '"'


@functools.lru_cache(maxsize=4096)
def _float_constant(value: str, name: str) -> str:
    """Floats as their bits; ``value`` is a ``repr``, which tells -0.0 from 0.0."""
    number = float(value)
    if name == "f64":
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if name == "f16":
        return f"0xH{struct.unpack('<H', _packed('<e', number))[0]:04X}"
    rounded = struct.unpack("<f", _packed("<f", number))[0]
    if name == "f32":
        return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    return str(_bfloat_bits(number))


def _packed(code: str, number: float) -> bytes:
    """``number`` rounded to ``code``'s format; a number that is too large becomes infinite."""
    try:
        return struct.pack(code, number)
    except OverflowError:
        return struct.pack(code, float("inf") if number > 0 else float("-inf"))


def _bfloat_bits(number: float) -> int:
    """Rounds once: the low bit of the truncated single records whether anything was cut off."""
    if math.isnan(number):
        return 0x7FC0
    single = struct.unpack("<f", _packed("<f", number))[0]
    bits = int(struct.unpack("<I", struct.pack("<f", single))[0])
    if single != number and not bits & 1 and abs(single) != float("inf"):
        bits += 1 if abs(number) > abs(single) else -1
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def constant(value: float, t: Scalar) -> str:
    """``value`` as a constant operand of type ``t``."""
    if t.is_float:
        return _float_constant(repr(float(value)), t.name)
    return ("true" if value else "false") if t.bits == 1 else str(int(value))


class VectorForm(NamedTuple):
    """A function for several values at once: its symbol, its text, and the attribute that announces it at scalar calls."""

    symbol: str
    text: str
    attribute: str


class ModuleText:
    """Functions and the declarations that they need; ``has_halves`` says whether they may compute with f16."""

    def __init__(self, *, has_halves: bool = False) -> None:
        self.has_halves = has_halves
        self.functions: list[str] = []
        self.inlined_lines: dict[str, int] = {}  # of each function that may be called, with its callees inlined
        self.called: set[str] = set()  # functions that ask to be called, not inlined
        self.vector_forms: dict[str, VectorForm] = {}  # by the symbol of the plain function
        self._kept: dict[str, VectorForm] = {}
        self._declared: dict[str, str] = {}
        self._metadata: list[str] = []
        self._flags: list[str] = []
        self._empty = ""

    def declare(self, name: str, result: str, params: tuple[str, ...]) -> None:
        self._declared.setdefault(name, f"declare {result} @{name}({', '.join(params)})")

    def define(self, name: str, variable: str) -> None:
        """Define a global variable, once for each name."""
        self._declared.setdefault(name, f"{name} = {variable}")

    def keep(self, function: str) -> str:
        """The attributes that keep a call of ``function`` from being inlined."""
        form = self.vector_forms.get(function)
        if form is None:
            return " noinline"
        if function not in self._kept:
            self._kept[function] = form
            self.functions.append(form.text)
        return f" noinline{form.attribute}"

    def metadata(self, node: str) -> str:
        """Add a metadata node, in whose text ``%s`` stands for its number; returns the number."""
        name = f"!{len(self._metadata)}"
        self._metadata.append(f"{name} = {node.replace('%s', name)}")
        return name

    def change_metadata(self, name: str, node: str) -> None:
        """Change the text of the node called ``name``."""
        self._metadata[int(name[1:])] = f"{name} = {node}"

    def loop(self, *hints: str) -> str:
        """A loop's metadata, for its last branch; each hint becomes a separate node."""
        nodes = [self.metadata(f"!{{{hint}}}") for hint in hints]
        return self.metadata(f"distinct !{{%s, {', '.join(nodes)}}}")

    def tags(self, names: tuple[str, ...]) -> str:
        """The empty metadata ``names`` of an instruction, with a comma before."""
        if names and not self._empty:
            self._empty = self.metadata("!{}")
        return "".join(f", !{name} {self._empty}" for name in names)

    def flag(self, name: str, value: int) -> None:
        """Set a module flag."""
        self._flags.append(self.metadata(f'!{{i32 1, !"{name}", i32 {value}}}'))

    def text(self, header: str) -> str:
        flags = [f"!llvm.module.flags = !{{{', '.join(self._flags)}}}"] if self._flags else []
        return "\n".join(
            [header, *self.functions, *self._declared.values(), *self._used(), *self._metadata, *flags, ""]
        )

    def _used(self) -> list[str]:
        """The functions that LLVM must not change before it vectorises.

        Until then it sees no use of the forms; and it would drop unused parameters of the plain functions, whose calls
        would then have fewer operands than their form.
        """
        names = [name for function, form in self._kept.items() for name in (function, form.symbol)]
        pointers = ", ".join(f"ptr {name}" for name in names)
        used = f'@llvm.compiler.used = appending global [{len(names)} x ptr] [{pointers}], section "llvm.metadata"'
        return [used] if names else []


class FunctionText:
    """One function.

    ``open`` says whether the current block still lacks its last instruction; ``overlaps_loads``, whether a loop of the
    function is unrolled so that its loads are under way together.
    """

    __slots__ = (
        "_allocas",
        "_calls",
        "_lines",
        "_next",
        "_tables",
        "_widths",
        "here",
        "module",
        "open",
        "overlaps_loads",
        "private_suffix",
    )

    def __init__(self, module: ModuleText, private_suffix: str = "") -> None:
        self.module, self.private_suffix = module, private_suffix
        self._allocas: list[str] = []
        self._tables: list[tuple[str, str, int]] = []
        self._lines: list[str] = []
        self._calls: dict[str, list[int]] = {}
        self._widths: list[str] = []
        self._next = 0
        self.here, self.open, self.overlaps_loads = "entry", True, False

    def op(self, instruction: str) -> str:
        """Write an instruction with a result; the result's name."""
        self._next += 1
        name = f"%v{self._next}"
        self._lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Write an instruction without a result."""
        self._lines.append(f"  {instruction}")

    def reserve(self) -> str:
        """The name of a result that is written later, with ``define``; for phis."""
        self._next += 1
        return f"%v{self._next}"

    def define(self, name: str, instruction: str) -> None:
        self._lines.append(f"  {name} = {instruction}")

    def intrinsic(self, name: str, result: str, *args: tuple[str, str], flags: str = "") -> str:
        """Call ``name`` (with type suffixes) on pairs of type and operand; ``flags`` have a space before."""
        self.module.declare(name, result, tuple(t for t, _ in args))
        call = f"call{flags} {result} @{name}({', '.join(f'{t} {a}' for t, a in args)})"
        if result == "void":
            self.do(call)
            return ""
        return self.op(call)

    def call(self, function: str, result: str, operands: str) -> str:
        """Call a function of this module; its result's name.  ``finish`` decides whether it is inlined."""
        self._calls.setdefault(function, []).append(len(self._lines))
        return self.op(f"call {result} {function}({operands})")

    def alloca(self, of: str) -> str:
        """A variable of this function, which all blocks may use."""
        self._next += 1
        self._allocas.append(f"  %a{self._next} = alloca {of}{self.private_suffix}")
        return f"%a{self._next}"

    def part(self, instruction: str) -> str:
        """The address of a part of a variable, which all blocks may use."""
        self._next += 1
        self._allocas.append(f"  %a{self._next} = {instruction}")
        return f"%a{self._next}"

    def table(self, count: int, of: str, nbytes: int) -> str:
        """``count`` variables of ``nbytes`` each, aligned to a cache line; ``place_tables`` decides where they are."""
        self._next += 1
        self._tables.append((f"%a{self._next}", f"[{count} x {of}]", count * nbytes))
        return f"%a{self._next}"

    def place_tables(self, memory: str, most: int | None) -> int:
        """Puts tables on the stack and gives 0 if they fit ``most`` bytes; else at ``memory``, and gives their size."""
        total, places = 0, []
        for name, _, nbytes in self._tables:
            places.append(f"  {name} = getelementptr i8, ptr {memory}, i64 {total}")
            total += -(-nbytes // 64) * 64
        if most is not None and total > most:
            self._allocas += places
            return total
        self._allocas += [f"  {name} = alloca {of}, align 64" for name, of, _ in self._tables]
        return 0

    # ------------------------------------------------------- control flow

    def label(self, hint: str) -> str:
        """A fresh label; ``start`` places it."""
        self._next += 1
        return f"{hint}{self._next}"

    def start(self, label: str) -> None:
        """Begin the block ``label``; an open block before it falls through to it."""
        self.jump(label)
        self._lines.append(f"{label}:")
        self.here, self.open = label, True

    def jump(self, label: str) -> None:
        if self.open:
            self.end(f"br label %{label}")

    def branch(self, cond: str, yes: str, no: str) -> None:
        self.end(f"br i1 {cond}, label %{yes}, label %{no}")

    def end(self, instruction: str) -> None:
        """Write the last instruction of the block."""
        self._lines.append(f"  {instruction}")
        self.open = False

    def vector_width(self, width: int) -> str:
        """The metadata node of a loop that LLVM is to vectorise with ``width``, if its calls allow that."""
        name = self.module.metadata(_vector_width(width))
        self._widths.append(name)
        return name

    def finish(self, head: str, name: str = "") -> None:
        """Give the function to the module; ``head`` is the text before the brace; with ``name``, others may call it."""
        sizes = {function: self.module.inlined_lines[function] for function in self._calls}
        kept = kept_calls(len(self._lines), self._calls, sizes, self.module.called)
        for function in sorted(kept):
            attributes = self.module.keep(function)
            for line in self._calls[function]:
                self._lines[line] += attributes
        if any(function not in self.module.vector_forms for function in kept):
            for width in self._widths:  # otherwise LLVM warns on stderr that it cannot obey
                self.module.change_metadata(width, _vector_width(0))
        if name:
            inlined = (sizes[function] * len(lines) for function, lines in self._calls.items() if function not in kept)
            self.module.inlined_lines[name] = len(self._lines) + sum(inlined)
        body = "\n".join(["entry:", *self._allocas, *self._lines])
        self.module.functions.append(f"{head} {{\n{body}\n}}\n")


def _vector_width(width: int) -> str:
    """0 lets LLVM choose."""
    return f'!{{!"llvm.loop.vectorize.width", i32 {width}}}'
