"""How backward kernels add to adjoints that several iterations add to: always in the same order.

What the loops' variables decide is gathered (``gather``), what data decide is added exactly, so that no order matters (``exact``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from quadpy.errors import KernelSyntaxError
from quadpy.ir import nodes as ir
from quadpy.ir.grad.exact import Memory, exact_sums
from quadpy.ir.grad.gather import Gatherer
from quadpy.ir.grad.maths import Names
from quadpy.ir.grad.parts import part_for
from quadpy.ir.grad.structured import structured
from quadpy.ir.passes.atomics import plain_steps, without_unused
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


def gathered(kernel: ir.Kernel, arrays: Iterable[str], staggered: Mapping[str, str]) -> ir.Kernel:
    """``kernel`` with loops over the elements of ``arrays`` in place of what other loops add to elements of other iterations.

    Each rank runs such loops over its own elements.  Sums at indices that data decide stay.  The extents of ``staggered``
    arrays are those of the same grid, or one more along axes that have "1".
    """
    twins, first = {array: array for array in arrays}, dict[tuple[str, int], str]()
    for name, more in staggered.items():
        for axis, each in enumerate(more):
            first.setdefault((each, axis), name)
    names, stmts = Names(), list[ir.Stmt]()

    def visit(node: ir.Node) -> ir.Node:
        """``node`` with sums for differences, and the same expression for equal extents."""
        match node := map_children(node, visit):
            case ir.ShapeOf(array=array, axis=axis) if array in staggered:
                return replace(node, array=first[staggered[array][axis], axis])
            case ir.Atomic(op=ir.AtomicOp.SUB, place=ir.Element(array=array), value=value, result=None) if (
                array in twins
            ):
                return replace(node, op=ir.AtomicOp.ADD, value=-value)
        return node

    for stmt in kernel.body.stmts:
        if kernel.noalias and isinstance(stmt, ir.ParallelFor) and not stmt.shared:
            stmts += _gathered(kernel, visit(without_unused(stmt)), names, twins)  # type: ignore[arg-type]  # a loop for a loop
        else:
            stmts.append(stmt)
    return replace(kernel, body=replace(kernel.body, stmts=tuple(stmts)))


def _gathered(
    kernel: ir.Kernel, loop: ir.ParallelFor, names: Names, twins: Mapping[str, str]
) -> Iterator[ir.ParallelFor]:
    """Gathers, which have no jumps and report nothing to the host, and then what remains of ``loop``, which does."""
    gatherer, done = Gatherer(kernel, replace(loop, body=structured(loop.body, names)), names, twins), set[str]()
    for array, sites in gatherer.sites(gatherer.own()).items():
        solved = gatherer.inverses(sites)
        if solved is not None and (groups := gatherer.groups(solved)) is not None:
            done.add(array)
            yield gatherer.gather(array, groups)
    whole = Gatherer(kernel, loop, names, twins) if done else gatherer
    kept = {id(each.stmt) for each in whole.accesses if each.place.array not in done or whole.is_fixed(each.place)}
    rest = part_for(kernel, loop, kept | _slots(loop)) if done else loop
    if rest is None:
        return
    touches = any(isinstance(node, ir.Element) and node.array in twins for node in walk(rest))
    printing = next((node for node in walk(rest) if isinstance(node, ir.Print)), None)
    if done and printing is not None and not touches:
        raise KernelSyntaxError(
            "this loop only adds to elements of other cells, so that it is not known which rank prints", printing.span,
            hint="print in a separate loop, which reads an array of the grid",
        )  # fmt: skip
    yield rest


def _loops(
    kernel: ir.Kernel, loop: ir.ParallelFor, names: Names, twins: Mapping[str, str], memory: Memory
) -> Iterator[ir.Stmt]:
    gatherer = Gatherer(kernel, loop, names, twins)
    done, plain = set[int](), set[int]()
    for array, sites in gatherer.sites(gatherer.apart()).items():
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
