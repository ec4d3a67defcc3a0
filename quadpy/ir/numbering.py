"""Statements by number, so that decisions about them are values: they can be compared, hashed and stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quadpy.ir import nodes as ir


def statements(root: ir.Node) -> Iterator[ir.Stmt]:
    """The statements below ``root``, in the order of the text."""
    waiting: list[ir.Node] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ir.Block):
            waiting += node.stmts[::-1]
            continue
        if node is not root:
            yield node  # type: ignore[misc]  # blocks hold statements
        for name in reversed(node.CHILDREN):
            value = getattr(node, name)
            waiting += [
                each for each in (value[::-1] if isinstance(value, tuple) else (value,)) if isinstance(each, ir.Block)
            ]


class Numbers:
    """The number of each statement below ``root``, in the order of the text.

    Two statements may be equal, so they are told apart as objects; one that stands in several places has one number.
    """

    def __init__(self, root: ir.Node) -> None:
        self._root = root  # no statement is freed, and another made in its place
        self._numbers = {key: number for number, key in enumerate(dict.fromkeys(map(id, statements(root))))}

    def __getitem__(self, stmt: ir.Stmt) -> int:
        return self._numbers[id(stmt)]

    def of(self, stmts: Iterable[ir.Stmt]) -> frozenset[int]:
        """The numbers of ``stmts``."""
        return frozenset(self[stmt] for stmt in stmts)
