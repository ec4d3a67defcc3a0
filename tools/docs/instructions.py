"""The table of instruction counts on AMD GPUs, from the results that ``benchmarks/run.py instructions`` keeps."""

from __future__ import annotations

import json
from typing import Any, Final

from tools.docs import ROOT

_DATA: Final = ROOT / "benchmarks/data"
_SHOWN: Final = ("instructions", "wait", "memory", "loop", "loop memory", "vgprs", "sgprs", "spills", "waves")

Record = dict[str, Any]


def print_instructions(mode: str) -> str:
    """Each task of each kernel, ``strict`` or ``fast``: before → now where a number changed."""
    before, now = (_records(name) for name in ("before", "now"))
    lines = ["| task | target | " + " | ".join(_SHOWN) + " |", "|---|---|" + "--:|" * len(_SHOWN)]
    for key, record in now.items():
        task, target, made = key.split()
        if made == mode:
            numbers = (_change(before.get(key, {}), record, name) for name in _SHOWN)
            lines.append(f"| {task} | {target} | " + " | ".join(numbers) + " |")
    return "\n".join(lines)


def _records(name: str) -> dict[str, Record]:
    found: dict[str, Record] = json.loads((_DATA / f"instructions-{name}.json").read_text(encoding="utf-8"))
    return found


def _change(before: Record, now: Record, name: str) -> str:
    old, new = _number(before, name), _number(now, name)
    return str(new) if old in (None, new) else f"{old} → {new}"


def _number(record: Record, name: str) -> object:
    return record.get("classes", {}).get(name) if name == "wait" else record.get(name)
