"""Moves the stores of a straight-line body after its loads."""

from __future__ import annotations

from quadpy.ir import nodes as ir


def stores_last(stmts: tuple[ir.Stmt, ...], *, disjoint: bool) -> tuple[ir.Stmt, ...]:
    """The same effect, with each store as late as the loads after it allow.

    A load of a place just stored to takes the stored value.  ``disjoint`` says that no written array overlaps another.
    """
    done: list[ir.Stmt] = []
    late: list[ir.Store] = []
    for stmt in stmts:
        match stmt:
            case ir.Store(place=ir.Element()):
                late.append(stmt)
                continue
            case ir.Let():
                pass
            case ir.Load(var=var, place=place):
                met = _met(late, place, disjoint=disjoint)
                if met is not None and met.place == place:
                    done.append(ir.Let(var, met.value, span=stmt.span))
                    continue
                if met is not None:
                    done += late
                    late.clear()
            case _:
                done += late
                late.clear()
        done.append(stmt)
    return (*done, *late)


def _met(late: list[ir.Store], place: ir.Place, *, disjoint: bool) -> ir.Store | None:
    """The last of the stores that may be to ``place``."""
    return next((store for store in reversed(late) if not apart(store.place, place, disjoint=disjoint)), None)


def apart(a: ir.Place, b: ir.Place, *, disjoint: bool) -> bool:
    """Whether ``a`` and ``b`` are never the same memory."""
    if not (isinstance(a, ir.Element) and isinstance(b, ir.Element)):
        return False
    if a.array != b.array:
        return disjoint
    return a.index == b.index and a.component != b.component and a.chosen is b.chosen is None
