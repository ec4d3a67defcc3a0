"""The facts of machine code that a launch needs, in a file: format 1, which stays as it is.

The cache has a form of its own, which may change (``CodeObject.manifest``).
"""

from __future__ import annotations

from typing import Any, Final

from quadpy.core.artifact import AbiLayout, AbiValue, CodeObject, HiddenArgument, Limit, TaskInfo
from quadpy.core.flow import flow_from_json, flow_to_json
from quadpy.core.formula import formula_from_json, formula_to_json


def layout_to_json(layout: AbiLayout) -> dict[str, Any]:
    """The argument block: the parameter, part, axis, letter and offset of each value."""
    return {"size": layout.size, "values": [[v.param, v.part, v.axis, v.code, v.offset] for v in layout.values]}


def layout_from_json(facts: dict[str, Any]) -> AbiLayout:
    """What ``layout_to_json`` gave."""
    return AbiLayout(tuple(AbiValue(*value) for value in facts["values"]), facts["size"])


def code_to_json(code: CodeObject, image: str) -> dict[str, Any]:
    """All but the layout and the bytes, which are the entry ``image``."""
    return {
        "image": image,
        "entry": code.entry,
        "slots": code.slots,
        "block": code.block_bytes,
        "hidden": [[hidden.name, hidden.offset] for hidden in code.hidden],
        "flow": flow_to_json(code.flow) if code.flow else None,
        "results": list(code.results),
        "limits": [limit.to_json() for limit in code.limits],
        "tasks": [_task_to_json(task) for task in code.tasks],
    }


def code_from_json(facts: dict[str, Any], layout: dict[str, Any], target: str, image: bytes) -> CodeObject:
    """The code that ``code_to_json`` described."""
    return CodeObject(
        target=target, image=image, entry=facts["entry"], layout=layout_from_json(layout),
        tasks=tuple(map(_task_from_json, facts["tasks"])), results=tuple(facts["results"]), slots=facts["slots"],
        flow=flow_from_json(facts["flow"] or ()), limits=tuple(map(Limit.from_json, facts["limits"])),
        hidden=tuple(HiddenArgument(*hidden) for hidden in facts["hidden"]),
    )  # fmt: skip


_PLAIN: Final = {
    "symbol": "symbol", "parallel": "parallel", "threads": "block_dim", "grid_stride": "grid_stride", "shared": "shared_bytes",
    "barrier": "has_barrier", "cooperative": "cooperative", "scratch": "scratch", "latch": "latch", "meetings": "meetings",
}  # fmt: skip
"""The facts of a task that are the same in a file, by the names that they have there."""

_FORMULAS: Final = ("extent", "coarsened")


def _task_to_json(task: TaskInfo) -> dict[str, Any]:
    facts = {key: getattr(task, name) for key, name in _PLAIN.items()}
    formulas = {name: formula_to_json(getattr(task, name)) for name in _FORMULAS}
    return facts | formulas | {"effects": [list(effect) for effect in task.effects]}


def _task_from_json(facts: dict[str, Any]) -> TaskInfo:
    plain: dict[str, Any] = {
        name: facts[key] for key, name in _PLAIN.items() if key in facts
    }  # the first files lack "meetings"
    plain |= {name: formula_from_json(facts[name]) for name in _FORMULAS}
    return TaskInfo(**plain, effects=tuple((name, letters) for name, letters in facts["effects"]))
