"""The differences between targets: one set of rules each."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from quadpy.codegen.targets.amdgpu import amdgpu_rules
from quadpy.codegen.targets.cpu import cpu_rules
from quadpy.codegen.targets.nvptx import nvptx_rules
from quadpy.codegen.targets.rules import TargetRules
from quadpy.core.target import TargetSpec

__all__ = ["rules_for"]


@cache
def rules_for(spec: TargetSpec) -> TargetRules:
    """The rules of a target."""
    match spec.family:
        case "cpu":
            return cpu_rules(spec.arch)
        case "amdgpu":
            found = amdgpu_rules(spec)
        case "nvptx":
            found = nvptx_rules(spec.arch)
    if not spec.exchanges:
        return found
    return replace(found, has_atomic=lambda op, t: not t.is_float and found.has_atomic(op, t))
