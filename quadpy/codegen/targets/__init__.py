"""The differences between targets: one set of rules each."""

from __future__ import annotations

from functools import cache

from quadpy.codegen.targets.amdgpu import amdgpu_rules
from quadpy.codegen.targets.cpu import CPU
from quadpy.codegen.targets.nvptx import nvptx_rules
from quadpy.codegen.targets.rules import TargetRules
from quadpy.core.target import TargetSpec

__all__ = ["rules_for"]


@cache
def rules_for(spec: TargetSpec) -> TargetRules:
    """The rules of a target."""
    match spec.family:
        case "cpu":
            return CPU
        case "amdgpu":
            return amdgpu_rules(spec)
        case "nvptx":
            return nvptx_rules(spec.arch)
