"""Texts of kernels as they are compiled, for ``qp.init(print_ir=True)`` and similar options."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Final

from quadpy.codegen.compile import compile_kernel, lower
from quadpy.codegen.schedule import Form
from quadpy.ir.nodes import Kernel
from quadpy.ir.printer import print_ir
from quadpy.target import TargetSpec

__all__ = ["STAGES", "Dumps", "dump"]

STAGES: Final[dict[str, tuple[str, str]]] = {
    "print_preprocessed_ir": ("trace", "the IR before the first pass"),
    "print_ir": ("ir", "the IR after all passes"),
    "print_kernel_llvm_ir": ("llvm", "the LLVM IR"),
    "print_kernel_asm": ("asm", "the assembly"),
    "print_kernel_amdgcn": ("asm", "the assembly"),
    "print_kernel_nvptx": ("asm", "the assembly"),
}
"""The stage that each option asks for, and its description."""


class Dumps:
    """The stages to dump in this process; with ``folder``, texts go to files instead of being printed."""

    stages: ClassVar[frozenset[str]] = frozenset()
    folder: ClassVar[Path | None] = None
    numbers: ClassVar[Iterator[int]] = itertools.count()

    @classmethod
    def choose(cls, stages: frozenset[str], folder: Path | None) -> None:
        """Dump these from now on."""
        cls.stages, cls.folder = stages, folder


def dump(name: str, first: Kernel, kernel: Kernel, target: TargetSpec, form: Form) -> None:
    """Dumps the chosen stages of the kernel ``name``, which was ``first`` before the passes."""
    texts: dict[str, Callable[[], str]] = {
        "trace": lambda: print_ir(first),
        "ir": lambda: print_ir(kernel),
        "llvm": lambda: lower(kernel, target, form),
        "asm": lambda: compile_kernel(kernel, target, form, want_asm=True).asm,
    }
    number = next(Dumps.numbers)
    for stage, text in texts.items():
        if stage not in Dumps.stages:
            continue
        if Dumps.folder is None:
            sys.stdout.write(f"==== {name}, {target}: {stage} ====\n{text().rstrip()}\n")
        else:
            Dumps.folder.mkdir(parents=True, exist_ok=True)
            (Dumps.folder / f"{number:04}_{name}.{stage}").write_text(text(), encoding="utf-8")
