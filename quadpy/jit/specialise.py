"""From a kernel and the types of a call to machine code: trace, look up, compile, remember.

Owns: Request, Compiled, ``compile_request``, ``compiled_code``.  Imports: leaves, ``lang``, ``codegen``, ``settings``.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import llvmlite

from quadpy._version import __version__
from quadpy.artifact import CodeObject
from quadpy.codegen.cache import Cache, CacheKey, IndexKey, IndexRecord, open_cache, pack_parts, unpack_parts
from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.host import host_spec_string
from quadpy.codegen.lower.gpu_tasks import launches_of
from quadpy.codegen.lower.task import task_name
from quadpy.ir.nodes import Kernel
from quadpy.ir.printer import print_ir
from quadpy.lang.arguments import ArgType, Options, StaticArg
from quadpy.lang.dependencies import fingerprint, follow, still_holds, text_digest
from quadpy.lang.source import FunctionSource
from quadpy.lang.trace import Traced, trace_kernel
from quadpy.settings import settings
from quadpy.source import Span
from quadpy.target import TargetSpec

__all__ = ["Compiled", "Request", "compile_request", "compiled_code", "kernel_cache"]


def _own_files() -> str:
    """A mark of quadpy's own files: in a checkout the compiler changes while its version does not."""
    root = Path(__file__).parent.parent
    folders = ("codegen", "ir", "jit", "lang", "mathlib", "runtime")
    stats = [(file.name, file.stat()) for folder in folders for file in sorted((root / folder).rglob("*.py"))]
    text = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


TOOLCHAIN: Final = f"quadpy-{__version__}-{_own_files()};llvmlite-{llvmlite.__version__}"


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be compiled."""

    source: FunctionSource
    args: Mapping[str, ArgType]
    options: Options
    target: TargetSpec


@dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code, and the Python objects that a launch of it needs; ``spans`` are the places of the code's tasks.

    ``rows`` are what was read from around the kernel, see ``Dependencies.rows``.
    """

    code: CodeObject
    fields: tuple[Any, ...]
    outline: Any
    uses_random: bool
    spans: tuple[Span, ...] = ()
    rows: Sequence[tuple[list[str], dict[str, str]]] = ()


@functools.cache
def kernel_cache() -> Cache:
    """The cache of this process, as its settings ask for it."""
    return open_cache(settings())


def compile_request(request: Request) -> Compiled:
    """Code for ``request``: from the disk if it is there, found without parsing where that is possible.

    Raises:
        CompilationError: the kernel is at fault, with its line.
    """
    index = _index_key(request)
    if index is not None and (found := _from_index(index, request)):
        return found
    traced = trace_kernel(request.source, request.args, request.options)
    asked = request.options
    if asked.predicated or asked.fused or asked.indirect:
        kernel = replace(traced.kernel, predicated=asked.predicated, fused=asked.fused, indirect=asked.indirect)
        traced = replace(traced, kernel=kernel)
    digest, code = compiled_code(traced.kernel, request.target)
    spans = _spans(traced, code, request)
    if index is not None and (record := _record(digest, traced, spans, request)):
        kernel_cache().remember(index, record)
    rows = traced.dependencies.rows()
    return Compiled(code, traced.fields, traced.outline, traced.uses_random, spans, rows)


def compiled_code(kernel: Kernel, target: TargetSpec) -> tuple[str, CodeObject]:
    """Code for ``kernel``, from the disk if it is there, and the digest under which it is kept; errors as ``compile_kernel``."""
    digest = CacheKey(print_ir(kernel), _target_text(target), TOOLCHAIN).digest()
    code = _load(digest)
    if code is None:
        code = compile_kernel(kernel, target)
        kernel_cache().store(digest, pack_parts({"manifest": code.manifest().encode(), "image": code.image}))
    return digest, code


@functools.cache
def _target_text(target: TargetSpec) -> str:
    return f"{target.key};{host_spec_string(target.arch)}" if target.family == "cpu" else target.key


def _load(digest: str) -> CodeObject | None:
    payload = kernel_cache().load(digest)
    if payload is None:
        return None
    parts = unpack_parts(payload)
    return CodeObject.from_parts(parts["manifest"].decode(), parts["image"])


def _index_key(request: Request) -> IndexKey | None:
    """The key under which a later process finds the code without parsing; None where the text is not known."""
    text = request.source.file_text()
    marks = [(name, _argument_mark(arg)) for name, arg in request.args.items()]
    if not text or any(mark is None for _, mark in marks):
        return None
    source = request.source
    return IndexKey(
        text_digest(text), source.fn.__qualname__, source.span.line, f"{marks!r};{request.options!r}",
        _target_text(request.target), TOOLCHAIN,
    )  # fmt: skip


def _argument_mark(arg: ArgType) -> str | None:
    return fingerprint(arg.value) if isinstance(arg, StaticArg) else repr(arg)


def _spans(traced: Traced, code: CodeObject, request: Request) -> tuple[Span, ...]:
    """Where each task begins, by lines of the kernel's file: equal code may stand elsewhere in another file.

    A task that begins in a function of another file has the kernel's own place.
    """
    kernel, own = traced.kernel, request.source.span
    by_symbol: dict[str, Span] = {}
    for number, task in enumerate(kernel.tasks):
        span = task.span if task.span.file == own.file else own
        by_symbol[task_name(kernel, number)] = span
        by_symbol |= {launch.symbol: span for launch in launches_of(kernel, number)}
    return tuple(Span(own.file, by_symbol.get(task.symbol, own).line) for task in code.tasks)


def _record(digest: str, traced: Traced, spans: tuple[Span, ...], request: Request) -> IndexRecord | None:
    """What must still hold, and where the launch finds its fields; None where that cannot be written down."""
    rows = traced.dependencies.rows()
    routes = [_field_route(field, rows, request) for field in traced.fields]
    if not traced.dependencies.complete or any(route is None for route in routes):
        return None
    facts = {"rows": rows, "fields": routes, "outline": traced.outline, "random": traced.uses_random,
             "lines": [span.line for span in spans]}  # fmt: skip
    return IndexRecord(digest, (("facts", json.dumps(facts)),))


def _field_route(field: Any, rows: list[tuple[list[str], dict[str, str]]], request: Request) -> list[Any] | None:
    """How a later process comes from the kernel to this field: through functions and a path, or an argument."""
    for name, arg in request.args.items():
        if isinstance(arg, StaticArg) and arg.value is field:
            return ["argument", name]
    for route, marks in rows:
        source = _source_at(request.source, route)
        for path in marks:
            if follow(source, path) is field:
                return ["path", route, path]
    return None


def _source_at(source: FunctionSource, route: list[str]) -> FunctionSource:
    for path in route:
        source = follow(source, path).source
    return source


def _from_index(index: IndexKey, request: Request) -> Compiled | None:
    record = kernel_cache().find(index)
    if record is None:
        return None
    facts = json.loads(dict(record.dependencies)["facts"])
    if not still_holds(request.source, facts["rows"]):
        return None
    code = _load(record.object)
    if code is None:
        return None
    fields = tuple(_field_at(route, request) for route in facts["fields"])
    spans = tuple(Span(request.source.span.file, line) for line in facts["lines"])
    return Compiled(code, fields, _outline(facts["outline"]), facts["random"], spans, facts["rows"])


def _field_at(route: list[Any], request: Request) -> Any:
    if route[0] == "argument":
        arg = request.args[route[1]]
        assert isinstance(arg, StaticArg)
        return arg.value
    return follow(_source_at(request.source, route[1]), route[2])


def _outline(value: Any) -> Any:
    """JSON has no tuples: a list of numbers was a vector's shape, any other list a tuple of results."""
    if isinstance(value, list):
        return tuple(value) if all(isinstance(v, int) for v in value) else [_outline(v) for v in value]
    return value
