"""From a Python function to a typed kernel.  Owns: Traced, trace_kernel.

Imports: ``ir``, ``lang``, ``mathlib`` and leaves only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

from quadpy.dtypes import Scalar
from quadpy.ir.nodes import ArrayParam, Block, Function, Kernel, Param, ParamRead, Return, ScalarParam
from quadpy.ir.pipeline import TASK_PASSES, TRACE, Observer, run_passes
from quadpy.lang.arguments import ArgType, ArrayArg, Options, ScalarArg, StaticArg, VecArg
from quadpy.lang.dependencies import Dependencies
from quadpy.lang.flows import Flows
from quadpy.lang.guard import guarded
from quadpy.lang.library import set_tracer
from quadpy.lang.promotion import Defaults
from quadpy.lang.source import FunctionSource
from quadpy.lang.state import Changes, Frame
from quadpy.lang.values import ArrayRef, Value, Vec
from quadpy.mathlib.library import LibraryFunction, PerWidth
from quadpy.source import Span

__all__ = ["Traced", "reads_of", "trace_kernel"]

_LONGEST_NAME: Final = 200
"""Letters of a kernel's name that its symbols have."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A kernel ready for code generation, and what the launch needs from the trace.

    ``fields`` are the field objects behind the field parameters, in their order; ``outline`` is the shape of
    the result: None, "scalar", a vector's shape, or a list of these.
    """

    kernel: Kernel
    fields: tuple[Any, ...]
    outline: Any
    dependencies: Dependencies


class Tracer(Flows):
    """All rules of the language together."""

    def __init__(
        self,
        source: FunctionSource,
        options: Options,
        reads: Dependencies | None = None,
        *,
        width: Scalar | None = None,
    ) -> None:
        defaults = Defaults(options.default_ip, options.default_fp)
        super().__init__(defaults, options.index, fast_math=options.fast_math, graph=options.graph)
        self.config = {}
        self.width = width  # of the library function that is traced
        self.is_library = width is not None
        self.deps = reads or Dependencies()
        self.frames.append(Frame(source, {}))
        self.results: tuple[Scalar, ...] = ()
        self.outline: Any = None

    def outside(self, name: str) -> Any:
        """As everywhere, but of what the math library defines per width, the one of this function."""
        value = super().outside(name)
        return value.at(self.width) if self.width and isinstance(value, PerWidth) else value

    def kernel_return(self, value: Value, span: Span) -> None:
        """``return`` of the kernel: its last statement at the top level."""
        if self.in_parallel:
            self.fail_syntax("a parallel loop cannot return", span, "use continue to end an iteration")
        if self.frame.runtime_depth:
            self.fail_syntax("a kernel returns at its end, not inside a branch or loop", span,
                             "assign to a variable and return it last")  # fmt: skip
        if self.section is not None or self.repeats:
            where = "a section" if self.section is not None else "a do_while loop"
            self.fail_syntax(f"{where} cannot return", span, "a kernel returns at its end")
        if value is None:
            return
        if self.graph:
            self.fail_syntax("a graph kernel returns nothing", span, "store the result in an array")
        annotation = self.deps.annotation(self.frame.source, "return")
        types = self.result_types(annotation, span)
        leaves = self.leaves(value)
        if types is not None and len(types) != len(leaves):
            self.fail_type(f"the kernel returns {len(leaves)} numbers, its annotation has {len(types)}", span)
        value = self.annotated(value, annotation, span)
        flat = self.flatten(value, span)
        self.results, self.outline = tuple(e.type for e in flat), self.outline_of(value, span)
        self.build.emit(Return(tuple(flat), span=span))

    def outline_of(self, value: Value, span: Span) -> Any:
        """The shape of what the kernel returns, as ``Traced`` has it."""
        if isinstance(value, (tuple, list)):
            return [self.outline_of(item, span) for item in value]
        if value is None:
            self.fail_type("None cannot be returned beside other results", span, "numbers, vectors and tuples can")
        return value.shape if isinstance(value, Vec) else "scalar"

    def result_types(self, annotation: Any, span: Span) -> list[Scalar] | None:
        """The scalars that a return annotation stands for; None where there is none."""
        if annotation is None:
            return None
        scalar = self.scalar_type(annotation)
        if isinstance(scalar, Scalar):
            return [scalar]
        if getattr(annotation, "__quadpy_constructor__", None) == "type":
            return [self.scalar_type(annotation.dtype)] * math.prod(annotation.element_shape)
        parts = annotation if isinstance(annotation, tuple) else getattr(annotation, "__args__", None)
        if parts is None:
            self.fail_type(f"{annotation!r} cannot be returned", span, "numbers, vectors and tuples of them can")
        nested = [self.result_types(part, span) for part in parts]
        return [t for part in nested for t in part or []]

    def parameters(self) -> list[Param]:
        """The parameters of the kernel in the order in which a launch packs them.

        First what the caller passes, then the fields in the order in which the trace met them, then what else the launch
        adds.
        """
        return [*self.params, *self.field_params, *self.hidden.values()]

    def enter(self, args: Mapping[str, ArgType]) -> None:
        """Binds the parameters of the kernel; fields among them are no parameters that the caller passes."""
        source = self.frame.source
        span = source.span
        stored = self.stored(source.tree.body, source)
        for name, arg in args.items():
            match arg:
                case ScalarArg(type=type):
                    self.params.append(ScalarParam(name, type, span=span))
                    self.bind_index(name, ParamRead(name, type, span=span), stored, span)
                case VecArg(shape=shape, type=type):
                    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
                    names = [f"{name}.{i}" for i in range(count)]
                    self.params += [ScalarParam(n, type, span=span) for n in names]
                    vec = Vec(shape, tuple(ParamRead(n, type, span=span) for n in names))
                    self.bind_index(name, vec, stored, span)
                case ArrayArg(type=array, writable=writable):
                    self.params.append(ArrayParam(name, array, span=span))
                    self.frame.env[name] = ArrayRef(name, array, (), writable)
                case StaticArg():
                    self.frame.env[name] = self.import_value(self.deps.argument(name))


def reads_of(source: FunctionSource, args: Mapping[str, ArgType], before: Dependencies | None = None) -> Dependencies:
    """The log of a trace that is about to begin; ``before`` as in ``Dependencies``."""
    static = {name: arg.value for name, arg in args.items() if isinstance(arg, StaticArg)}
    return Dependencies(source, static, before)


def trace_kernel(
    source: FunctionSource,
    args: Mapping[str, ArgType],
    options: Options,
    before: Dependencies | None = None,
    observe: Observer | None = None,
) -> Traced:
    """The kernel that ``source`` becomes for arguments of these types.

    ``before`` are the reads of an earlier trace of the same signature, which this one repeats.  ``observe`` sees the
    kernel as traced, and after each pass.

    Raises:
        CompilationError: with the line of the kernel that is at fault.
    """
    changing: frozenset[tuple[CodeType, str]] = frozenset()
    told = 0
    while True:
        tracer = Tracer(source, options, reads_of(source, args, before))
        tracer.changing, tracer.told = changing, told
        try:
            with guarded(source.name, tracer.here, but=Changes):
                return _traced(tracer, source, options, args, observe)
        except Changes as found:
            changing |= {found.name}
            told, before = max(told, tracer.prints), tracer.deps


def _traced(
    tracer: Tracer,
    source: FunctionSource,
    options: Options,
    args: Mapping[str, ArgType],
    observe: Observer | None,
) -> Traced:
    body = source.tree.body
    tracer.frame.singles = tracer.bound_once(body, source)
    with tracer.build.block() as stmts:
        tracer.enter(args)
        tracer.block(body)
    kernel = Kernel(
        _symbol(source.name), tuple(tracer.parameters()), tracer.results, tuple(tracer.functions.values()),
        Block(tuple(stmts), span=source.span), slots=len(tracer.slots), index=options.index,
        noalias=options.noalias, fast_math=options.fast_math, crossing=tuple(tracer.slots), span=source.span,
    )  # fmt: skip
    if observe is not None:
        observe(TRACE, kernel)
    kernel = run_passes(TASK_PASSES, kernel, observe)
    fields = tuple(value for _, value in tracer.fields.values())
    return Traced(kernel, fields, tracer.outline, tracer.deps)


def trace_library(described: LibraryFunction, symbol: str) -> Function:
    """The IR of a function of the math library."""
    source = FunctionSource(described.fn)
    tracer = Tracer(source, Options(), width=described.width)
    params = tuple(tracer.build.var(name, type) for name, type in described.params)  # so that no other takes the name
    stored = tracer.stored(source.tree.body, source)
    tracer.frame.singles = tracer.bound_once(source.tree.body, source)
    with tracer.build.block() as stmts:
        for var in params:
            tracer.bind_index(var.name, ParamRead(var.name, var.type, span=source.span), stored, source.span)
        tracer.block(source.tree.body)
    results = described.result if isinstance(described.result, tuple) else (described.result,)
    return Function(symbol, params, results, Block(tuple(stmts), span=source.span), span=source.span)


set_tracer(trace_library)


def _symbol(name: str) -> str:
    """A kernel's name as every assembler takes it: in ASCII letters, digits and ``_``, of bounded length."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name[:_LONGEST_NAME])
