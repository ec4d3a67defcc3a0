"""LLVM's modules, each in a context of its own: LLVM's global one must not be used from several threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import llvmlite.binding as llvm

from quadpy.errors import CodegenError


@contextmanager
def parsed(ir_text: str) -> Iterator[llvm.ModuleRef]:
    """The module of ``ir_text``, verified; CodegenError if LLVM refuses it.

    Both end here, the module before its context.  In the other order, which the garbage collector may choose for what
    an exception's traceback keeps in a cycle, LLVM ends the process.
    """
    with ExitStack() as ends:
        try:
            context = ends.enter_context(llvm.create_context())
            module = ends.enter_context(llvm.parse_assembly(ir_text, context))
            module.verify()
        except RuntimeError as error:
            raise CodegenError(f"LLVM refused a module: {error}", hint="this is a bug in quadpy") from error
        yield module
