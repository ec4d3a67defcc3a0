"""From a Python function to a typed kernel."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import CodeType
from typing import Any, Final

from quadpy.core.artifact import ResultShape
from quadpy.core.dtypes import Scalar
from quadpy.core.importing import import_late
from quadpy.core.light import dataclass
from quadpy.errors import CompilationError
from quadpy.ir import nodes as ir
from quadpy.ir.pipeline import TASK_PASSES, TRACE, Observer, run_passes
from quadpy.lang.arguments import (
    ArgType,
    ArrayArg,
    MemberRefused,
    Options,
    ScalarArg,
    StaticArg,
    StructArg,
    VecArg,
)
from quadpy.lang.checkpoints import has_checkpoints, with_gates
from quadpy.lang.context import Trace
from quadpy.lang.dependencies import Dependencies, reads_of
from quadpy.lang.derivatives import differentiated, pass_derivatives
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.grammar import GRAMMAR
from quadpy.lang.guard import guarded
from quadpy.lang.library import library_function, required, set_tracer
from quadpy.lang.members_found import MembersFound
from quadpy.lang.normal_roots import with_normal_roots
from quadpy.lang.parameters import parameter_value
from quadpy.lang.retrace import BlockMeets, CellsChange, LocalAtomicFound, LoopLocation, Retrace
from quadpy.lang.returns import require_return
from quadpy.lang.scope import import_value
from quadpy.lang.sine_pairs import paired
from quadpy.lang.source import FunctionSource
from quadpy.lang.variables import bind_index
from quadpy.mathlib.library import LibraryFunction

_AGAIN: Final = (Retrace, MembersFound, MemberRefused)
"""Exceptions that end a trace without an error in the kernel: most kernels are then traced again, with more known."""

_LONGEST_NAME: Final = 200
"""Most letters of a kernel's name that its symbols keep."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A kernel ready for code generation, and what the launch needs from the trace.

    ``fields`` are the fields of the field parameters, in their order; ``outline`` is the shape of
    the result: None, "scalar", a vector's shape, or a list of these.  ``unwatched`` is ``kernel`` without run-time
    race checks.
    """

    kernel: ir.Kernel
    unwatched: ir.Kernel
    fields: tuple[Any, ...]
    outline: ResultShape
    dependencies: Dependencies

    @property
    def field_names(self) -> tuple[str, ...]:
        """The parameters that ``fields`` are the arguments of."""
        return tuple(name for name, param in self.kernel.arrays.items() if param.is_field)


def _parameters(t: Trace) -> list[ir.Param]:
    """The parameters of the kernel in the order in which a launch packs them.

    The caller's arguments come first, then fields in the order of their first use, then the launch's other additions.
    """
    return [*t.signature.params, *t.signature.field_params, *t.signature.hidden.values()]


def _bind_parameters(t: Trace, args: Mapping[str, ArgType]) -> None:
    """Binds the parameters of the kernel.  Fields are compile-time values, which the caller does not pass."""
    source = t.frame.source
    span = source.span
    stored = t.stored(source.tree.body, source)
    for name, arg in args.items():
        match arg:
            case StaticArg() if name.isidentifier():
                t.frame.env[name] = import_value(t, t.deps.argument(name))
            case StaticArg():
                t.signature.members[name] = import_value(t, t.deps.argument(name))
            case _ if not name.isidentifier():
                t.signature.members[name] = parameter_value(t, name, arg)
            case ScalarArg() | VecArg() | StructArg():
                bind_index(t, name, parameter_value(t, name, arg), stored, span)
            case _:
                t.frame.env[name] = parameter_value(t, name, arg)


def trace_kernel(
    source: FunctionSource,
    args: Mapping[str, ArgType],
    options: Options,
    before: Dependencies | None = None,
    observe: Observer | None = None,
    *,
    again: bool = False,
) -> Traced:
    """The kernel that ``source`` becomes for arguments of these types.

    ``before`` are the reads of an earlier trace of the same signature, which this one repeats.  ``observe`` sees the
    kernel as traced, and after each pass.  With ``options.lines`` no pass runs.  With that or ``again``, the trace
    does not print, since an earlier one has printed.

    Raises:
        CompilationError: with the line of the kernel that caused it.
        MembersFound: ``args`` lacks members of arguments that the kernel uses.
        ArgumentError: a member that the kernel uses is not what its annotation says.
    """
    changing: frozenset[tuple[CodeType, str]] = frozenset()
    meeting: frozenset[LoopLocation] = frozenset()
    clearing: frozenset[LoopLocation] = frozenset()
    already_printed = sys.maxsize if options.lines or again else 0
    while True:
        t = Trace(source, options, GRAMMAR, reads_of(source, args, before))
        t.changing, t.meeting, t.already_printed, t.arguments = changing, meeting, already_printed, args
        t.cells.changing = clearing
        try:
            with guarded(source.name, t.here, but=_AGAIN):
                return _traced(t, source, args, observe)
        except MemberRefused as refused:
            raise refused.error from None
        except CompilationError as error:
            for called, where in t.trail:
                error.add_call(called.name, where, hidden=is_our_module(called.fn.__module__))
            raise
        except LocalAtomicFound as found:
            changing |= {found.name}
        except BlockMeets as found:
            meeting |= {found.loop}
        except CellsChange as found:
            clearing |= {found.loop}
        already_printed, before = max(already_printed, t.printed), t.deps


def _share_memory(t: Trace) -> bool:
    """Whether two fields of the kernel may share memory: a field, and parts of its elements passed separately.

    Which field a part belongs to does not matter here, since the kernel cache would have to know it.
    """
    fields = [field for _, field in t.signature.fields.values()]
    structs = [field for field in fields if len(field.leaves()) > 1 or field.leaves()[0] is not field]
    whole = [field for field in fields if field.element_shape]
    return any(one is not other and one.is_member for one in fields for other in structs) or any(
        one is not other and one.is_component for one in fields for other in whole
    )


def _traced(t: Trace, source: FunctionSource, args: Mapping[str, ArgType], observe: Observer | None) -> Traced:
    body, options, signature = source.tree.body, t.options, t.signature
    t.frame.singles = t.bound_once(body, source)
    with t.build.block() as stmts:
        _bind_parameters(t, args)
        with t.own_loops():
            t.block(body)
    if has_checkpoints(t):
        stmts = with_gates(t, stmts)
    if signature.found:
        raise MembersFound(signature.found, t.deps.log)
    if signature.outline is None:
        require_return(t, source)
    if options.derivative:
        pass_derivatives(t, args)
    stmts = _with_sine_pairs(t, stmts)
    if not options.fast_math:
        stmts = _with_normal_roots(t, stmts)
    kernel = ir.Kernel(
        _symbol(source.name), tuple(_parameters(t)), signature.results, tuple(signature.functions.values()),
        ir.Block(tuple(stmts), span=source.span), slots=len(signature.slots), index=options.index,
        noalias=options.noalias and not _share_memory(t), fast_math=options.fast_math, crossing=tuple(signature.slots), span=source.span,
        sites=tuple(t.checks.sites) if t.checks else (), debug=options.debug and not options.indices_only,
        trusted=options.as_taichi,
    )  # fmt: skip
    if options.derivative:
        kernel = differentiated(t, kernel)
    if observe is not None:
        observe(TRACE, kernel)
    parts = {name: arg.distributed for name, arg in args.items() if isinstance(arg, ArrayArg) and arg.distributed}
    named = [ref.name for ref, field in signature.fields.values() if hasattr(field, "__quadpy_distributed__")]
    if parts or named:
        kernel = import_late("quadpy.ir.grad.sums").gathered(kernel, [*parts, *named], parts)
    unwatched = kernel
    if not options.lines:
        *before, watching = TASK_PASSES
        unwatched = run_passes(before, kernel, observe)
        kernel = run_passes([watching], unwatched, observe)
    fields = tuple(value for _, value in signature.fields.values())
    return Traced(kernel, unwatched, fields, signature.outline, t.deps)


def _with_sine_pairs(t: Trace, stmts: list[ir.Stmt]) -> list[ir.Stmt]:
    found, types = paired(tuple(stmts), t.build.var)
    _carry(t, "sincos", types)
    return list(found)


def _with_normal_roots(t: Trace, stmts: list[ir.Stmt]) -> list[ir.Stmt]:
    if not any(name.startswith("rsqrt.") for name in t.signature.functions):
        return stmts
    found, types = with_normal_roots(tuple(stmts))
    _carry(t, "inverse_root", types)
    return list(found)


def _carry(t: Trace, name: str, types: set[Scalar]) -> None:
    """Adds the library's function ``name`` of one number, and its callees, to the functions of the kernel."""
    for type in types:
        function = library_function(name, (type,), fast_math=t.options.fast_math)
        assert function is not None
        for needed in required(function):
            t.signature.functions.setdefault(needed.name, needed)


def _trace_library(described: LibraryFunction, symbol: str) -> ir.Function:
    """The IR of a function of the math library."""
    source = FunctionSource(described.fn)
    span, body = source.span, source.tree.body
    t = Trace(source, Options(), GRAMMAR, Dependencies(), described.width)
    params = tuple(t.build.var(name, type) for name, type in described.params)  # reserves the names
    stored = t.stored(body, source)
    t.frame.singles = t.bound_once(body, source)
    with t.build.block() as stmts:
        for var in params:
            bind_index(t, var.name, ir.ParamRead(var.name, var.type, span=span), stored, span)
        t.block(body)
    results = described.result if isinstance(described.result, tuple) else (described.result,)
    return ir.Function(symbol, params, results, ir.Block(tuple(stmts), span=span), span=span)


set_tracer(_trace_library)


def _symbol(name: str) -> str:
    """A kernel's name in a form that every assembler accepts: ASCII letters, digits and ``_``, of bounded length."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name[:_LONGEST_NAME])
