"""Texts of kernels as they are compiled, for ``qp.init(print_ir=True)`` and similar options."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

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
