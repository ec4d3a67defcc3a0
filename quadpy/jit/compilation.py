"""From a kernel and the types of a call to machine code: look it up in the cache, or else compile it."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from quadpy.cache.keys import IndexKey
from quadpy.cache.process import kernel_cache
from quadpy.core.artifact import CodeObject, ResultShape
from quadpy.core.conflicts import Race
from quadpy.core.importing import import_late
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.core.target import TargetSpec
from quadpy.errors import ArgumentError, QuadpyError
from quadpy.jit.dumps import Dumps
from quadpy.jit.kernel_cache import TOOLCHAIN, load_code, target_text
from quadpy.jit.race_warnings import warn_of_races
from quadpy.lang.arguments import ArgType, ContainerArg, MemberPath, Options, StaticArg, member_type
from quadpy.lang.dependencies import Dependencies, reads_of
from quadpy.lang.guard import guarded
from quadpy.lang.members_found import MembersFound
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.field import Field

_MEMBERS: Final = hashlib.sha256(b"members").hexdigest()
"""Replaces the code in records that list the members of its arguments that a kernel uses."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to compile; ``before`` are the reads of the signature's first code, which all its other code must repeat.

    ``again`` says that code was traced before: its prints during compilation are not repeated.  ``earlier`` are the reads
    of the search for this code in the cache, which a trace does not make again.
    """

    source: FunctionSource
    args: Mapping[str, ArgType]
    options: Options
    target: TargetSpec
    before: Dependencies | None = None
    again: bool = False
    earlier: Dependencies | None = None


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
    request = replace(request, earlier=reads_of(request.source, request.args, request.before))
    index = None if Dumps.stages else _index_key(request)  # an index leads to the code, but not to its stages
    if index is not None:
        if found := _from_index(index, request):
            return found
        if paths := _known_members(index, request):
            raise MembersFound(paths)
    try:
        compiled: Compiled = import_late("quadpy.jit.compiler").compile_traced(request)  # most calls find their code
    except MembersFound as found_members:
        if index is not None:
            kernel_cache().remember(index, _MEMBERS, json.dumps([found_members.paths, found_members.log]))
        raise
    if index is not None and (facts := _facts(compiled)):
        kernel_cache().remember(index, compiled.digest, facts)
    return compiled


def _index_key(request: Request) -> IndexKey | None:
    """The key under which a later process finds the code without parsing; None if the source text is unknown."""
    source, text = request.source, request.source.file_digest()
    if not text:
        return None
    marks = reads_of(source, request.args, request.earlier).marks
    args = [(name, marks.get(name, ""), _type_text(arg)) for name, arg in request.args.items()]
    return IndexKey(
        text, source.fn.__qualname__, source.span.line, f"{args!r};{request.options!r}",
        target_text(request.target), TOOLCHAIN,
    )  # fmt: skip


def _type_text(arg: ArgType) -> str:
    """What identifies the type of an argument besides what a trace reads of it."""
    if isinstance(arg, ContainerArg):
        return str(tuple(arg.names))
    return "" if isinstance(arg, StaticArg) else repr(arg)


def _facts(compiled: Compiled) -> str | None:
    """The facts that must still hold, and what a launch needs besides code, as JSON; None if they cannot be stored."""
    reads = compiled.reads
    spots = [reads.spot(field) for field in compiled.fields]
    if not reads.complete or None in spots:
        return None
    lines = [span.line for span in compiled.spans]
    packed, shape = [race.packed() for race in compiled.races], repr(compiled.result_shape)
    return json.dumps([reads.log, spots, shape, lines, packed, _files(compiled)], separators=(",", ":"))


def _files(compiled: Compiled) -> list[str]:
    """The user's files that the code names when a check fails, or a warning of its races: others may have the same text."""
    sites = compiled.code.sites
    spans = [site.span for site in sites] + [span for site in sites for _, span in site.accesses]
    spans += [access.span for race in compiled.races for access in (race.first, race.second) if access.span]
    return sorted({span.file for span in spans} & compiled.reads.files)


def _known_members(index: IndexKey, request: Request) -> list[MemberPath]:
    """The members that this kernel used in an earlier process where it read the same; none if the arguments lack one of them."""
    for digest, facts in kernel_cache().find(index):
        if digest != _MEMBERS:
            continue
        found, log = json.loads(facts)
        paths = [MemberPath(root, tuple(tuple(step) if isinstance(step, list) else step for step in steps))
                 for root, steps in found]  # fmt: skip
        try:
            for path in paths:
                member_type(request.args, path)
        except (QuadpyError, AttributeError, LookupError, TypeError):
            continue
        if reads_of(request.source, request.args, request.earlier).repeat(log):
            return paths
    return []


def _from_index(index: IndexKey, request: Request) -> Compiled | None:
    for digest, facts in kernel_cache().find(index):
        if digest == _MEMBERS:
            continue
        log, spots, shape, lines, races, files = json.loads(facts)
        reads = reads_of(request.source, request.args, request.earlier)
        if reads.repeat(log) and reads.files.issuperset(files) and (code := load_code(digest)):
            fields = tuple(map(reads.at, spots))
            spans = tuple(Span(request.source.span.file, line) for line in lines)
            return Compiled(
                code, digest, fields, ast.literal_eval(shape), spans, reads, tuple(map(Race.unpacked, races))
            )
    return None
