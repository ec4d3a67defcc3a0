"""Makes the plans of one call signature: compiles, and chooses between the ways to launch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quadpy.core.artifact import CodeObject, ResultShape
from quadpy.core.dtypes import i64
from quadpy.core.importing import import_late
from quadpy.core.source import Span
from quadpy.core.target import TargetSpec
from quadpy.errors import ArgumentError, CodegenError, CompilationError, DeviceError
from quadpy.graph.engines.stats import Counts
from quadpy.jit.compilation import Compiled, Request, compile_request
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.launch_memory import cpu_plan_class, gpu_plan_class, has_memory
from quadpy.jit.plan import Plan, PlansOfRanks
from quadpy.lang.arguments import ArgType, ArrayArg, ContainerArg, Options
from quadpy.lang.dependencies import Dependencies
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.device.current import Config
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_of
from quadpy.runtime.launch.fusion import Fuse
from quadpy.runtime.printing.records import learn

if TYPE_CHECKING:  # the compiler is loaded for code that is not in the cache, and what runs graph kernels for these
    from quadpy.ir.nodes import Kernel
    from quadpy.jit.footprints import KernelFootprints
    from quadpy.jit.fusion.plan import FusedPlan, FusingPlan
    from quadpy.jit.graph_plan import GraphPlan
    from quadpy.lang.trace import Traced


class PlanMaker:
    """The plans of a kernel for arguments of the types ``args``.

    All its code is made under one configuration, ``config``, and from what its first code read: one signature has one
    meaning, even if globals change later.

    counts  of the launches of graph kernels
    fields  the addresses and sizes of the fields that the code uses
    """

    def __init__(
        self, source: FunctionSource, args: Mapping[str, ArgType], options: Options, config: Config, target: TargetSpec, fuse: Fuse,
    ) -> None:  # fmt: skip
        self._source, self._args, self._options = source, args, options
        self._config, self._target, self._fuse = config, target, fuse
        self.counts = Counts()
        self.fields: tuple[tuple[int, int], ...] = ()
        self._reads: Dependencies | None = None  # of the first code, whose name is the digest
        self._digest = ""

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

    def plan(self, options: Options) -> Plan:
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
            is_plain = entry is not None and compiled.code.shadow is None  # interpreted code prints without a ring
            kind = CpuPlan if is_plain else cpu_plan_class(compiled.code)
            plan = kind(compiled.code, **self._facts_of(compiled), entry=entry)
            plan.footprints = functools.cache(lambda: self._footprints(options, compiled.code))
            plan.limits.spans = functools.cache(lambda: self._places(options, compiled.code))
            plan.elsewhere = functools.partial(self._elsewhere, options)
            return plan
        tasks = self._gpu_plan(options, device)
        if options.predicated or options.indirect or not options.graph or has_memory(tasks.code):
            return tasks
        as_graph: type[GraphPlan] = import_late("quadpy.jit.graph_plan").GraphPlan
        graph = as_graph(tasks, self.counts, ordered=not options.noalias, name=self._source.name)
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
        return PlansOfRanks.make(
            traced.unwatched, tuple(args), {name: field for name, field in pairs if _is_distributed(field)},
            functools.partial(self._part, options, device, traced.outline, plain), tuple(map(FieldMemory.of, plain)),
        )  # fmt: skip

    def _part(
        self, options: Options, device: Device | None, outline: ResultShape, used: tuple[Field, ...], kernel: Kernel, last: bool,
    ) -> Plan:  # fmt: skip
        """The plan of one task of a kernel, as a separate kernel; the ``last`` one has the results."""
        compiler = import_late("quadpy.jit.compiler")
        _, code = compiler.compiled_code(kernel, self._target, compiler.form_of(options))
        learn(code.messages)
        facts = self._facts(used, outline if last else None, (kernel.tasks[0].span,) * len(code.tasks))
        plan: CpuPlan | GpuPlan
        if device is None:
            plan = cpu_plan_class(code)(code, **facts)
        else:
            plan = gpu_plan_class(code)(code, device, **facts, wider=self._too_wide)
        plan.footprints = functools.cache(lambda: _footprints_of(code, lambda: kernel))
        return plan

    def _too_wide(self) -> Plan:
        raise ArgumentError(
            f"{self._source.name}: a rank's part has more iterations than a grid has threads",
            hint="divide the grid among more ranks",
        )

    def _facts_of(self, compiled: Compiled) -> dict[str, Any]:
        return self._facts(compiled.fields, compiled.result_shape, compiled.spans)

    def _facts(self, fields: Iterable[Field], shape: ResultShape, spans: Sequence[Span]) -> dict[str, Any]:
        """What the plans of the CPU and of GPUs take besides code."""
        memory, seed, name = tuple(map(FieldMemory.of, fields)), self._config.random_seed, self._source.name
        return {"fields": memory, "seed": seed, "result_shape": shape, "name": name, "spans": spans}

    def _gpu_plan(self, options: Options, device: Device) -> GpuPlan:
        """A launch for each task on ``device``."""
        compiled = self._compiled(options, device)
        wider = functools.cache(lambda: self.plan(replace(options, index=i64)))
        plan = gpu_plan_class(compiled.code)(compiled.code, device, **self._facts_of(compiled), wider=wider)
        mode = options.index, options.fast_math, options.wave_size
        again = not (options.predicated or has_memory(compiled.code))
        predicated = (
            functools.cache(lambda: self._gpu_plan(replace(options, predicated=True), device)) if again else None
        )
        plan.origin = import_late("quadpy.jit.fusion.origin").code_of(
            device, self._source.name, compiled.code, mode, lambda: self._traced(options), predicated
        )
        plan.footprints = functools.cache(lambda: self._footprints(options, compiled.code))
        plan.limits.spans = functools.cache(lambda: self._places(options, compiled.code))
        plan.elsewhere = functools.partial(self._elsewhere, options)
        if not options.indirect:
            plan.set_indirect(functools.cache(lambda: self._gpu_plan(replace(options, indirect=True), device)))
        return plan

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
        self.fields = tuple((field.pointer, field.nbytes) for field in compiled.fields)

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

    def _elsewhere(self, options: Options, target: TargetSpec, aligned: Collection[str], **form: Any) -> Request:
        """See ``Elsewhere``."""
        is_cpu = target.family == "cpu"
        options = replace(
            options, wave_size=target.wave_size, debug=False, indices_only=False, interpreted=False,
            block_dim=None if is_cpu else self._config.gpu_block_dim, **form,
        )  # fmt: skip

        def there(name: str, arg: ArgType) -> ArgType:
            if not isinstance(arg, ArrayArg):
                return arg
            return replace(arg, type=replace(arg.type, aligned=not is_cpu and name in aligned, aligned_rows=False))

        args = {name: there(name, arg) for name, arg in self._args.items()}
        return replace(self._request(options), args=args, target=target)

    def _footprints(self, options: Options, code: CodeObject) -> KernelFootprints:
        """The footprints of the launches of ``code``; code from the disk is traced for this."""
        return _footprints_of(code, lambda: self._traced(options))

    def _places(self, options: Options, code: CodeObject) -> Sequence[Span]:
        """Where the accesses of ``code.limits`` are: code from the disk does not know, so the kernel is traced for this."""
        try:
            found = import_late("quadpy.codegen.bounds").limits_of(self._traced(options), code.layout)
        except (CompilationError, RecursionError):  # as in ``_footprints_of``
            return ()
        return [span for _, span in found]

    def _traced(self, options: Options) -> Kernel:
        if self._config.interpreted:  # its code has no tasks that watch for races
            options = replace(options, debug=False)
        request = replace(self._request(options), again=True)
        return import_late("quadpy.jit.compiler").kernel_again(request)  # type: ignore[no-any-return]  # a kernel


def _footprints_of(code: CodeObject, kernel: Callable[[], Kernel]) -> KernelFootprints:
    """The footprints of the launches of ``code``, which was made from ``kernel``."""
    made: type[KernelFootprints] = import_late("quadpy.jit.footprints").KernelFootprints
    try:
        return made(code, kernel())
    except (CompilationError, RecursionError):  # what the kernel reads has changed, or it is nested too deeply
        return made(code, None)


class _DistributedFields(Exception):
    """The kernel uses fields of which each rank has only a part."""


def _is_distributed(field: object) -> bool:
    return getattr(field, "__quadpy_distributed__", False) is True
