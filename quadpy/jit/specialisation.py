"""The plans of one call signature, and the choice between ways to launch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from quadpy.artifact import CodeObject, ResultShape
from quadpy.dtypes import i64
from quadpy.errors import ArgumentError, CodegenError, CompilationError, DeviceError
from quadpy.graph.engines.stats import Counts
from quadpy.importing import import_late
from quadpy.jit.array_arguments import Overlaps
from quadpy.jit.compilation import Compiled, Request, compile_request
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.fast_call.arguments import REFUSALS, Bind, FastCall
from quadpy.jit.fast_call.bind_on_cpu import bind_on_cpu
from quadpy.jit.fast_call.generate import GpuCalls
from quadpy.jit.fast_call.observed import ObservedCalls, Tell, forms_of
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.launch_memory import cpu_plan_class, gpu_plan_class, has_memory
from quadpy.jit.parameters import Argument, ArrayParameter, Parameter
from quadpy.jit.plan import Plan, Values, Views
from quadpy.jit.sections import Sections, has_sections
from quadpy.lang.arguments import ArgType, ArrayArg, ContainerArg, Options
from quadpy.lang.dependencies import Dependencies
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import Config
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_of
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.fusion import Fuse
from quadpy.runtime.launch.launch import Binder, Bound
from quadpy.runtime.memory.host_storage import is_exported
from quadpy.runtime.printing.records import learn
from quadpy.target import TargetSpec

if TYPE_CHECKING:  # the compiler is loaded for code that is not in the cache, and what runs graph kernels for these
    from quadpy.ir.nodes import Kernel
    from quadpy.jit.footprints import KernelFootprints
    from quadpy.jit.fusion.plan import FusedPlan, FusingPlan
    from quadpy.jit.graph_plan import GraphPlan
    from quadpy.lang.trace import Traced
    from quadpy.runtime.arrays.view import ArrayView

__all__ = ["Resolved", "Specialisation"]

T = TypeVar("T")

Resolved: TypeAlias = "tuple[Specialisation, Values, list[ArrayView]]"
"""A resolved call: the code for the types of its arguments, the values of the argument block, and the arrays."""
Resolver: TypeAlias = Callable[[Sequence[Argument]], Resolved]
"""``Dispatcher.resolve``."""


class Specialisation:
    """A kernel for one call signature: compiled at once for arrays that do not overlap, for others when they first come.

    All its code is made under one configuration, ``config``, and from what its first code read: one signature has one
    meaning, even if globals change later.
    """

    def __init__(
        self, source: FunctionSource, parameters: Sequence[Parameter], args: Mapping[str, ArgType], options: Options,
        config: Config, target: TargetSpec, fuse: Fuse = False,
    ) -> None:  # fmt: skip
        self._source, self._parameters, self._args, self._options = source, parameters, args, options
        self._config, self._target, self._fuse = config, target, fuse
        self.counts = Counts()
        self._lock = new_lock()
        self._fields: tuple[tuple[int, int], ...] = ()
        self._reads: Dependencies | None = None  # of the first code, whose name is the digest
        self._digest = ""
        self._disjoint = self._plan(options)
        self._overlapping: Plan | None = None
        self._overlaps = Overlaps(args, self._disjoint.code, self._fields)
        self._overlap = self._overlaps.found
        self.has_fast_calls = (
            isinstance(self._disjoint, GpuPlan) and not has_memory(self._disjoint.code) and not self._overlaps.sorted
        )
        self.sections = Sections(source) if has_sections(self._disjoint.code.flow) else None
        self.is_plain = not self.has_fast_calls and self.sections is None
        self._fast_calls: dict[Hashable, FastCall | None] = {}
        self._binds: dict[Hashable, Bind | None] = {}

    @property
    def reads(self) -> Dependencies:
        """The dependencies of its code besides the types of its arguments."""
        assert self._reads is not None
        return self._reads

    def release(self) -> None:
        """The first code is known, and with it all members of dataclasses that are used: lets go of the dataclasses."""
        for arg in self._args.values():
            if isinstance(arg, ContainerArg):
                arg.release()

    def pick(self, views: Views) -> Plan:
        """The plan for arrays with these addresses: ranges are compared if at least one of the two is written."""
        return self._for_overlaps() if self._overlap(views) else self._disjoint

    def fast_call(self, args: Sequence[Argument]) -> FastCall | None:
        """The fast call for arguments like ``args``, which have views in place of arrays; None if there is none.

        One is generated for each mixture of quadpy's memory and other libraries'.
        """
        plan = self._disjoint
        if not isinstance(plan, GpuPlan):
            return None

        def telling(others: Sequence[Argument], tell: Tell) -> FastCall | None:
            given = zip(others, self._parameters, strict=True)
            if any(isinstance(parameter, ArrayParameter) and type(one) is not NDArray for one, parameter in given):
                return None
            return GpuCalls(self._parameters, others, plan, self._overlaps.pairs).telling(tell)

        observed = ObservedCalls(self._source, plan, plan.device, forms_of(args), telling)
        return self._generated(self._fast_calls, lambda calls: calls.fast_call(observed), plan, args)

    def _generated(
        self, known: dict[Hashable, T | None], make: Callable[[GpuCalls], T | None], plan: GpuPlan, args: Sequence[Argument]
    ) -> T | None:  # fmt: skip
        forms = forms_of(args)
        if forms not in known:
            known[forms] = make(GpuCalls(self._parameters, args, plan, self._overlaps.pairs))
        return known[forms]

    def binder(self, views: Views, args: Sequence[Argument], resolve: Resolver) -> Binder | None:
        """Binds later calls like the one of ``args``, which have ``views`` in place of arrays; None if there is none.

        On the CPU there always is one: it resolves each call if no faster way is known.
        """
        plan = self.pick(views)
        match plan:
            case CpuPlan():
                generated = plan is self._disjoint and not self._overlaps.sorted
                bind = bind_on_cpu(self._parameters, args, plan, self._overlaps.pairs) if generated else None
                bind = bind or self._resolving(plan, resolve)
                return Binder(
                    plan, bind, plan.prepare_again, lambda _: ([], []), plan.runner
                )  # its work is done by then
            case GpuPlan() if self.has_fast_calls and plan is self._disjoint and plan.launches:
                bind = self._generated(self._binds, GpuCalls.bind, plan, args)
                return None if bind is None else Binder(plan.module, bind, plan.prepare_again, plan.blocks_of)
            case _:
                return None

    def _resolving(self, plan: CpuPlan, resolve: Resolver) -> Bind:
        """Binds a call by resolving its arguments, which is slower."""

        def bind(_timeline: object, *args: Argument) -> Bound | None:
            try:
                found, values, views = resolve(args)
                if found is not self or self.pick(views) is not plan or any(map(is_exported, views)):
                    return None
                return Bound(plan.block_of(values), (), tuple(views))
            except REFUSALS:
                return None

        return bind

    def _for_overlaps(self) -> Plan:
        with self._lock:
            if self._overlapping is None:
                self._overlapping = self._plan(replace(self._options, noalias=False))
        return self._overlapping

    def _plan(self, options: Options) -> Plan:
        """The way to launch such code under the configuration: this is where it is chosen."""
        device = None if self._config.arch == "cpu" else device_of(self._config)
        if any(isinstance(arg, ArrayArg) and arg.distributed for arg in self._args.values()):
            return self._distributed(options, device)
        try:
            return self._plan_on(options, device)
        except _DistributedFields:
            return self._distributed(options, device)

    def _plan_on(self, options: Options, device: Device | None) -> Plan:
        """The same for arrays and fields that are on ``device``, or on the host for None."""
        if device is None:
            entry = None
            if self._config.interpreted:
                compiled, entry = import_late("quadpy.jit.interpretation").python_kernel(self._request(options))
                self._use(compiled, None)
            else:
                compiled = self._compiled(options, None)
            kind = cpu_plan_class(compiled.code) if entry is None else CpuPlan
            plan = kind(
                compiled.code, fields=tuple(map(FieldMemory.of, compiled.fields)), seed=self._config.random_seed, result_shape=compiled.result_shape,
                name=self._source.name, spans=compiled.spans, entry=entry,
            )  # fmt: skip
            plan.footprints = functools.cache(lambda: self._footprints(options, compiled.code))
            return plan
        tasks = self._gpu_plan(options, device, self._config.random_seed)
        if options.predicated or options.indirect or not options.graph or has_memory(tasks.code):
            return tasks
        as_graph: type[GraphPlan] = import_late("quadpy.jit.graph_plan").GraphPlan
        graph = as_graph(
            tasks, functools.partial(self._variant, options, tasks), self.counts, ordered=not options.noalias,
            name=self._source.name,
        )  # fmt: skip
        if self._fuse is False:
            return graph
        fusing: type[FusingPlan] = import_late("quadpy.jit.fusion.plan").FusingPlan
        return fusing(graph, device, self._fuse, lambda: self._fused(tasks, options))

    def _distributed(self, options: Options, device: Device | None) -> Plan:
        """The plan for arrays of which each rank has only a part.

        Raises:
            CodegenError: Python runs the kernels.
        """
        if self._config.interpreted:
            raise CodegenError(
                f"{self._source.name} takes distributed arrays, which arch=qp.python does not support", self._source.span,
                hint="call qp.init(arch=qp.cpu)",
            )  # fmt: skip
        compiler = import_late("quadpy.jit.compiler")
        traced: Traced = compiler.traced_for(self._request(options))
        if self._reads is None:
            self._reads, self._digest = traced.dependencies, compiler.digest_of(traced.kernel, self._target)
        plain = tuple(field for field in traced.fields if not _is_distributed(field))
        self._require_there(plain, device)
        args = (name for name, arg in self._args.items() if isinstance(arg, ArrayArg) and arg.distributed)
        pairs = zip(traced.field_names, traced.fields, strict=True)
        plan: Plan = import_late("quadpy.dist.plan").DistributedPlan(
            traced.kernel, tuple(args), {name: field for name, field in pairs if _is_distributed(field)},
            functools.partial(self._part, options, device, traced.outline, plain), tuple(map(FieldMemory.of, plain)),
        )  # fmt: skip
        return plan

    def _part(
        self, options: Options, device: Device | None, outline: ResultShape, used: tuple[Field, ...], kernel: Kernel, last: bool,
    ) -> Plan:  # fmt: skip
        """The plan of one task of a kernel, as a separate kernel; the ``last`` one has the results."""
        compiler = import_late("quadpy.jit.compiler")
        _, code = compiler.compiled_code(kernel, self._target, compiler.form_of(options))
        learn(code.messages)
        fields, seed = tuple(map(FieldMemory.of, used)), self._config.random_seed
        shape, spans = outline if last else None, (kernel.tasks[0].span,) * len(code.tasks)
        if device is None:
            plan: CpuPlan | GpuPlan = cpu_plan_class(code)(
                code, fields=fields, seed=seed, result_shape=shape, name=self._source.name, spans=spans
            )
        else:
            plan = gpu_plan_class(code)(
                code, device, fields=fields, seed=seed, result_shape=shape, name=self._source.name, spans=spans,
                wider=self._too_wide,
            )  # fmt: skip
        plan.footprints = functools.cache(lambda: _footprints_of(code, lambda: kernel))
        return plan

    def _too_wide(self) -> Plan:
        raise ArgumentError(
            f"{self._source.name}: a rank's part has more iterations than a grid has threads",
            hint="divide the grid among more ranks",
        )

    def _gpu_plan(self, options: Options, device: Device, seed: int) -> GpuPlan:
        """A launch for each task on ``device``."""
        compiled = self._compiled(options, device)
        plan = gpu_plan_class(compiled.code)(
            compiled.code, device, fields=tuple(map(FieldMemory.of, compiled.fields)), seed=seed, result_shape=compiled.result_shape,
            wider=functools.cache(lambda: self._plan(replace(options, index=i64))),
            name=self._source.name, spans=compiled.spans,
        )  # fmt: skip
        mode = options.index, options.fast_math, options.wave_size
        plan.origin = import_late("quadpy.jit.fusion.origin").code_of(
            device, self._source.name, compiled.code, mode, lambda: self._traced(options)
        )
        plan.footprints = functools.cache(lambda: self._footprints(options, compiled.code))
        if not (options.predicated or options.indirect):
            plan.set_indirect(functools.cache(lambda: self._variant(options, plan, predicated=False, indirect=True)))
        return plan

    def _variant(self, options: Options, like: GpuPlan, predicated: bool, indirect: bool) -> GpuPlan:
        """The code of ``like`` with predicated loops, which the host repeats unconditionally, or with arguments in memory."""
        options = replace(options, predicated=predicated, indirect=indirect)
        return self._gpu_plan(options, like.device, like.hidden.seed)

    def _fused(self, separate: GpuPlan, options: Options) -> FusedPlan | str:
        """All tasks of ``separate`` in one launch, or why that cannot be."""
        try:
            compiled = compile_request(self._request(replace(options, fused=True)))
        except CodegenError as error:
            return error.message
        made: type[FusedPlan] = import_late("quadpy.jit.fusion.plan").FusedPlan
        return made(compiled.code, separate, name=self._source.name, spans=compiled.spans)

    def _compiled(self, options: Options, device: Device | None) -> Compiled:
        """Code for ``device``, or the CPU for None.

        Raises:
            DeviceError: the kernel uses a field that is elsewhere.
        """
        compiled = compile_request(self._request(options))
        self._use(compiled, device)
        return compiled

    def _use(self, compiled: Compiled, device: Device | None) -> None:
        """Remembers what the code reads, and checks where its fields are."""
        learn(compiled.code.messages)
        if self._reads is None:
            self._reads, self._digest = compiled.reads, compiled.digest
        if any(map(_is_distributed, compiled.fields)):
            raise _DistributedFields
        self._require_there(compiled.fields, device)
        self._fields = tuple((field.pointer, field.nbytes) for field in compiled.fields)

    def _require_there(self, fields: Iterable[Field], device: Device | None) -> None:
        """DeviceError for a field that is elsewhere."""
        for field in fields:
            if field.device is not device:
                raise DeviceError(
                    f"{self._source.name} uses {field!r}, which is on {field.device or 'the host'} and not on "
                    f"{device or 'the host'}", self._source.span, hint="make fields after qp.init has chosen the device",
                )  # fmt: skip

    def _request(self, options: Options) -> Request:
        """The request to the compiler: for the first code of the signature, or for more code that does the same.

        Raises:
            CodegenError: it would not do the same, since user code that runs at compile time now gives other values.
        """
        target, reads = self._target, self._reads
        if reads is not None and not reads.complete:
            compiler = import_late("quadpy.jit.compiler")
            first = compiler.traced_for(Request(self._source, self._args, self._options, target, reads, again=True))
            if compiler.digest_of(first.kernel, target) != self._digest:
                name, span = self._source.name, self._source.span
                raise CodegenError(
                    f"a value that {name} reads from outside has changed since its first call", span,
                    hint="pass the value as an argument, or as a template() parameter to compile for each value",
                )  # fmt: skip
        return Request(self._source, self._args, options, target, reads)

    def _footprints(self, options: Options, code: CodeObject) -> KernelFootprints:
        """The footprints of the launches of ``code``; code from the disk is traced for this."""
        return _footprints_of(code, lambda: self._traced(options))

    def _traced(self, options: Options) -> Kernel:
        traced: Traced = import_late("quadpy.jit.compiler").traced_for(replace(self._request(options), again=True))
        return traced.kernel


def _footprints_of(code: CodeObject, kernel: Callable[[], Kernel]) -> KernelFootprints:
    """The footprints of the launches of ``code``, which was made from ``kernel``."""
    from quadpy.jit.footprints import KernelFootprints

    try:
        return KernelFootprints(code, kernel())
    except (CompilationError, RecursionError):  # what the kernel reads has changed, or it is nested too deeply
        return KernelFootprints(code, None)


class _DistributedFields(Exception):
    """The kernel uses fields of which each rank has only a part."""


def _is_distributed(field: object) -> bool:
    return getattr(field, "__quadpy_distributed__", False) is True
