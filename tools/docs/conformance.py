"""The table of conformance, from the results that ``tools/conformance.py`` keeps."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from tools.docs import DOCS

COLUMNS = DOCS / "reference/conformance"
_ORDER = ("cpu", "recording", "amdgpu", "cuda")
_SIGNS = {"passed": "yes", "failed": "**no**"}


def print_conformance() -> str:
    """A table for each module of the suite: its rules, and which drivers follow them."""
    columns = sorted(_columns(), key=lambda column: (_ORDER.index(column["driver"]), column["column"]))
    rules = sorted({rule for column in columns for rule in column["rules"]})
    parts = [_counts(columns)]
    for group, members in groupby(rules, key=lambda rule: rule.partition(": ")[0]):
        rows = [
            f"| {rule.partition(': ')[2]} | {' | '.join(_sign(column, rule) for column in columns)} |"
            for rule in members
        ]
        title = group.removeprefix("test_").replace("_", " ").capitalize()
        parts.append("\n".join([f"## {title}\n", *_head(["rule", *(column["column"] for column in columns)]), *rows]))
    return "\n\n".join(parts)


def _columns() -> list[dict[str, Any]]:
    return [json.loads(file.read_text(encoding="utf-8")) for file in COLUMNS.glob("*.json")]


def _head(names: list[str]) -> list[str]:
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def _sign(column: dict[str, Any], rule: str) -> str:
    return _SIGNS.get(column["rules"].get(rule, "skipped"), "-")


def _counts(columns: list[dict[str, Any]]) -> str:
    rows = []
    for column in columns:
        outcomes = list(column["rules"].values())
        counts = [outcomes.count("passed"), outcomes.count("failed")]
        without = len(outcomes) - sum(counts)
        rows.append(f"| {column['column']} | {column['tests']} | {counts[0]} | {counts[1]} | {without} |")
    return "\n".join([*_head(["driver", "tests", "rules kept", "rules broken", "does not apply"]), *rows])
