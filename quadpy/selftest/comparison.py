"""Two reports side by side: what differs, and the ratios of what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Report = Mapping[str, Any]
_RUN: Final = ("quick", "whole", "slow", "backend", "ordinal", "date", "toolchain", "status", "interrupted", "lost")
"""What is compared of the run itself."""


def differences(one: Report, other: Report) -> list[str]:
    """Lines of text, for people; the first names the columns."""
    rows = [("", "first", "second", ""), *_facts(one, other), *_statuses(one, other)]
    if one.get("quick") == other.get("quick"):
        rows += _costs(one, other)
    else:
        rows.append(("costs", "not compared", "", "--quick measures other sizes than --full"))
    return lines_of(rows)


def _facts(one: Report, other: Report) -> Iterator[tuple[str, str, str, str]]:
    both = [
        {**{name: each.get(name) for name in _RUN}, **_flat(each["host"]), **_flat(each["device"]),
         **_flat(each.get("settings", {})), **{row["part"]: row["text"] for row in each.get("doctor", ())},
         "quadpy": each["quadpy"], "off": ", ".join(each["off"]) or "nothing"}
        for each in (one, other)
    ]  # fmt: skip
    for name in dict.fromkeys([*both[0], *both[1]]):
        first, second = (str(each.get(name, "")) for each in both)
        if first != second:
            yield name, first, second, ""


def _statuses(one: Report, other: Report) -> Iterator[tuple[str, str, str, str]]:
    both = [{row["name"]: row["status"] for row in each["checks"]} for each in (one, other)]
    for name in dict.fromkeys([*both[0], *both[1]]):
        first, second = (each.get(name, "not run") for each in both)
        if first != second:
            yield name, first, second, ""


def _costs(one: Report, other: Report) -> Iterator[tuple[str, str, str, str]]:
    both = [{row["name"]: row["figures"] for row in each["checks"]} for each in (one, other)]
    return ratios(*both)


def ratios(one: Any, other: Any) -> Iterator[tuple[str, str, str, str]]:
    """Every number that is in both trees: its name, the two, and the ratio of the second to the first."""
    both = _flat(one), _flat(other)
    for name, first in both[0].items():
        second = both[1].get(name)
        if _is_number(first) and _is_number(second):
            yield name, f"{first:.4g}", f"{second:.4g}", f"x {second / first:.2f}" if first else ""


def lines_of(rows: Sequence[tuple[str, str, str, str]]) -> list[str]:
    """The rows as columns of text, on one line each, whatever a report contains."""
    shown = [["".join(c if c.isprintable() else "?" for c in cell) for cell in row] for row in rows]
    widths = [*(max(len(row[column]) for row in shown) for column in range(3)), 0]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _flat(tree: Any, name: str = "") -> dict[str, Any]:
    """The leaves of ``tree`` by their names, which say where they are."""
    if isinstance(tree, Mapping):
        parts = [(str(key), value) for key, value in tree.items()]
    elif isinstance(tree, list) and any(isinstance(part, (list, Mapping)) for part in tree):
        parts = [(_label(part, number), part) for number, part in enumerate(tree)]
    else:
        return {name: ", ".join(map(str, tree)) if isinstance(tree, list) else tree}
    return {key: leaf for part, value in parts for key, leaf in _flat(value, f"{name} {part}".strip()).items()}


def _label(part: Any, number: int) -> str:
    """A row of a table, by its words and whole numbers: ``tasks 8 size 256``."""
    if not isinstance(part, Mapping):
        return str(number)
    words = [
        value if isinstance(value, str) else f"{key} {value}"
        for key, value in part.items()
        if isinstance(value, (int, str))
    ]
    return " ".join(words) or str(number)
