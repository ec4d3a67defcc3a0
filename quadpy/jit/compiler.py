"""The compiler as calls use it: from a request to a typed kernel, and from that to machine code, which the cache keeps."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable
from typing import Final

from quadpy.cache.keys import CacheKey
from quadpy.codegen.compile import compile_kernel, lower
from quadpy.codegen.launches import symbols_of
from quadpy.codegen.pipeline import added_checks
from quadpy.codegen.schedule import PLAIN, Form
from quadpy.core.artifact import CodeObject
from quadpy.core.source import Span
from quadpy.core.target import TargetSpec
from quadpy.ir.nodes import Kernel
from quadpy.ir.printer import print_ir
from quadpy.jit.compilation import Compiled, Request
from quadpy.jit.dumps import Dumps
from quadpy.jit.kernel_cache import TOOLCHAIN, load_code, store_code, target_text
from quadpy.jit.races import races_in
from quadpy.lang.arguments import Options
from quadpy.lang.dependencies import Dependencies
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.trace import Traced, trace_kernel

_RECENT: Final[deque[tuple[weakref.ref[Dependencies], Options, Kernel]]] = deque(maxlen=8)
"""The last kernels, with the reads of their first code: what watches calls asks for a kernel soon after its code is made."""


def compile_traced(request: Request) -> Compiled:
    """Code for ``request``, whose kernel is traced; errors as ``compile_request``."""
    traced = traced_for(request)
    form = form_of(request.options)
    if Dumps.stages and not is_our_module(request.source.fn.__module__):
        _dump(request, traced, form)
    digest, code = compiled_code(traced.kernel, request.target, form)
    spans, races = spans_of(traced, code, request), races_in(traced.unwatched, request.source.name)
    return Compiled(code, digest, traced.fields, traced.outline, spans, traced.dependencies, races)


def traced_for(request: Request) -> Traced:
    """The traced kernel for ``request``."""
    traced = trace_kernel(
        request.source, request.args, request.options, request.earlier or request.before, again=request.again
    )
    _RECENT.append((weakref.ref(request.before or traced.dependencies), request.options, traced.kernel))
    return traced


def kernel_again(request: Request) -> Kernel:
    """The kernel that other code of the signature was made from; it is traced if that is long ago."""
    if request.before and request.before.complete:
        for reads, options, kernel in tuple(_RECENT):
            if reads() is request.before and options == request.options:
                return kernel
    return traced_for(request).kernel


def form_of(options: Options) -> Form:
    """The part of ``options`` that concerns code generation, not the trace."""
    return Form(predicated=options.predicated, fused=options.fused, indirect=options.indirect)


def digest_of(kernel: Kernel, target: TargetSpec, form: Form = PLAIN) -> str:
    """The name of the code of ``kernel`` for ``target`` in ``form``."""
    checks = "".join(map(str, added_checks(kernel, target.family)))
    return CacheKey(print_ir(kernel) + checks, f"{target_text(target)}{form}", TOOLCHAIN).digest()


def compiled_code(kernel: Kernel, target: TargetSpec, form: Form = PLAIN) -> tuple[str, CodeObject]:
    """Code for ``kernel``, from the disk if it is there, and the digest under which it is kept; errors as ``compile_kernel``."""
    digest = digest_of(kernel, target, form)
    code = load_code(digest)
    if code is None:
        code = compile_kernel(kernel, target, form)
        store_code(digest, code)
    return digest, code


def spans_of(traced: Traced, code: CodeObject, request: Request) -> tuple[Span, ...]:
    """Where each task begins, by lines of the kernel's file: equal code may come from another file.

    A task that begins in a function of another file gets the kernel's own line.
    """
    kernel, own = traced.kernel, request.source.span
    by_symbol: dict[str, Span] = {}
    for number, task in enumerate(kernel.tasks):
        span = task.span if task.span.file == own.file else own
        by_symbol |= dict.fromkeys(symbols_of(kernel, number), span)
    return tuple(Span(own.file, by_symbol.get(task.symbol, own).line) for task in code.tasks)


def _dump(request: Request, traced: Traced, form: Form) -> None:
    """Dumps the stages that ``qp.init`` asked for."""
    seen: dict[str, Kernel] = {}
    if "trace" in Dumps.stages:
        trace_kernel(
            request.source, request.args, request.options, request.before, again=True, observe=seen.__setitem__
        )
    name, kernel, target = request.source.name, traced.kernel, request.target
    texts: dict[str, Callable[[], str]] = {
        "trace": lambda: print_ir(seen.get("trace", traced.kernel)),
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
