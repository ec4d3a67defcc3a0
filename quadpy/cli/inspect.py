"""``quadpy inspect``: what a kernel becomes on its way to machine code."""

from __future__ import annotations

import argparse
from typing import Final, TextIO

from quadpy.cli.selection import Selected, add_kernel_arguments, select
from quadpy.target import TargetSpec, parse_target

__all__ = ["HELP", "NAME", "add_arguments", "run"]

NAME: Final = "inspect"
HELP: Final = "show a kernel's IR, LLVM IR or assembly"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_kernel_arguments(parser)
    parser.add_argument("--target", default="cpu", metavar="T", help="one target, such as gfx942; cpu by default")
    parser.add_argument(
        "--stage", choices=("ir", "llvm", "asm"), default="ir",
        help="quadpy's own IR (the same for every target), what LLVM is given, or what it made of that",
    )  # fmt: skip


def run(args: argparse.Namespace, out: TextIO) -> int:
    target = parse_target(args.target)
    for selected in select(args):
        print(_stage(selected, target, args.stage).rstrip("\n"), file=out)
    return 0


def _stage(selected: Selected, target: TargetSpec, stage: str) -> str:
    from quadpy.codegen.compile import lower
    from quadpy.ir.printer import print_ir
    from quadpy.jit.offline import compile_with_asm, trace_for

    if stage == "asm":
        return compile_with_asm(selected.kernel, target, selected.given).asm
    kernel = trace_for(selected.kernel, selected.given, target).kernel
    return print_ir(kernel) if stage == "ir" else lower(kernel, target)
