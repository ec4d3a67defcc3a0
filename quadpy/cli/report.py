"""``quadpy report``: what each task of a kernel costs on AMD GPUs.

Registers, memory, occupancy and instructions, as a table or as JSON.  With budgets it guards a build: the exit
status is 2, and stderr says which task breaks which budget.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TextIO

from quadpy.cli.selection import Selected, add_kernel_arguments, add_target_arguments, select, targets_of
from quadpy.codegen.report import TaskReport, format_reports, report_tasks
from quadpy.errors import UnknownTargetError
from quadpy.target import TargetSpec

__all__ = ["HELP", "NAME", "add_arguments", "run"]

NAME: Final = "report"
HELP: Final = "print registers, memory, occupancy and instructions of each task"


class Budget(NamedTuple):
    """A bound on one number of each task: ``option`` begins with ``max`` or ``min``."""

    option: str
    unit: str
    measure: Callable[[TaskReport], int]

    def broken_by(self, report: TaskReport, bound: int) -> bool:
        found = self.measure(report)
        return found > bound if self.option.startswith("max") else found < bound


BUDGETS: Final = (
    Budget("max_vgprs", "VGPRs", lambda report: report.vgprs),
    Budget("max_spills", "spilled registers", lambda report: report.vgpr_spills + report.sgpr_spills),
    Budget("max_scratch", "bytes of scratch memory per thread", lambda report: report.scratch_bytes),
    Budget("min_occupancy", "waves per SIMD", lambda report: report.occupancy.waves_per_simd),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_kernel_arguments(parser)
    add_target_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    for option, unit, _ in BUDGETS:
        bound = "most" if option.startswith("max") else "fewest"
        parser.add_argument(
            f"--{option.replace('_', '-')}", type=int, metavar="N", help=f"the {bound} {unit} of a task"
        )


def run(args: argparse.Namespace, out: TextIO) -> int:
    """The exit status is 2 if a task breaks a budget."""
    targets = targets_of(args)
    reports = [report for selected in select(args) for target in targets for report in _reports(selected, target)]
    text = json.dumps([report.to_dict() for report in reports], indent=2) if args.json else format_reports(reports)
    print(text, file=out)
    broken = [line for report in reports for line in _broken(report, args)]
    for line in broken:
        print(f"quadpy: {line}", file=sys.stderr)
    return 2 if broken else 0


def _reports(selected: Selected, target: TargetSpec) -> tuple[TaskReport, ...]:
    from quadpy.jit.offline import compile_with_asm

    if target.family != "amdgpu":
        raise UnknownTargetError(
            f"there is no report for {target}: registers and occupancy are counted for AMD targets",
            hint="take a target such as gfx942; quadpy inspect --stage asm shows the code of any",
        )
    code = compile_with_asm(selected.kernel, target, selected.given)
    return report_tasks(code.image, code.asm, target)


def _broken(report: TaskReport, args: argparse.Namespace) -> Iterator[str]:
    for budget in BUDGETS:
        bound = getattr(args, budget.option)
        if bound is not None and budget.broken_by(report, bound):
            found = f"{report.task} on {report.target} has {budget.measure(report)} {budget.unit}"
            yield f"{found}, --{budget.option.replace('_', '-')} is {bound}"
