"""The types of a call's arguments, as far as a specialisation depends on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias

from quadpy.core.derivatives import Derivative
from quadpy.core.dtypes import Scalar, f32, i32
from quadpy.core.light import dataclass
from quadpy.core.records import RecordType
from quadpy.errors import ArgumentError
from quadpy.ir.types import Array


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A number, passed by value."""

    type: Scalar


@dataclass(frozen=True, slots=True)
class VecArg:
    """A vector or matrix, passed by value as its components."""

    shape: tuple[int, ...]
    type: Scalar


@dataclass(frozen=True, slots=True)
class StructArg:
    """A struct, passed by value as its scalars."""

    type: RecordType


@dataclass(frozen=True, slots=True)
class ArrayArg:
    """An array; a read-only one may not be written.  Its elements are structs if there is a ``record``.

    Each rank has a part of a ``distributed`` one, with "1" for each axis along which it has one element more than cells, and
    "0" for the others.  Indices of a ``clamped`` one are moved into its range.
    Where calls pass the array twice, the later parameter means the earlier one, called ``same``.
    """

    type: Array
    writable: bool = True
    record: RecordType | None = None
    distributed: str = ""
    clamped: bool = False
    same: str = ""


class MemberPath(NamedTuple):
    """Where a value is inside the argument called ``root``: each step is an attribute, or the key of an item in a tuple."""

    root: str
    steps: tuple[str | tuple[int | str], ...] = ()

    @staticmethod
    def named(text: str) -> MemberPath:
        """The path of an argument, or of a member of a dataclass: its names with dots between them."""
        root, *steps = text.split(".")
        return MemberPath(root, tuple(steps))

    def attribute(self, name: str) -> MemberPath:
        return MemberPath(self.root, (*self.steps, name))

    def item(self, key: int | str) -> MemberPath:
        return MemberPath(self.root, (*self.steps, (key,)))

    def after(self, root: str) -> str:
        """The expression that reads it from ``root``."""
        return root + "".join(f".{step}" if isinstance(step, str) else f"[{step[0]!r}]" for step in self.steps)

    def of(self, value: Any) -> Any:
        """The value that it has inside ``value``; raises what reading it raises."""
        for step in self.steps:
            value = getattr(value, step) if isinstance(step, str) else value[step[0]]
        return value

    def __str__(self) -> str:
        return self.after(self.root)


@dataclass(frozen=True, slots=True)
class StaticArg:
    """A compile-time value of a ``template()`` parameter.

    ``member`` gives the type of what a launch passes of it: of a value in it, and the object that has the value; None
    for what is known at compile time.
    """

    value: Any
    member: Callable[[object, object], ArgType | None] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ContainerArg:
    """A dataclass whose members are arguments; a launch passes those that the kernel uses.

    ``member`` gives the type of one of them, from its name, until ``release`` is called.
    """

    type: type
    names: Collection[str] = field(repr=False)
    member: Callable[[str], ArgType] = field(repr=False, compare=False)
    release: Callable[[], None] = field(repr=False, compare=False)


ArgType: TypeAlias = ScalarArg | VecArg | StructArg | ArrayArg | StaticArg | ContainerArg


def member_type(types: Mapping[str, ArgType], path: MemberPath) -> ArgType:
    """The type of what a launch passes for the member at ``path``; what reading it raises where there is no such member."""
    arg = types[path.root]
    if isinstance(arg, ArrayArg):  # its gradient
        return arg
    if isinstance(arg, StaticArg):
        found = arg.member and arg.member(MemberPath(path.root, path.steps[:-1]).of(arg.value), path.of(arg.value))
        if found is None:
            raise LookupError(str(path))
        return found
    for step in path.steps:
        if not isinstance(arg, ContainerArg) or step not in arg.names:
            raise LookupError(str(path))
        arg = arg.member(str(step))
    return arg


class MemberRefused(Exception):
    """A member that the kernel uses is not what its annotation says: ``error``, which is the caller's, not the kernel's."""

    def __init__(self, error: ArgumentError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class Options:
    """What else a specialisation depends on; ``graph`` is that of the decorator.

    ``predicated`` asks for tasks that check themselves whether their loop continues, ``fused`` for all tasks in one
    launch, ``indirect`` for GPU kernels that read their arguments from memory, ``debug`` for checks, with ``indices_only`` those of indices; ``interpreted`` says
    that Python runs the kernel, ``lines`` asks for marks of the source (``ir.Line``) and a kernel without tasks.
    ``wave_size`` is the target's; ``serial`` makes no loop parallel.  ``block_dim`` is the size of blocks where a loop says
    nothing, None for the compiler's choice; a loop that is unrolled more often than ``unrolling_limit`` gives a warning, for
    0 none.  ``as_taichi`` allows a float result under an integer annotation,
    and lets a name that is not assigned yet mean the module's.  ``guarded`` skips accesses outside arrays.
    ``derivative`` asks for another kernel in place of the kernel itself: see ``core.derivatives``.
    """

    default_ip: Scalar = i32
    default_fp: Scalar = f32
    index: Scalar = i32
    noalias: bool = True
    fast_math: bool = False
    graph: bool = False
    predicated: bool = False
    fused: bool = False
    indirect: bool = False
    wave_size: int = 32
    debug: bool = False
    indices_only: bool = False
    interpreted: bool = False
    lines: bool = False
    serial: bool = False
    block_dim: int | None = None
    unrolling_limit: int = 0
    as_taichi: bool = False
    guarded: bool = False
    derivative: Derivative = Derivative()
