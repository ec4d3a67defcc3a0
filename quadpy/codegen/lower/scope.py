"""The meaning of names in the LLVM function that is being written."""

from __future__ import annotations

from dataclasses import field, replace

from quadpy.codegen.lower.polls import Fuel
from quadpy.codegen.lower.text import FunctionText
from quadpy.codegen.targets.rules import TargetRules
from quadpy.core.dtypes import Scalar
from quadpy.core.light import dataclass
from quadpy.ir.nodes import Function, Var
from quadpy.ir.types import Array

FAST_FLAGS = " reassoc nsz arcp contract afn"


@dataclass(frozen=True, slots=True)
class ArrayOperands:
    """An array parameter as LLVM operands: extents in the kernel's index type, strides as i64.

    ``wide_extents`` are the extents as i64, on targets that compute offsets in 64 bits.
    """

    type: Array
    pointer: str
    extents: tuple[str, ...] = ()
    wide_extents: tuple[str, ...] = ()
    strides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """``variables`` in one array, in this order, at ``address``."""

    variables: tuple[Var, ...]
    address: str

    @property
    def type(self) -> Scalar:
        return self.variables[0].type

    def steps(self, chosen: tuple[Var, ...]) -> range | None:
        """The numbers of ``chosen`` in the array; None if they do not follow each other in steps of one length."""
        numbers = {var: number for number, var in enumerate(self.variables)}
        found = [numbers.get(var, -1) for var in chosen]
        steps = range(found[0], found[-1] + 1, max(1, found[1] - found[0]))
        return steps if found[0] >= 0 and [*steps] == found else None


@dataclass(slots=True)
class Scope:
    """The tables of one function.

    values    operands of bound variables
    wide      i64 twins of loop variables, and of sums of these and constants: addresses are computed from them, so
              that LLVM sees addresses advance by a constant
    natural   loop variables that count up from 0 or more
    sums      variables as an i32 that is never below 0, and a constant: 32-bit addresses share the i32
    cells     addresses of mutable variables
    families  the arrays of those that run-time numbers choose from
    flags     fast-math flags, with a space before
    loops     innermost last: where ``break`` and ``continue`` go
    thread    number of this iteration in its block, and
    block     number of the block, i32, if the task needs them
    iteration where ``continue`` goes outside all loops: the end of the parallel loop's iteration
    privates  arrays of which this thread has a private copy
    access    metadata of loads and stores, with a comma before
    constants arrays that nothing writes while the function runs, if the target has special loads for them
    loop_tag  metadata of the parallel loop
    results   of a function; None in a task
    returned  the address of the memory for a kernel's results; empty where its first slots have them
    fuel      how the CPU's long loops look for signals; None if there are none
    """

    text: FunctionText
    rules: TargetRules
    index: Scalar
    functions: dict[str, Function]
    flags: str = ""
    scratch: str = ""
    params: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, ArrayOperands] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    wide: dict[str, str] = field(default_factory=dict)
    natural: set[str] = field(default_factory=set)
    sums: dict[str, tuple[str, int]] = field(default_factory=dict)
    cells: dict[str, str] = field(default_factory=dict)
    families: dict[str, Family] = field(default_factory=dict)
    loops: list[tuple[str, str]] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    thread: str = ""
    block: str = ""
    iteration: str = ""
    privates: frozenset[str] = frozenset()
    access: str = ""
    constants: frozenset[str] = frozenset()
    loop_tag: str = ""
    results: tuple[Scalar, ...] | None = None
    returned: str = ""
    fuel: Fuel | None = None

    def fresh(self) -> Scope:
        """A scope for another task in the same function, in which nothing but the kernel's parameters is known."""
        return replace(
            self, arrays=dict(self.arrays), values={}, wide={}, natural=set(), sums={}, cells={}, loops=[], labels={}
        )

    @property
    def narrow(self) -> bool:
        """Whether offsets are computed in 32 bits."""
        return self.rules.narrow_offsets and self.index.bits == 32

    @property
    def address_type(self) -> str:
        return "i32" if self.narrow else "i64"
