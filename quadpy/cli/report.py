"""``quadpy report``: the registers, memory, occupancy and instructions of each task of a kernel on AMD GPUs.

Prints a table or JSON.  Budgets can guard a build: if a task exceeds one, the exit status is 3 and stderr names both.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TextIO

from quadpy.cli.selection import Selected, add_kernel_arguments, add_target_arguments, select, targets_of
from quadpy.codegen.report import TaskReport, format_reports, report_tasks
from quadpy.core.target import TargetSpec
from quadpy.errors import UnknownTargetError

NAME: Final = "report"
HELP: Final = "print registers, memory, occupancy and instructions of each task"


class Budget(NamedTuple):
    """A limit for one number of each task; ``option`` begins with ``max`` or ``min``."""

    option: str
    unit: str
    measure: Callable[[TaskReport], int]

    def is_exceeded_by(self, report: TaskReport, limit: int) -> bool:
        found = self.measure(report)
        return found > limit if self.option.startswith("max") else found < limit


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
        limit = "more" if option.startswith("max") else "fewer"
        parser.add_argument(
            f"--{option.replace('_', '-')}",
            type=int,
            metavar="N",
            help=f"exit with status 3 if a task has {limit} than N {unit}",
        )


def run(args: argparse.Namespace, out: TextIO) -> int:
    """The exit status is 3 if a task exceeds a budget."""
    targets = targets_of(args)
    reports = [report for selected in select(args) for target in targets for report in _reports(selected, target)]
    text = json.dumps([report.to_dict() for report in reports], indent=2) if args.json else format_reports(reports)
    print(text, file=out)
    exceeded = [line for report in reports for line in _exceeded(report, args)]
    for line in exceeded:
        print(f"quadpy: {line}", file=sys.stderr)
    return 3 if exceeded else 0


def _reports(selected: Selected, target: TargetSpec) -> tuple[TaskReport, ...]:
    from quadpy.jit.offline import compile_with_asm

    if target.family != "amdgpu":
        raise UnknownTargetError(
            f"there is no report for {target}: quadpy counts registers and occupancy only for AMD targets",
            hint="use a target such as gfx942; quadpy inspect --stage asm shows the code for any target",
        )
    code = compile_with_asm(selected.kernel, target, selected.given)
    return report_tasks(code.image, code.asm, target)


def _exceeded(report: TaskReport, args: argparse.Namespace) -> Iterator[str]:
    for budget in BUDGETS:
        limit = getattr(args, budget.option)
        if limit is not None and budget.is_exceeded_by(report, limit):
            found = f"{report.task} on {report.target} has {budget.measure(report)} {budget.unit}"
            yield f"{found}, --{budget.option.replace('_', '-')} is {limit}"
