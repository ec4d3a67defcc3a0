"""Graphs as SVG, drawn without another program: nodes in rows, each below all that it comes after."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Final, TypeAlias

from quadpy.graph.model.inspect import GraphInfo, NodeInfo

MOST_NODES: Final = 300
"""Limits of a graph that is drawn: larger pictures are unreadable, and take seconds."""
_ROW: Final = 84
_HEIGHT: Final = 40
_GAP: Final = 24
_LETTER: Final = 6.6
"""Width of a letter of 11 pixels."""
_LONGEST: Final = 34
"""Letters of a line; the title of a node has all."""
_SWEEPS: Final = 4
_COLOURS: Final = {
    "kernel": "#cfe2ff", "memcpy": "#d8f3dc", "memset": "#d8f3dc", "host": "#ffe5b4", "child": "#e6dcf5", "empty": "#eeeeee",
    "alloc": "#fde2e4", "free": "#fde2e4",
}  # fmt: skip

Item: TypeAlias = "str | tuple[str, str, int]"
"""An item of a row: a node, by its name, or an edge that passes through to a later row."""


def svg_of(info: GraphInfo) -> str | None:
    """The graph as an SVG picture; None for one that is empty or has too many nodes to be drawn."""
    if not 0 < len(info.nodes) <= MOST_NODES:
        return None
    nodes = {node.name: node for node in info.nodes}
    paths, rows = _rows(info)
    places = _places(_untangled(rows, paths), nodes)
    width = max(x + _width(nodes, item) / 2 for item, (x, _) in places.items()) + _GAP
    height = _ROW * (len(rows) - 1) + _HEIGHT + 2 * _GAP
    shapes = [_edge([places[item] for item in path]) for path in paths]
    shapes += [_box(node, *places[name]) for name, node in nodes.items()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" '
        f'font-family="sans-serif" font-size="11" text-anchor="middle">\n{_ARROW}\n' + "\n".join(shapes) + "\n</svg>"
    )


_ARROW: Final = (
    '<defs><marker id="qp-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#777"/></marker></defs>'
)


def _rows(info: GraphInfo) -> tuple[list[list[Item]], list[list[Item]]]:
    """The path of each edge through the rows, and the rows; each node is one row below the last of those before it."""
    row: dict[str, int] = {}
    for node in info.nodes:  # in an order in which they could run
        row[node.name] = max((row[before] + 1 for before in node.after), default=0)
    rows: list[list[Item]] = [[] for _ in range(max(row.values()) + 1)]
    for name, number in row.items():
        rows[number].append(name)
    paths: list[list[Item]] = []
    for before, after in info.edges:
        between: list[Item] = [(before, after, number) for number in range(row[before] + 1, row[after])]
        for number, item in enumerate(between, row[before] + 1):
            rows[number].append(item)
        paths.append([before, *between, after])
    return paths, rows


def _untangled(rows: list[list[Item]], paths: list[list[Item]]) -> list[list[Item]]:
    """The rows in an order in which fewer edges cross: each item goes where its neighbours are on average."""
    near: dict[Item, list[Item]] = {item: [] for row in rows for item in row}
    for path in paths:
        for above, below in pairwise(path):
            near[above].append(below)
            near[below].append(above)
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            place = {item: (k + 0.5) / len(each) for each in rows for k, item in enumerate(each)}
            mean = {
                item: sum(place[n] for n in near[item]) / len(near[item]) if near[item] else place[item] for item in row
            }
            row.sort(key=mean.__getitem__)
    return rows


def _places(rows: list[list[Item]], nodes: dict[str, NodeInfo]) -> dict[Item, tuple[float, float]]:
    """The centre of each item; every row is centred."""
    widths = [[_width(nodes, item) for item in row] for row in rows]
    totals = [sum(row) + _GAP * (len(row) - 1) for row in widths]
    places: dict[Item, tuple[float, float]] = {}
    for number, (row, wide, total) in enumerate(zip(rows, widths, totals, strict=True)):
        x = _GAP + (max(totals) - total) / 2
        for item, width in zip(row, wide, strict=True):
            places[item] = x + width / 2, _GAP + _HEIGHT / 2 + number * _ROW
            x += width + _GAP
    return places


def _width(nodes: dict[str, NodeInfo], item: Item) -> float:
    return 8.0 if isinstance(item, tuple) else 20 + _LETTER * max(map(len, _lines(nodes[item])))


def _lines(node: NodeInfo) -> list[str]:
    detail = node.detail if node.detail not in ("", node.name) else node.kind
    return [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in (node.name, detail)]


def _box(node: NodeInfo, x: float, y: float) -> str:
    width = _width({node.name: node}, node.name)
    name, detail = map(escape, _lines(node))
    title = escape("\n".join(filter(None, [f"{node.kind} node {node.name}", node.detail, node.place])))
    return (
        f'<g><title>{title}</title><rect x="{x - width / 2:.1f}" y="{y - _HEIGHT / 2:.1f}" width="{width:.1f}" '
        f'height="{_HEIGHT}" rx="5" fill="{_COLOURS.get(node.kind, "#f5f5f5")}" stroke="#777"/>'
        f'<text x="{x:.1f}" y="{y - 3:.1f}" fill="#111" font-weight="bold">{name}</text>'
        f'<text x="{x:.1f}" y="{y + 12:.1f}" fill="#444">{detail}</text></g>'
    )


def _edge(places: Sequence[tuple[float, float]]) -> str:
    """From the lower side of the first to the upper side of the last, by way of those between."""
    half = _HEIGHT / 2
    (x, y), *rest = places
    path, y = [f"M{x:.1f} {y + half:.1f}"], y + half
    for k, (to_x, middle) in enumerate(rest):
        top = middle - half
        bend = (top - y) / 2
        path.append(f"C{x:.1f} {y + bend:.1f} {to_x:.1f} {top - bend:.1f} {to_x:.1f} {top:.1f}")
        if k < len(rest) - 1:
            path.append(f"V{middle + half:.1f}")
        x, y = to_x, middle + half
    return f'<path d="{"".join(path)}" fill="none" stroke="#777" marker-end="url(#qp-arrow)"/>'
