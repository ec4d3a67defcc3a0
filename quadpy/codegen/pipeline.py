"""The passes that code generation runs before it lowers a kernel, by the family of the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quadpy.codegen.plans.branches import choose_branches
from quadpy.codegen.plans.coarsen import move_stores
from quadpy.ir.pipeline import Pass
from quadpy.ir.verify import verify

__all__ = ["TARGET_PASSES"]


_VERIFY: Final = Pass("verify", verify, "refuses IR that breaks a rule")
_GPU: Final = (_VERIFY, Pass("stores_last", move_stores, "moves stores after loads in short loops over memory"))

TARGET_PASSES: Final[Mapping[str, tuple[Pass, ...]]] = {
    "cpu": (
        _VERIFY,
        Pass(
            "flatten_branches",
            choose_branches,
            "makes selections of the branches of functions, where LLVM vectorises the loop",
        ),
    ),
    "amdgpu": _GPU,
    "nvptx": _GPU,
}
