"""How a function uses its names, read from its syntax before tracing."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def local_names(body: Iterable[ast.AST]) -> frozenset[str]:
    """The names that a function with this body assigns, including loop variables: all are local, as in Python."""
    inside = [node for stmt in body for node in ast.walk(stmt)]
    own = {id(name) for node in inside if isinstance(node, ast.comprehension) for name in ast.walk(node.target)}
    return frozenset(
        node.id
        for node in inside
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in own
    ).union(*map(_pattern_names, inside))


def _pattern_names(node: ast.AST) -> tuple[str, ...]:
    """The name that a pattern of a ``match`` binds."""
    match node:
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return (name,)
        case _:
            return ()


def base_name(node: ast.expr) -> str | None:
    """The name of which ``node`` is a part: of ``m`` in ``m[0][1]`` and ``m[0].x``; None of ``m`` itself, and of no name."""
    part = node
    while isinstance(part, (ast.Subscript, ast.Attribute)):
        part = part.value
    return part.id if isinstance(part, ast.Name) and part is not node else None


def _kept(find: Callable[[list[ast.stmt]], T]) -> Callable[[Iterable[ast.AST]], T]:
    """``find``, whose result for the body of a function or statement is kept in its first statement.

    A function is traced at each call of it, so its body is asked about again and again.
    """
    key = f"_quadpy_{find.__name__}"

    @functools.wraps(find)
    def found(nodes: Any) -> T:
        if not isinstance(nodes, list) or not nodes:
            return find(nodes)
        known, which = nodes[0].__dict__, tuple(map(id, nodes))
        if key not in known or known[key][0] != which:
            known[key] = which, find(nodes)
        return known[key][1]  # type: ignore[no-any-return]  # as it was kept

    return found


@_kept
def stored_names(nodes: Iterable[ast.AST]) -> Counter[str]:
    """How often each name is assigned below ``nodes``; an augmented assignment counts twice.

    A component that is set (``v[0] = x``, ``v.xy = w``, ``v.fill(x)``) assigns the whole vector.  What atomic
    operations assign, the trace finds out: they may have any name.
    """
    counts: Counter[str] = Counter()
    for node in nodes:
        for sub in ast.walk(node):
            match sub:
                case ast.Name(id=name, ctx=ast.Store()):
                    counts[name] += 1
                case ast.AugAssign(target=ast.Name(id=name)):
                    counts[name] += 1
                case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                    counts.update(filter(None, [base_name(sub)]))
                case ast.Call(func=ast.Attribute(value=owner, attr="fill")):
                    counts.update([owner.id] if isinstance(owner, ast.Name) else filter(None, [base_name(owner)]))
                case ast.pattern():
                    counts.update(_pattern_names(sub))
    return counts


def item_targets(body: Iterable[ast.AST]) -> frozenset[str]:
    """The names of which items are assigned, or parts of items: ``a`` in ``a[0] = x``, ``a[0].y = x``, ``a[0].fill(x)``."""
    found: set[str | None] = set()
    for node in (node for stmt in body for node in ast.walk(stmt)):
        match node:
            case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                found.add(base_name(node))
            case ast.Call(func=ast.Attribute(value=owner, attr="fill")):
                found.add(base_name(owner))
    return frozenset(filter(None, found))


def statics(body: Iterable[ast.AST]) -> frozenset[str]:
    """The names that are only assigned by ``a = static(…)`` and ``a, b = static(…)``, whatever ``static`` belongs to."""
    counts: Counter[str] = Counter()
    for node in (node for stmt in body for node in ast.walk(stmt)):
        if isinstance(node, ast.Assign) and _is_static(node.value):
            counts += stored_names(node.targets)
    return frozenset(name for name, count in stored_names(body).items() if counts[name] == count)


def _is_static(node: ast.expr) -> bool:
    """Whether this is ``static(…)``, whatever ``static`` belongs to, or joins only such with ``not``, ``and``, ``or``."""
    match node:
        case ast.Call(func=ast.Name(id="static") | ast.Attribute(attr="static")):
            return True
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_static(operand)
        case ast.BoolOp(values=values):
            return all(map(_is_static, values))
        case _:
            return False


def reads(name: str, body: Iterable[ast.AST]) -> bool:
    """Whether ``name`` is read, also by ``name += 1`` and ``name.x = 1``."""
    return any(
        (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name)
        for stmt in body
        for node in ast.walk(stmt)
    )


@_kept
def bound_once(body: Sequence[ast.stmt]) -> dict[str, bool]:
    """Names that are assigned in one straight line, and read only after the first assignment, in the line or below it.

    They need no variable: the value itself can be bound to the name.  True says that the line assigns the name again.
    A line goes on inside a branch that ``static(…)`` decides.
    """
    counts, loads = stored_names(body), _loads(body)
    found: dict[str, bool] = {}
    for line in _lines(body):
        after: Counter[str] = Counter()
        times: Counter[str] = Counter()
        for stmt in reversed(line):
            assigned = Counter(_assigned_here(stmt))
            times += assigned
            for name in assigned:
                if times[name] == counts[name] and after[name] == loads[name]:
                    found[name] = counts[name] > 1
            if isinstance(stmt, ast.AugAssign):
                times += stored_names([stmt])
            after += _loads([stmt])
    return found


def _lines(body: Sequence[ast.stmt]) -> Iterator[Sequence[ast.stmt]]:
    """The straight lines of statements: the body, and what statements have inside that is not part of one already."""
    line = list(_straight(body))
    yield line
    for stmt in line:
        for field in ("body", "orelse"):
            inner = getattr(stmt, field, None)
            if inner:
                yield from _lines(inner)


def _straight(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for stmt in body:
        if isinstance(stmt, ast.If) and _is_static(stmt.test):
            yield ast.Expr(stmt.test)
            yield from _straight(stmt.body)
            yield from _straight(stmt.orelse)
        else:
            yield stmt


def _assigned_here(stmt: ast.stmt) -> Iterator[str]:
    targets: Sequence[ast.expr] = ()
    if isinstance(stmt, ast.Assign):
        targets = stmt.targets
    elif isinstance(stmt, ast.AnnAssign) and stmt.value is not None:
        targets = (stmt.target,)
    for target in targets:
        for sub in ast.walk(target):
            if isinstance(sub, ast.Name) and isinstance(sub.ctx, ast.Store):
                yield sub.id


def _loads(stmts: Iterable[ast.stmt]) -> Counter[str]:
    """How often each name is read below ``stmts``."""
    nodes = (sub for stmt in stmts for sub in ast.walk(stmt))
    return Counter(sub.id for sub in nodes if isinstance(sub, ast.Name) and isinstance(sub.ctx, ast.Load))
