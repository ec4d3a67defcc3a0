"""``quadpy inspect``: shows the stages of a kernel on its way to machine code."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final, TextIO

from quadpy.cli.saved import ENDINGS, show
from quadpy.cli.selection import Selected, add_kernel_arguments, select
from quadpy.core.target import TargetSpec, parse_target
from quadpy.errors import ArgumentError
from quadpy.ir.nodes import Kernel

if TYPE_CHECKING:
    from quadpy.lang.trace import Traced

NAME: Final = "inspect"
HELP: Final = (
    "show a kernel's IR, the elements that it touches, its LLVM IR or assembly; or what a saved graph contains"
)


class _PrintPasses(argparse.Action):
    """Prints the passes and exits, as ``--help`` does: no kernel is needed."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:  # argparse passes values of any type
        from quadpy.codegen.pipeline import TARGET_PASSES
        from quadpy.ir.pipeline import TASK_PASSES

        for title, passes in (("every kernel", TASK_PASSES), *TARGET_PASSES.items()):
            print(f"{title}:")
            for each in passes:
                print(f"  {each.name:21} {each.doc}")
        parser.exit()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_kernel_arguments(parser)
    parser.add_argument("--target", default="cpu", metavar="T", help="one target, such as gfx942 (default: cpu)")
    parser.add_argument(
        "--stage", choices=("ir", "effects", "llvm", "asm"), default="ir",
        help="quadpy's own IR (the same for every target), the array elements that each task touches, the LLVM IR, or "
        "the assembly that LLVM generates from it",
    )  # fmt: skip
    parser.add_argument(
        "--after", metavar="PASS", help="show the IR after this pass; 'trace' stands for the IR before the first pass"
    )
    parser.add_argument("--svg", metavar="FILE", help="draw the works of a saved graph, and their order")
    parser.add_argument("--passes", action=_PrintPasses, nargs=0, help="print the passes in order and exit")


def run(args: argparse.Namespace, out: TextIO) -> int:
    if args.kernels.endswith(ENDINGS):
        return show(args.kernels, args.svg, out)
    target = parse_target(args.target)
    if args.after and args.stage != "ir":
        raise ArgumentError(f"--after {args.after} shows IR, not {args.stage}", hint="leave --stage out")
    for selected in select(args):
        text = _after(selected, target, args.after) if args.after else _stage(selected, target, args.stage)
        print(text.rstrip("\n"), file=out)
    return 0


def _stage(selected: Selected, target: TargetSpec, stage: str) -> str:
    from quadpy.codegen.compile import lower
    from quadpy.ir.footprints.text import print_footprints
    from quadpy.ir.printer import print_ir
    from quadpy.jit.offline import compile_with_asm, trace_for

    if stage == "asm":
        return compile_with_asm(selected.kernel, target, selected.given).asm
    traced = trace_for(selected.kernel, selected.given, target)
    if stage == "effects":
        return print_footprints(traced.kernel, _field_names(traced))
    return print_ir(traced.kernel) if stage == "ir" else lower(traced.kernel, target)


def _field_names(traced: Traced) -> dict[str, str]:
    """The users' names of the fields of a kernel, if they have any."""
    names = {}
    for name, field in zip(traced.field_names, traced.fields, strict=True):
        path = traced.dependencies.path(field)
        if found := getattr(field, "name", "") or (str(path) if path is not None else ""):
            names[name] = found
    return names


def _after(selected: Selected, target: TargetSpec, name: str) -> str:
    from quadpy.codegen.pipeline import TARGET_PASSES
    from quadpy.ir.pipeline import run_passes
    from quadpy.ir.printer import print_ir
    from quadpy.jit.offline import trace_for

    seen: dict[str, Kernel] = {}
    kernel = trace_for(selected.kernel, selected.given, target, seen.__setitem__).kernel
    run_passes(TARGET_PASSES[target.family], kernel, seen.__setitem__)
    if name not in seen:
        raise ArgumentError(f"{target} has no pass {name!r}", hint=f"its passes are {', '.join(seen)}")
    return print_ir(seen[name])
