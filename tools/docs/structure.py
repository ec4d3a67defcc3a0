"""The structure of the package, read from its source: sizes of folders, and the imports among them as a drawing.

``python -m tools.docs.structure`` writes the drawing, ``docs/assets/imports.svg``.
"""

from __future__ import annotations

import ast
import functools
import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tools.code_lines import counted
from tools.docs import DOCS, ROOT

PACKAGE = ROOT / "quadpy"
DRAWING = DOCS / "assets/imports.svg"
LEAVES, TOP = "leaves", "top level"
SAVED = "graph/saved"
"""A part of ``graph`` that stands above ``jit``, which uses the other parts."""

BEFORE = {
    "top level": (12, 861), "cli": (9, 458), "codegen": (66, 5117), "examples": (12, 1085), "graph": (32, 3312), "hostmath": (7, 428),
    "ir": (19, 1847), "jit": (32, 3016), "lang": (30, 3173), "mathlib": (19, 1209), "runtime": (77, 6767), "simt": (2, 24),
}  # fmt: skip
"""Modules and lines of code of each folder before the upper floors were rebuilt, at commit a623cf6."""


def modules() -> dict[str, Path]:
    """Every module by its name below ``quadpy``, which is empty for the package itself."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@functools.cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def running(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below ``node`` without those that only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "_typing.TYPE_CHECKING")):
            yield child
            yield from running(child)


@functools.cache
def imports() -> dict[str, set[str]]:
    """Which module imports which, at any time; an import for type checkers never runs."""
    files = modules()
    graph: dict[str, set[str]] = {}
    for module, file in files.items():
        named: set[str] = set()
        for node in running(parsed(file)):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                named |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        ours = {name.removeprefix("quadpy").removeprefix(".") for name in named if f"{name}.".startswith("quadpy.")}
        graph[module] = ours & files.keys() - {module}
    return graph


def folder_imports() -> dict[str, set[str]]:
    """Which folder imports which; ``leaves`` are the modules at the top that import only each other.

    The package itself only passes names on: a program that imports it uses all folders that it names.
    """
    graph = {module: imported for module, imported in imports().items() if module != "__main__"}
    public = graph.pop("")
    leaves = {
        module
        for module in graph
        if module.startswith("core") or ("." not in module and not (PACKAGE / module).is_dir())
    }
    while others := {module for module in leaves if graph[module] - leaves}:
        leaves -= others

    def folder(module: str) -> str:
        if module in leaves:
            return LEAVES
        if f"{module}.".startswith("graph.saved."):
            return SAVED
        first = module.partition(".")[0]
        return first if (PACKAGE / first).is_dir() else TOP

    named = set(map(folder, public))
    found: dict[str, set[str]] = {}
    for module, imported in graph.items():
        targets = found.setdefault(folder(module), set())
        targets.update(map(folder, imported - {""}))
        if "" in imported and folder(module) not in named:
            targets.update(named)
    return {name: targets - {name} for name, targets in found.items()}


def floors(graph: dict[str, set[str]]) -> dict[str, int]:
    """The floor of each folder: above all that it imports."""
    found: dict[str, int] = {}

    def floor(name: str) -> int:
        if name not in found:
            found[name] = 1 + max(map(floor, graph[name]), default=-1)
        return found[name]

    for name in sorted(graph):
        floor(name)
    return found


def direct(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """``graph`` without the imports that follow from others."""

    def reached(name: str) -> set[str]:
        return graph[name] | {far for near in graph[name] for far in reached(near)}

    return {name: targets - {far for near in targets for far in reached(near)} for name, targets in graph.items()}


_WIDTH, _HEIGHT, _BOX, _TALL = 900, 96, 104, 34


def drawing() -> str:
    """The imports among folders as SVG: each folder stands above those that it imports."""
    graph = folder_imports()
    at, arrows = floors(graph), direct(graph)
    highest = max(at.values())
    x: dict[str, float] = {}
    for number in range(highest + 1):
        row = sorted(name for name, floor in at.items() if floor == number)
        row.sort(key=lambda name: statistics.fmean([x[target] for target in arrows[name]] or [0]))
        x |= {name: _WIDTH * (place + 0.5) / len(row) for place, name in enumerate(row)}
    y = {name: _HEIGHT * (highest - floor) + 30 for name, floor in at.items()}
    lines = [
        f'<path d="M{x[name]:.0f} {y[name] + _TALL / 2:.0f} L{x[target]:.0f} {y[target] - _TALL / 2:.0f}"/>'
        for name in sorted(graph)
        for target in sorted(arrows[name])
    ]
    boxes = [
        f'<rect x="{x[name] - _BOX / 2:.0f}" y="{y[name] - _TALL / 2:.0f}" width="{_BOX}" height="{_TALL}" rx="4"/>'
        f'<text x="{x[name]:.0f}" y="{y[name] + 5:.0f}">{name}</text>'
        for name in sorted(graph)
    ]
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT * highest + 60}" width="{_WIDTH}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="14" text-anchor="middle">',
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">',
            '<path d="M0 0 10 5 0 10z" fill="#777"/></marker></defs>',
            '<g stroke="#999" fill="none" marker-end="url(#tip)">', *lines, "</g>",
            '<g fill="#f4f6fa" stroke="#667">', *(box.partition("<text")[0] for box in boxes), "</g>",
            '<g fill="#222">', *("<text" + box.partition("<text")[2] for box in boxes), "</g>", "</svg>\n",
        ]
    )  # fmt: skip


@functools.cache
def function_lengths() -> list[tuple[int, str]]:
    """The lines of each function, with its documentation, and its name."""
    return [
        ((node.end_lineno or node.lineno) - node.lineno + 1, f"{module}.{node.name}")
        for module, file in modules().items()
        for node in ast.walk(parsed(file))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def print_sizes() -> str:
    """Modules and lines of code of each folder, before and now."""
    lines = counted(PACKAGE)
    lines[TOP] = lines.pop(".")
    count = Counter(
        module.partition(".")[0] if module and ("." in module or file.name == "__init__.py") else TOP
        for module, file in modules().items()
    )
    rows = [
        (f"`{folder}`" if folder != TOP else folder, *BEFORE.get(folder, ("", "")), count[folder], lines[folder])
        for folder in sorted(count)
    ]
    before = [sum(each) for each in zip(*BEFORE.values(), strict=True)]
    rows.append(("together", *before, sum(count.values()), sum(lines.values())))
    head = "| folder | modules before | lines before | modules | lines |\n|---|--:|--:|--:|--:|"
    return "\n".join([head, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def print_lengths() -> str:
    """Medians and maxima of modules and functions."""
    sizes = sorted(file.read_text(encoding="utf-8").count("\n") for file in modules().values() if file.stat().st_size)
    functions = sorted(lines for lines, _ in function_lengths())
    rows = [
        ("modules", len(sizes), f"{statistics.median(sizes):.0f}", percentile(sizes, 99), sizes[-1]),
        ("functions", len(functions), f"{statistics.median(functions):.0f}", percentile(functions, 99), functions[-1]),
    ]
    head = "| lines of | how many | median | 99th percentile | most |\n|---|--:|--:|--:|--:|"
    return "\n".join([head, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def percentile(numbers: list[int], percent: int) -> int:
    """The number below which ``percent`` of the sorted ``numbers`` lie."""
    return numbers[len(numbers) * percent // 100]


if __name__ == "__main__":
    DRAWING.write_text(drawing(), encoding="utf-8")
