"""The row of one function or operation of the language.  Rows are data: they name code and hold none."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from quadpy.core.dtypes import Scalar, u1

if TYPE_CHECKING:
    from quadpy.core.target import Family

__all__ = [
    "Effect", "Emitted", "Library", "Llvm", "Lowering", "Operator", "Row", "Syntax", "Traced", "Types", "Unsupported",
    "Update",
]  # fmt: skip


class Types(enum.Enum):
    """How the operands of a row get their types, and which type its result has.

    ``FLOATS``    one float type for all operands and the result; an integer becomes the default float type
    ``INTEGERS``  one integer type for all operands and the result
    ``COUNT``     an integer; the result is an i32
    ``OWN``       the function in the trace decides
    """

    FLOATS = "floats"
    INTEGERS = "integers"
    COUNT = "count"
    OWN = "own"

    def admits(self, operands: Sequence[Scalar], result: Scalar) -> bool:
        """Whether typed operands and a result obey the rule."""
        match self:
            case Types.FLOATS:
                return set(operands) == {result} and result.is_float
            case Types.INTEGERS:
                return set(operands) == {result} and result.is_integral and result != u1
            case Types.COUNT:
                return all(t.is_integral and t != u1 for t in (*operands, result))
            case Types.OWN:
                return False


class Effect(enum.Flag):
    """The effects of a call besides its value.  A row without effects is pure and may be an expression of the IR.

    ``UPDATES``    changes the place that is its first argument
    ``ORDERS``     orders what the block reads and writes
    ``CONVERGES``  all iterations of a block reach it, or none does
    ``DRAWS``      advances the random numbers of its iteration
    ``ALLOCATES``  gives each block separate memory
    ``OBSERVES``   reads a value that changes by itself: it is never moved, merged or removed
    """

    UPDATES = enum.auto()
    ORDERS = enum.auto()
    CONVERGES = enum.auto()
    DRAWS = enum.auto()
    ALLOCATES = enum.auto()
    OBSERVES = enum.auto()


# Tuples: a class of tuples is made in a sixth of the time that a dataclass takes, and every import pays for it.


class Library(NamedTuple):
    """The function of the row's name in ``quadpy.mathlib.module``."""

    module: str


class Operator(NamedTuple):
    """The operator of the IR, a ``UnOp`` or ``BinOp``, that has this value."""

    op: str


class Update(NamedTuple):
    """The ``AtomicOp`` that has this value; the first argument is a place."""

    op: str


class Llvm(NamedTuple):
    """LLVM's intrinsic ``llvm.NAME`` for the type of the operands, which ``constants`` follow: type and value."""

    name: str
    constants: tuple[tuple[str, str], ...] = ()


class Emitted(NamedTuple):
    """Instructions that the function of the row's name in ``codegen.lower.expressions`` writes."""


class Traced(NamedTuple):
    """Nodes that the function of the row's name in ``lang.intrinsics`` makes."""


class Syntax(NamedTuple):
    """Part of a statement, which is written as ``form``; the statement defines its meaning."""

    form: str


class Unsupported(NamedTuple):
    """A target lacks it; ``why`` is for the user."""

    why: str


Lowering: TypeAlias = Library | Operator | Update | Llvm | Emitted | Traced | Syntax | Unsupported


class Row(NamedTuple):
    """One function or operation of the language.

    name        what users write after ``qp.``, or ``qp.simt.`` for blocks
    parameters  as a signature shows them
    lowering    for all targets, or for each family of targets
    per_block   belongs to the iterations of a parallel loop, which then has blocks
    compile_time  is about the code being compiled, and has no value outside of it
    derivative  reserved for derivatives
    """

    name: str
    parameters: str
    doc: str
    lowering: Lowering | Mapping[Family, Lowering]
    types: Types = Types.OWN
    effects: Effect = Effect(0)
    per_block: bool = False
    compile_time: bool = False
    derivative: None = None

    @property
    def arity(self) -> int:
        """The number of operands of a row whose types the row does not set itself."""
        return len(self.parameters.split(","))

    @property
    def signature(self) -> str:
        return f"{self.name}({self.parameters})"

    def on(self, family: Family) -> Lowering:
        """The lowering for one family of targets."""
        return self.lowering[family] if isinstance(self.lowering, Mapping) else self.lowering

    @property
    def is_kernel_only(self) -> bool:
        """Whether a call has no meaning outside kernels."""
        return bool(
            self.per_block or self.compile_time or self.effects & ~Effect.DRAWS or isinstance(self.lowering, Syntax)
        )

    @property
    def is_instruction(self) -> bool:
        """Whether the row is an ``Intrinsic`` of the IR, which code generation writes for each target."""
        every = self.lowering.values() if isinstance(self.lowering, Mapping) else (self.lowering,)
        return not self.effects and any(isinstance(lowering, (Llvm, Emitted)) for lowering in every)
