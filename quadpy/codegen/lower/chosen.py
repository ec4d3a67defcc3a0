"""Variables that run-time numbers choose from: they are an array in this thread's memory.

LLVM keeps such an array in memory, and all other variables in registers.  Two cells follow the variables: the first holds
0, for numbers out of range, and the other takes what is assigned by such numbers.
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.lower.casts import resize
from quadpy.codegen.lower.scope import Family, Scope
from quadpy.codegen.lower.text import constant, llvm_type
from quadpy.core.dtypes import Scalar
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk

MOST_VALUES: Final = 16
"""Of so many values that are not in memory, one is picked by comparing with each number; more are copied to memory."""


def declare_families(s: Scope, node: ir.Node, mutable: dict[str, ir.Var]) -> list[Family]:
    """Gives the variables among ``mutable`` from which ``node`` chooses their cells; the largest choices come first."""
    families: list[Family] = []
    placed: set[ir.Var] = set()
    choices = {chosen for n in walk(node) if len(chosen := _chosen_in(n)) > s.rules.most_selects}
    known = [chosen for chosen in choices if all(var.name in mutable for var in chosen)]
    for chosen in sorted(known, key=lambda chosen: (-len(chosen), chosen[0].name)):
        if placed.isdisjoint(chosen):
            families.append(Family(chosen, _new_array(s, len(chosen), chosen[0].type)))
            for number, var in enumerate(chosen):
                s.cells[var.name] = s.text.part(_cell(s, families[-1].address, var.type, str(number)))
                s.families[var.name] = families[-1]
            placed.update(chosen)
    return families


def _chosen_in(node: ir.Node) -> tuple[ir.Var, ...]:
    match node:
        case ir.Pick(items=items):
            return tuple(item.var for item in items if isinstance(item, ir.VarRead))
        case ir.AssignOne(options=options):
            return tuple(option.var for option in options)
        case _:
            return ()


def _new_array(s: Scope, count: int, t: Scalar) -> str:
    ty = llvm_type(t)
    address = s.text.alloca(f"[{count + 2} x {ty}]")
    s.text.do(f"store {ty} {constant(0, t)}, {s.rules.private} {s.text.op(_cell(s, address, t, str(count)))}")
    return address


def _cell(s: Scope, address: str, t: Scalar, number: str) -> str:
    """The instruction that computes the address of a cell."""
    return f"getelementptr inbounds {llvm_type(t)}, {s.rules.private} {address}, i{_bits(s)} {number}"


def _bits(s: Scope) -> int:
    return 32 if s.rules.alloca else 64


def zero_family(s: Scope, family: Family) -> None:
    space, size = (5 if s.rules.alloca else 0), len(family.variables) * max(1, family.type.nbytes)
    operands = ((s.rules.private, family.address), ("i8", "0"), ("i64", str(size)), ("i1", "false"))
    s.text.intrinsic(f"llvm.memset.p{space}.i64", "void", *operands)


def cell_of_one(s: Scope, node: ir.Pick | ir.AssignOne, at: str) -> str | None:
    """The address of the cell that the operand ``at`` chooses; None if the variables are not in one array."""
    chosen = _chosen_in(node)
    family = s.families.get(chosen[0].name) if chosen else None
    steps = (
        family.steps(chosen) if family and (isinstance(node, ir.AssignOne) or len(chosen) == len(node.items)) else None
    )
    if family is None or steps is None:
        return None
    outside = len(family.variables) + isinstance(node, ir.AssignOne)
    return _chosen_cell(s, family.address, family.type, (node.at.type, at), steps, outside)


def _chosen_cell(s: Scope, address: str, t: Scalar, number: tuple[Scalar, str], steps: range, outside: int) -> str:
    out, bits, (type, at) = s.text, _bits(s), number
    inside = out.op(f"icmp ult {llvm_type(type)} {at}, {len(steps)}")
    place = resize(out, at, type, bits)
    if steps.step != 1:
        place = out.op(f"mul i{bits} {place}, {steps.step}")
    if steps.start:
        place = out.op(f"add i{bits} {place}, {steps.start}")
    return out.op(_cell(s, address, t, out.op(f"select i1 {inside}, i{bits} {place}, i{bits} {outside}")))


def copied(s: Scope, items: list[str], t: Scalar, number: tuple[Scalar, str]) -> str:
    """The address of the one of ``items``, which are copied to an array, that ``number`` chooses."""
    address = _new_array(s, len(items), t)
    for at, item in enumerate(items):
        s.text.do(f"store {llvm_type(t)} {item}, {s.rules.private} {s.text.op(_cell(s, address, t, str(at)))}")
    return _chosen_cell(s, address, t, number, range(len(items)), len(items))
