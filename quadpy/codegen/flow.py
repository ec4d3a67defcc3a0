"""A kernel's flow as plain data over its launches: what ``CodeObject.flow`` holds.  Owns: ``flow_data``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quadpy.ir.flow import Flow, Fork, Loop

__all__ = ["flow_data"]


def flow_data(flow: tuple[Flow, ...], launches: Sequence[range]) -> tuple[Any, ...]:
    """``flow`` with the launches of each task, by their numbers, in place of the task."""
    data: list[Any] = []
    for part in flow:
        match part:
            case Fork(branches=branches):
                data.append({"fork": [list(flow_data(branch, launches)) for branch in branches]})
            case Loop(condition=condition, body=body):
                data.append({"loop": condition, "body": list(flow_data(body, launches))})
            case _:
                data += launches[part]
    return tuple(data)
