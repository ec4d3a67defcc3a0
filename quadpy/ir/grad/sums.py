"""How backward kernels add to adjoints that several iterations add to: always in the same order.

What the loops' variables decide is gathered (``gather``), what data decide is added exactly, so that no order matters (``exact``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from quadpy.ir import nodes as ir
from quadpy.ir.grad.exact import Memory, exact_sums
from quadpy.ir.grad.gather import Gatherer
from quadpy.ir.grad.maths import Names
from quadpy.ir.grad.parts import part_for
from quadpy.ir.passes.atomics import plain_steps
from quadpy.ir.walk import map_children, walk


def summed(kernel: ir.Kernel, twins: Mapping[str, str], names: Names, memory: Memory) -> ir.Kernel:
    """``kernel``, a backward kernel, with sums that do not depend on the order of iterations.

    ``twins`` maps adjoints, and their tangents, to the arrays that they are of.  Where arrays overlap that the caller passes, and under ``fast_math`` where data
    decide, atomics remain.
    """
    if not kernel.noalias:
        return memory.added_to(kernel)
    stmts: list[ir.Stmt] = []
    for stmt in kernel.body.stmts:
        is_plain = isinstance(stmt, ir.ParallelFor) and not stmt.shared
        stmts += _loops(kernel, stmt, names, twins, memory) if is_plain else (stmt,)  # type: ignore[arg-type]
    return memory.added_to(replace(kernel, body=ir.Block(tuple(stmts), span=kernel.body.span)))


def _loops(
    kernel: ir.Kernel, loop: ir.ParallelFor, names: Names, twins: Mapping[str, str], memory: Memory
) -> Iterator[ir.Stmt]:
    gatherer = Gatherer(kernel, loop, names, twins)
    done, plain = set[int](), set[int]()
    for array, sites in gatherer.sites().items():
        ids = {id(site.stmt) for site in sites}
        solved = gatherer.inverses(sites)
        if solved is not None and gatherer.is_apart(solved):
            plain |= ids
            continue
        groups = None if solved is None else gatherer.groups(solved)
        if groups is not None:
            done |= ids
            yield gatherer.gather(array, groups)
            continue
        part = part_for(kernel, loop, ids)
        if part is not None and gatherer.is_pure(part) and not kernel.fast_math:
            done |= ids
            yield from exact_sums(kernel, part, ids, names, memory)
    everything = {id(each.stmt) for each in gatherer.accesses} | _slots(loop)
    rest = part_for(kernel, loop, everything - done) if done else loop
    if rest is not None:
        yield _with_plain(rest, plain, names)


def _slots(loop: ir.ParallelFor) -> set[int]:
    return {
        id(node) for node in walk(loop) if isinstance(node, (ir.Store, ir.Atomic)) and isinstance(node.place, ir.Slot)
    }


def _with_plain(loop: ir.ParallelFor, plain: set[int], names: Names) -> ir.ParallelFor:
    """``loop`` with loads and stores for the updates ``plain``, whose elements no other iteration touches."""

    def steps(stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if id(stmt) not in plain:
            yield stmt
        else:
            assert isinstance(stmt, ir.Atomic)
            yield from plain_steps(stmt, names.fresh("old", stmt.place.type))

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Block):
            node = ir.Block(tuple(new for stmt in node.stmts for new in steps(stmt)), span=node.span)
        return map_children(node, visit)

    return visit(loop) if plain else loop  # type: ignore[return-value]  # a loop for a loop
