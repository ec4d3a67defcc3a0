"""The plans of one signature: with the promise that no written array overlaps another, and without.

Owns: Specialisation, fusion_of, prepare.  Imports: leaves, ``ir``, ``lang``, ``runtime`` and the compiler (and so LLVM).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from quadpy.dtypes import i64
from quadpy.errors import CodegenError, DeviceError
from quadpy.graph.engines.kernel_stats import Counts
from quadpy.ir.nodes import Kernel
from quadpy.jit.binder import CpuBinder, GpuBinder, host_packer
from quadpy.jit.compilation import Request, compile_request, digest_of, traced_for
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.fast_call.generate import express, packer
from quadpy.jit.fast_call.native_cache import cached_code
from quadpy.jit.fusion.origin import code_of
from quadpy.jit.fusion.plan import FusedPlan, FusingPlan
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.graph_plan import GraphPlan
from quadpy.jit.parameters import Parameter
from quadpy.lang.arguments import ArgType, ArrayArg, Options
from quadpy.lang.dependencies import Dependencies
from quadpy.lang.source import FunctionSource
from quadpy.runtime.cpu.pool import default_threads, pool_address, set_threads
from quadpy.runtime.device.current import Config
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_of
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.fusion import Fuse, Fusion
from quadpy.target import parse_target

__all__ = ["Specialisation", "fusion_of", "prepare"]


class Specialisation:
    """Compiled at once for arrays that do not overlap; for overlapping ones when they first come.

    All code of a signature is made under one configuration, ``config``, and of what its first code read: one signature
    has one meaning, whatever becomes of globals meanwhile.
    """

    __slots__ = (
        "_args", "_config", "_digest", "_fast_call", "_fields", "_fuse", "_lock", "_options", "_overlapping", "_packers",
        "_pairs", "_plain", "_reads", "_source", "counts", "express", "on_gpu",
    )  # fmt: skip

    def __init__(
        self, source: FunctionSource, args: Mapping[str, ArgType], options: Options, config: Config, fuse: Fuse = False
    ) -> None:
        self._source, self._args, self._options, self._config, self._fuse = source, args, options, config, fuse
        self.counts = Counts()
        self._lock = new_lock()
        self._overlapping: Any = None
        self._fields: tuple[tuple[int, int], ...] = ()
        self._reads: Dependencies | None = None  # those of the first code, whose name is the digest
        self._digest = ""
        self._plain = self._compile(options)
        self._pairs = self._pairs_to_check()
        self.on_gpu = isinstance(self._plain, GpuPlan)
        self.express: Callable[..., bool] | None = None
        self._fast_call: dict[tuple[object, ...], Callable[..., bool] | None] = {}
        self._packers: dict[tuple[object, ...], Callable[..., Any] | None] = {}

    def find_fast_call(self, parameters: Sequence[Parameter], args: Sequence[Any]) -> Callable[..., bool] | None:
        """The quick way of later calls like this one, where there is one; ``express`` is the one found last.

        It is written for each mixture of quadpy's memory and other libraries'.
        """
        forms = tuple(getattr(given, "form", None) for given in args)
        if forms not in self._fast_call:
            self._fast_call[forms] = express(parameters, args, self._plain, self._pairs)
        self.express = self._fast_call[forms]
        return self.express

    def binder(
        self, plan: Any, parameters: Sequence[Parameter], args: Sequence[Any], resolve: Callable[..., Any]
    ) -> CpuBinder | GpuBinder | None:
        """What binds later calls of ``plan``, one with ``args``; None where it is the plan of arrays that overlap on a GPU."""
        plain = plan is self._plain
        if isinstance(plan, CpuPlan):
            pack = host_packer(parameters, args, plan, self._pairs, self._fields) if plain else None
            return CpuBinder.looking(plan, self, resolve) if pack is None else CpuBinder(plan, pack)
        if not plain or not isinstance(plan, GpuPlan) or not plan.launches:
            return None
        forms = tuple(getattr(given, "form", None) for given in args)
        if forms not in self._packers:
            self._packers[forms] = packer(parameters, args, plan, self._pairs)
        pack = self._packers[forms]
        return None if pack is None else GpuBinder(plan, pack)

    def pick(self, views: list[Any]) -> Any:
        """The plan for arrays that lie like this: ranges are compared where one of the two is written."""
        for i, j in self._pairs:
            a, b = views[i], views[j]
            start_a, start_b = a.pointer, b.pointer
            if start_a < start_b + b.nbytes and start_b < start_a + a.nbytes:
                return self._overlap()
        for i, start, nbytes in self._field_checks(views):
            if views[i].pointer < start + nbytes and start < views[i].pointer + views[i].nbytes:
                return self._overlap()
        return self._plain

    def _field_checks(self, views: list[Any]) -> list[tuple[int, int, int]]:
        """Fields against arguments; a field's memory can reach a kernel a second time, as a NumPy view."""
        if not self._fields:
            return []
        return [(i, start, nbytes) for i in range(len(views)) for start, nbytes in self._fields]

    def _overlap(self) -> Any:
        with self._lock:
            if self._overlapping is None:
                self._overlapping = self._compile(replace(self._options, noalias=False))
        return self._overlapping

    def _compile(self, options: Options, like: GpuPlan | None = None) -> Any:
        """The plan of such code: for the device of ``like``, or else the one of the configuration."""
        config = self._config
        device = like.device if like else None if config.arch == "cpu" else device_of(config)
        compiled = compile_request(self._request(options, device))
        fields = compiled.fields
        if self._reads is None:
            self._reads, self._digest = compiled.reads, compiled.digest
        for field in fields:
            if field.device is not device:
                raise DeviceError(
                    f"{self._source.name} uses {field!r}, which lives on {field.device or 'the host'} and not on "
                    f"{device or 'the host'}", self._source.span, hint="make fields after qp.init has chosen the device",
                )  # fmt: skip
        self._fields = tuple((field.pointer, field.nbytes) for field in fields)
        seed = like.hidden.seed if like else config.random_seed
        if device:
            plan = GpuPlan(
                compiled.code, device, fields=fields, seed=seed, outline=compiled.outline,
                wider=functools.cache(lambda: self._compile(replace(options, index=i64))),
                name=self._source.name, spans=compiled.spans,
            )  # fmt: skip
            mode = options.index, options.fast_math
            plan.origin = code_of(device, self._source.name, compiled.code, mode, lambda: self._traced(options, device))
            if not (options.predicated or options.indirect):
                plan.indirect_by(functools.cache(lambda: self._read_from_memory(options, plan)))
            return plan if options.predicated or options.indirect or not options.graph else self._graph(plan, options)
        return CpuPlan(
            compiled.code, fields=fields, seed=seed, outline=compiled.outline, name=self._source.name, spans=compiled.spans,
        )  # fmt: skip

    def _read_from_memory(self, options: Options, like: GpuPlan) -> Any:
        return self._compile(replace(options, indirect=True), like)

    def _request(self, options: Options, device: Device | None) -> Request:
        """What is asked of the compiler: the first code of the signature, or more that does the same.

        Raises:
            CodegenError: it would not do the same, since user code that runs at compile time now says something else.
        """
        target = parse_target(device.driver.info.arch if device else "cpu")
        reads = self._reads
        if reads is not None and not reads.complete:
            first = traced_for(Request(self._source, self._args, self._options, target, reads))
            if digest_of(first.kernel, target) != self._digest:
                name, span = self._source.name, self._source.span
                raise CodegenError(
                    f"what {name} reads from around it has changed since its first call", span,
                    hint="pass what changes as an argument, or as a template() for code of its own",
                )  # fmt: skip
        return Request(self._source, self._args, options, target, reads)

    def _traced(self, options: Options, device: Device) -> Kernel:
        plain = replace(options, predicated=False, indirect=False, fused=False)
        return traced_for(self._request(plain, device)).kernel

    def _graph(self, eager: GpuPlan, options: Options) -> GraphPlan | FusingPlan:
        """How a graph kernel runs on a GPU."""

        def other(blindly: bool, indirect: bool) -> GpuPlan:
            found: GpuPlan = (self._read_from_memory if indirect else self._compile)(
                replace(options, predicated=blindly), eager
            )
            return found

        plan = GraphPlan(
            eager, other, self.counts, ordered=not options.noalias, name=self._source.name,
        )  # fmt: skip
        if self._fuse is False:
            return plan
        return FusingPlan(plan, plan.device, self._fuse, lambda: self._one_launch(eager, options))

    def _one_launch(self, separate: GpuPlan, options: Options) -> FusedPlan | str:
        """All tasks of ``separate`` in one launch, or why that cannot be."""
        try:
            compiled = compile_request(self._request(replace(options, fused=True), separate.device))
        except CodegenError as error:
            return error.message
        return FusedPlan(compiled.code, separate, name=self._source.name, spans=compiled.spans)

    def _pairs_to_check(self) -> tuple[tuple[int, int], ...]:
        """Pairs of array arguments, by position, of which at least one is written."""
        names = [name for name, arg in self._args.items() if isinstance(arg, ArrayArg)]
        written = {name for task in self._plain.code.tasks for name, access in task.effects if access != "r"}
        return tuple(
            (i, j)
            for i, first in enumerate(names)
            for j, second in enumerate(names[i + 1 :], i + 1)
            if first in written or second in written
        )


def fusion_of(plan: Any, values: list[Any]) -> Fusion:
    """Whether a call of ``plan`` is one launch."""
    if isinstance(plan, FusingPlan):
        return plan.fusion(values)
    if isinstance(plan, CpuPlan):
        return Fusion(False, "on the CPU a call runs all tasks anyway")
    return Fusion(False, "fuse is False")


def prepare(threads: int | None) -> None:
    """Loads the pool of threads, its code from the cache; called by ``qp.init``."""
    pool_address(cached_code)
    set_threads(threads or default_threads())
