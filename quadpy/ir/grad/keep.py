"""Refuses backward kernels that would read what the kernel has overwritten, or whose iterations would get in each other's way."""

from __future__ import annotations

from collections.abc import Iterator

from quadpy.errors import KernelTypeError, OverwrittenError
from quadpy.ir import nodes as ir
from quadpy.ir.grad.held import Held, Holding
from quadpy.ir.grad.indices import Access, AnyLoop, Indices, Linear, accesses_in
from quadpy.ir.grad.values import Values
from quadpy.ir.index.polynomials import parts_of
from quadpy.ir.passes.split_tasks import split_tasks
from quadpy.ir.races import Proved, races_of
from quadpy.ir.touches import name_of
from quadpy.ir.variables import bound_by
from quadpy.ir.walk import walk


def check_kept(
    original: ir.Kernel, kernel: ir.Kernel, made: ir.Kernel, reverse: Values, holding: Holding | None
) -> None:
    """Checks ``made``, the backward kernel of ``kernel``, which is ``original`` without jumps.

    It runs on what the kernel leaves in memory, or, if ``holding`` made the kernel, on what was there before.

    Raises:
        KernelTypeError: at the access of the kernel that prevents its adjoint.
    """
    needed: dict[int, ir.Load | ir.Atomic] = {}
    for node in walk(made.body):
        for var in bound_by(node):
            if var in reverse.lost:
                raise reverse.lost[var]
            if var in reverse.origins:
                needed[id(reverse.origins[var])] = reverse.origins[var]
    adjoints = set(reverse.grads.values())
    for stmt in needed.values():
        if isinstance(stmt.place, ir.Element) and stmt.place.array in adjoints:
            raise KernelTypeError(
                f"the adjoint needs the value of {kernel.called(stmt.place.array)} that is read here, and adds to it", stmt.span,
                hint="copy the gradient to another array before",
            )  # fmt: skip
    found = list(accesses_in(kernel.body))
    writes = [each for each in found if not isinstance(each.stmt, ir.Load)]
    indices = Kept(kernel.body)
    for read in found:
        if id(read.stmt) in needed:
            for write in writes:
                if holding is None:
                    is_lost = not _same_extreme(read.stmt, write.stmt) and meet(read, write, kernel, indices)
                elif isinstance(read.stmt, ir.Atomic):  # which needs the final value
                    is_lost = True
                else:
                    held = holding.holder_of(read.stmt)
                    same = held if held is holding.holder_of(write.stmt) else None
                    is_lost = meet(write, read, kernel, indices, same)
                if is_lost:
                    refuse(read, write, kernel, from_before=holding is not None)
    arrays = {stmt.place.array for stmt in needed.values() if isinstance(stmt.place, ir.Element)}
    _check_races(original, arrays | reverse.grads.keys())


def _same_extreme(stmt: ir.Stmt, other: ir.Stmt) -> bool:
    """Whether both take a minimum, or a maximum, of one array: the first needs the final value alone."""
    if not isinstance(stmt, ir.Atomic) or not isinstance(other, ir.Atomic):
        return False
    return (stmt.op, name_of(stmt.place)) == (other.op, name_of(other.place))


def refuse(
    read: Access, write: Access, kernel: ir.Kernel, what: str = "the adjoint", *, from_before: bool = False
) -> None:
    """Raises the error that ``write`` overwrites what ``what`` needs."""
    name, line = kernel.called(read.place.array), write.stmt.span.line
    why = f"which line {line} may have written" if from_before else f"but line {line} overwrites it"
    on_tape = what == "the adjoint" and not from_before
    raise OverwrittenError(
        f"{what} needs the value of {name} that is read here, {why}", read.stmt.span,
        hint="call the kernel on a tape, which keeps the old value: with qp.ad.Tape(loss):" if on_tape
        else "write to another array, or to other elements",
    )  # fmt: skip


def meet(first: Access, second: Access, kernel: ir.Kernel, indices: Kept, held: Held | None = None) -> bool:
    """Whether ``second`` may access, after ``first``, the same element; other iterations are ``_check_races``'s.

    Where both are about what is ``held``, this is only asked of different turns of the loops in which that begins anew.
    """
    mine, other = first.place, second.place
    if kernel.noalias and (mine.array, mine.component) != (other.array, other.component):
        return False
    comes_after = second.order > first.order
    if first.task != second.task:
        return comes_after and not (kernel.noalias and indices.fixed(mine, other))
    shared = tuple(a for a, b in zip(first.loops, second.loops, strict=False) if a is b)
    if held is not None:
        comes_after, shared = False, shared[: held.depth]
    if not comes_after and not shared:
        return False
    return not (kernel.noalias and indices.apart(mine, other, shared, first=comes_after or len(shared) > 1))


class Kept(Indices):
    """Indices of accesses in one kernel, or loop."""

    def fixed(self, a: ir.Element, b: ir.Element) -> bool:
        """Whether elements that different tasks access certainly differ."""
        return any(isinstance(i, int) and isinstance(j, int) and i != j for i, j in self.pairs(a, b))

    def apart(self, a: ir.Element, b: ir.Element, shared: tuple[AnyLoop, ...], *, first: bool) -> bool:
        """Whether ``b``, in the same turns of the loops ``shared`` or later ones, is never the element ``a``.

        ``first``: the same turn counts.
        """
        varying = {f"v {var.name}" for loop in shared[:1] for var in _bound_in(loop)}
        for i, j in self.pairs(a, b):
            atoms = {atom for each in (i, j) for product, _ in parts_of(each) for atom in product}
            if not atoms & varying:
                if isinstance(apart := j - i, int) and apart != 0:
                    return True
                continue
            outer = shared[0]
            if (
                isinstance(outer, ir.For)
                and atoms & varying == {f"v {outer.var.name}"}
                and _never_meets(i, j, outer, first=first)
            ):
                return True
        return False


def _bound_in(loop: AnyLoop) -> Iterator[ir.Var]:
    """What is bound again in each turn."""
    if isinstance(loop, ir.For):
        yield loop.var
    for node in walk(loop.body):
        yield from bound_by(node)
        if isinstance(node, ir.For):
            yield node.var


def _never_meets(i: Linear, j: Linear, loop: ir.For, *, first: bool) -> bool:
    """Whether ``i`` in one turn differs from ``j`` in all later ones, both linear in the loop's variable alike."""
    if not isinstance(loop.step, ir.Const) or loop.step.value == 0:
        return False
    name = f"v {loop.var.name}"
    apart = j - i
    factors = [factor for product, factor in parts_of(i) if product == (name,)]
    if not isinstance(apart, int) or any(name in product for product, _ in parts_of(i) if product != (name,)):
        return False
    turns, left = divmod(-apart, factors[0] * int(loop.step.value))
    return left != 0 or turns < (0 if first else 1)


def _check_races(kernel: ir.Kernel, arrays: set[str]) -> None:
    """No iteration may write what another one reads or writes, in the arrays that matter."""
    for task in split_tasks(kernel).tasks:
        if not isinstance(task, ir.ParallelTask):
            continue
        touched = {node.array for node in walk(task) if isinstance(node, ir.Element)}
        if not touched & arrays:
            continue
        allowed = {name for name, _ in task.allowed}
        for name, verdict in races_of(task, noalias=kernel.noalias).items():
            if name not in arrays or name in allowed or isinstance(verdict, Proved):
                continue
            first, second = sorted((verdict.first, verdict.second), key=lambda point: point.verb == "reads")
            raise KernelTypeError(
                f"the adjoint needs iterations that do not touch the same element of {kernel.called(name)}, "
                f"but line {first.span.line} {first.verb} an element that another iteration may touch", second.span,
                hint="if the indices are all different, say so: with qp.hazards.allow(x, reason=…)",
            )  # fmt: skip
