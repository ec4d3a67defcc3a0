"""Moves the stores of a straight-line body behind its loads.  Owns: ``stores_last``.  Imports: ``ir`` only."""

from __future__ import annotations

from quadpy.ir.nodes import Element, Let, Load, Place, Stmt, Store

__all__ = ["stores_last"]


def stores_last(stmts: tuple[Stmt, ...], *, disjoint: bool) -> tuple[Stmt, ...]:
    """The same effect, with each store as late as the loads after it allow.

    A load of what was just stored takes the stored value.  ``disjoint`` says that no written array overlaps another.
    """
    done: list[Stmt] = []
    late: list[Store] = []
    for stmt in stmts:
        match stmt:
            case Store(place=Element()):
                late.append(stmt)
                continue
            case Let():
                pass
            case Load(var=var, place=place):
                met = _met(late, place, disjoint=disjoint)
                if met is not None and met.place == place:
                    done.append(Let(var, met.value, span=stmt.span))
                    continue
                if met is not None:
                    done += late
                    late.clear()
            case _:
                done += late
                late.clear()
        done.append(stmt)
    return (*done, *late)


def _met(late: list[Store], place: Place, *, disjoint: bool) -> Store | None:
    """The last of the stores that may be to ``place``."""
    return next((store for store in reversed(late) if not _apart(store.place, place, disjoint=disjoint)), None)


def _apart(a: Place, b: Place, *, disjoint: bool) -> bool:
    """Whether ``a`` and ``b`` are never the same memory."""
    if not (isinstance(a, Element) and isinstance(b, Element)):
        return False
    if a.array != b.array:
        return disjoint
    return a.index == b.index and a.component != b.component
