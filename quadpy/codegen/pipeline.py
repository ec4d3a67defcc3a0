"""The passes that code generation runs before it lowers a kernel, by the family of the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quadpy.codegen.plans.branches import choose_branches
from quadpy.codegen.plans.frame import move_stores
from quadpy.codegen.plans.loads import move_loads
from quadpy.codegen.plans.stores import select_stores
from quadpy.core.faults import Site
from quadpy.core.target import Family
from quadpy.ir.nodes import Kernel
from quadpy.ir.passes.choose_components import choose_components
from quadpy.ir.passes.count_whiles import count_whiles
from quadpy.ir.passes.guard_rest import guard_rest
from quadpy.ir.passes.hoist_checks import hoist_checks, hoist_checks_of_tasks
from quadpy.ir.passes.keep_choices import keep_choices
from quadpy.ir.passes.unscaled_roots import unscaled_roots
from quadpy.ir.passes.watch_waves import watch_all_waves, watch_checked_waves
from quadpy.ir.pipeline import Pass
from quadpy.ir.verify import verify

_VERIFY: Final = Pass("verify", verify, "refuses IR that breaks a rule")
_HOIST: Final = Pass(
    "hoist_checks", hoist_checks, "gives loops a version without checks, where a condition before them allows it"
)
_CHOICES: Final = Pass("keep_choices", keep_choices, "makes variables of the values from which loops pick by a number")
_GPU: Final = (
    Pass("watch_checked_waves", watch_checked_waves, "like watch_all_waves, in kernels with other checks"),
    _HOIST,
    Pass("count_whiles", count_whiles, "turns while loops that count into range loops, whose loads overlap"),
    _CHOICES,
    _VERIFY,
    Pass("stores_last", move_stores, "moves stores after loads in short loops over memory"),
)

TARGET_PASSES: Final[Mapping[str, tuple[Pass, ...]]] = {
    "cpu": (
        Pass("guard_rest", guard_rest, "lets ``continue`` skip what comes after barriers and operations of waves"),
        Pass("watch_all_waves", watch_all_waves, "checks that all lanes of a wave reach its operations together"),
        _HOIST,
        Pass("hoist_checks_of_tasks", hoist_checks_of_tasks, "does the same as hoist_checks for parallel loops"),
        _CHOICES,
        Pass("unscaled_roots", unscaled_roots, "drops the scaling of subnormal numbers from inverse roots"),
        _VERIFY,
        Pass("loads_early", move_loads, "moves loads out of inner loops that several iterations run side by side"),
        Pass(
            "choose_components",
            choose_components,
            "replaces branches that each store one component, chosen by a run-time number, with one store",
        ),
        Pass(
            "select_stores",
            select_stores,
            "merges the stores of two branches to one place, if LLVM then vectorises the loop",
        ),
        Pass(
            "flatten_branches",
            choose_branches,
            "replaces branches in functions with selections, if LLVM then vectorises the loop",
        ),
    ),
    "amdgpu": _GPU,
    "nvptx": _GPU,
}


def added_checks(kernel: Kernel, family: Family) -> tuple[Site, ...]:
    """The checks that these passes add to ``kernel``: they name source lines, which its text does not contain."""
    return watch_all_waves(kernel).sites[len(kernel.sites) :] if family == "cpu" else ()
