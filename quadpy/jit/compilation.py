"""From a kernel and the types of a call to machine code: trace, look up in the cache, compile, store."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import llvmlite

from quadpy._version import __version__
from quadpy.artifact import CodeObject, ResultShape
from quadpy.codegen.cache.cache import Cache, CacheKey, IndexKey, open_cache, pack_parts, unpack_parts
from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.host import host_spec_string
from quadpy.codegen.launches import symbols_of
from quadpy.codegen.pipeline import added_checks
from quadpy.codegen.schedule import PLAIN, Form
from quadpy.conflicts import Race
from quadpy.errors import ArgumentError, QuadpyError
from quadpy.ir.nodes import Kernel
from quadpy.ir.printer import print_ir
from quadpy.jit.dumps import Dumps, dump
from quadpy.jit.races import races_in, warn_of_races
from quadpy.lang.arguments import ArgType, ContainerArg, MemberPath, Options, member_type
from quadpy.lang.dependencies import Dependencies
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.guard import guarded
from quadpy.lang.members_found import MembersFound
from quadpy.lang.source import FunctionSource
from quadpy.lang.trace import Traced, reads_of, trace_kernel
from quadpy.runtime.arrays.field import Field
from quadpy.settings import Settings, settings
from quadpy.source import Span
from quadpy.target import TargetSpec

__all__ = [
    "Compiled", "Request", "cached_code", "compile_request", "compiled_code", "digest_of", "kernel_cache", "spans_of",
    "traced_for", "use_cache",
]  # fmt: skip


def _own_files() -> str:
    """A digest of quadpy's own files: in a checkout the compiler changes while its version does not."""
    root = Path(__file__).parent.parent
    folders = ("codegen", "hostmath", "interpreter", "intrinsics", "ir", "jit", "lang", "mathlib", "runtime", "simt")
    files = [*root.glob("*.py"), *(file for folder in folders for file in (root / folder).rglob("*.py"))]
    stats = [(file.name, file.stat()) for file in sorted(files)]
    text = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_MEMBERS: Final = hashlib.sha256(b"members").hexdigest()
"""Replaces the code in records that list the members of its arguments that a kernel uses."""

TOOLCHAIN: Final = f"quadpy-{__version__}-{_own_files()};llvmlite-{llvmlite.__version__}"


@dataclass(frozen=True, slots=True)
class Request:
    """What to compile; ``before`` are the reads of the signature's first code, which all its other code must repeat.

    ``again`` says that code was traced before: its prints during compilation are not repeated.
    """

    source: FunctionSource
    args: Mapping[str, ArgType]
    options: Options
    target: TargetSpec
    before: Dependencies | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code, and the Python objects that a launch of it needs.

    ``digest`` names the code, ``fields`` are those that it uses, ``spans`` says where its tasks begin, and ``reads``
    are the values read from outside the kernel.  ``races`` are the definite ones of its parallel loops.
    """

    code: CodeObject
    digest: str
    fields: tuple[Field, ...]
    result_shape: ResultShape
    spans: tuple[Span, ...]
    reads: Dependencies
    races: tuple[Race, ...]


_opened: Final = functools.cache(open_cache)


class _Chosen:
    settings: Settings | None = None


def kernel_cache() -> Cache:
    """The cache of this process, as ``qp.init`` or the settings ask for it."""
    return _opened(_Chosen.settings or settings())


def use_cache(chosen: Settings | None) -> None:
    """Uses the cache that ``chosen`` ask for; for None, the one of the process's settings.

    Raises:
        CacheError: its folder cannot be written.
    """
    if chosen is not None:
        _opened(chosen)
    _Chosen.settings = chosen


def cached_code(key: str, build: Callable[[], bytes]) -> bytes:
    """Internal native code, kept beside the kernels' under ``key``; ``build`` makes it if there is none."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    found = kernel_cache().load(digest)
    if found is None:
        found = build()
        kernel_cache().store(digest, found)
    return found


def compile_request(request: Request) -> Compiled:
    """Code for ``request``: from the disk if it is there, without parsing the source where that is possible.

    Warns of the kernel's definite races, wherever the code comes from.

    Raises:
        CompilationError: an error in the kernel, with its line.
        MembersFound: its arguments lack members that the kernel uses.
        ArgumentError: a member that it uses is not what its annotation says.
    """
    with guarded(request.source.name, lambda: request.source.span, but=(MembersFound, ArgumentError)):
        compiled = _compiled(request)
    if compiled.races:
        warn_of_races(compiled.races)
    return compiled


def _compiled(request: Request) -> Compiled:
    index = None if Dumps.stages else _index_key(request)  # an index leads to the code, but not to its stages
    if index is not None:
        if found := _from_index(index, request):
            return found
        if paths := _known_members(index, request):
            raise MembersFound(paths)
    try:
        traced = traced_for(request)
    except MembersFound as found_members:
        if index is not None:
            kernel_cache().remember(index, _MEMBERS, json.dumps(found_members.paths))
        raise
    form = form_of(request.options)
    if Dumps.stages and not is_our_module(request.source.fn.__module__):
        _dump(request, traced, form)
    digest, code = compiled_code(traced.kernel, request.target, form)
    spans, races = spans_of(traced, code, request), races_in(traced.unwatched, request.source.name)
    if index is not None and (facts := _facts(traced, spans, races)):
        kernel_cache().remember(index, digest, facts)
    return Compiled(code, digest, traced.fields, traced.outline, spans, traced.dependencies, races)


def _dump(request: Request, traced: Traced, form: Form) -> None:
    seen: dict[str, Kernel] = {}
    if "trace" in Dumps.stages:
        trace_kernel(
            request.source, request.args, request.options, request.before, again=True, observe=seen.__setitem__
        )
    dump(request.source.name, seen.get("trace", traced.kernel), traced.kernel, request.target, form)


def traced_for(request: Request) -> Traced:
    """The traced kernel for ``request``."""
    return trace_kernel(request.source, request.args, request.options, request.before, again=request.again)


def form_of(options: Options) -> Form:
    """The part of ``options`` that concerns code generation, not the trace."""
    return Form(predicated=options.predicated, fused=options.fused, indirect=options.indirect)


def digest_of(kernel: Kernel, target: TargetSpec, form: Form = PLAIN) -> str:
    """The name of the code of ``kernel`` for ``target`` in ``form``."""
    checks = "".join(map(str, added_checks(kernel, target.family)))
    return CacheKey(print_ir(kernel) + checks, f"{_target_text(target)}{form}", TOOLCHAIN).digest()


def compiled_code(kernel: Kernel, target: TargetSpec, form: Form = PLAIN) -> tuple[str, CodeObject]:
    """Code for ``kernel``, from the disk if it is there, and the digest under which it is kept; errors as ``compile_kernel``."""
    digest = digest_of(kernel, target, form)
    code = _load(digest)
    if code is None:
        code = compile_kernel(kernel, target, form)
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
    """The key under which a later process finds the code without parsing; None if the source text is unknown."""
    source, text = request.source, request.source.file_digest()
    if not text:
        return None
    marks = reads_of(source, request.args, request.before).marks
    args = [
        (name, (marks.get(name, ""), arg.names) if isinstance(arg, ContainerArg) else marks.get(name) or repr(arg))
        for name, arg in request.args.items()
    ]
    return IndexKey(
        text, source.fn.__qualname__, source.span.line, f"{args!r};{request.options!r}",
        _target_text(request.target), TOOLCHAIN,
    )  # fmt: skip


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


def _facts(traced: Traced, spans: tuple[Span, ...], races: tuple[Race, ...]) -> str | None:
    """The facts that must still hold, and what a launch needs besides code, as JSON; None if they cannot be stored."""
    reads = traced.dependencies
    spots = [reads.spot(field) for field in traced.fields]
    if not reads.complete or None in spots:
        return None
    lines = [span.line for span in spans]
    packed = [race.packed() for race in races]
    return json.dumps([reads.log, spots, repr(traced.outline), lines, packed], separators=(",", ":"))


def _known_members(index: IndexKey, request: Request) -> list[MemberPath]:
    """The members that this kernel used in an earlier process; none if the arguments lack one of them."""
    for digest, facts in kernel_cache().find(index):
        if digest != _MEMBERS:
            continue
        paths = [MemberPath(root, tuple(tuple(step) if isinstance(step, list) else step for step in steps))
                 for root, steps in json.loads(facts)]  # fmt: skip
        try:
            for path in paths:
                member_type(request.args, path)
        except (QuadpyError, AttributeError, LookupError, TypeError):
            return []
        return paths
    return []


def _from_index(index: IndexKey, request: Request) -> Compiled | None:
    for digest, facts in kernel_cache().find(index):
        if digest == _MEMBERS:
            continue
        log, spots, shape, lines, races = json.loads(facts)
        reads = reads_of(request.source, request.args, request.before)
        if reads.repeat(log) and (code := _load(digest)):
            fields = tuple(map(reads.at, spots))
            spans = tuple(Span(request.source.span.file, line) for line in lines)
            return Compiled(
                code, digest, fields, ast.literal_eval(shape), spans, reads, tuple(map(Race.unpacked, races))
            )
    return None
