"""The plans of one call signature, and what makes later calls fast.

For replays, the arguments of calls on the CPU are packed; calls themselves are resolved one by one.  Parallel sections are
checked for each set of arrays and extents when they are first called.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from quadpy.core.flow import Flow, Fork, steps_of, tasks_of
from quadpy.core.importing import import_late
from quadpy.jit.array_arguments import Overlaps
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.fast_call.arguments import REFUSALS, Arguments, Bind, FastCall, define
from quadpy.jit.fast_call.generate import GpuCalls
from quadpy.jit.fast_call.observed import ObservedCalls, Tell, forms_of
from quadpy.jit.fast_call.repeated import RepeatedCalls
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.launch_memory import has_memory
from quadpy.jit.parameters import Argument, ArrayParameter, Parameter
from quadpy.jit.plan_maker import PlanMaker
from quadpy.lang.arguments import ArrayArg
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.device.synchronous import complete
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.launch.launch import Binder, Bound
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.memory.host_storage import is_exported

if TYPE_CHECKING:
    from quadpy.core.target import TargetSpec
    from quadpy.jit.plan import Plan, Values, Views
    from quadpy.lang.arguments import ArgType, Options
    from quadpy.lang.source import FunctionSource
    from quadpy.runtime.arrays.view import ArrayMemory, ArrayView
    from quadpy.runtime.device.current import Config
    from quadpy.runtime.launch.fusion import Fuse


T = TypeVar("T")

Resolved: TypeAlias = "tuple[Specialisation, Values, list[ArrayView]]"
"""A resolved call: the code for the types of its arguments, the values of the argument block, and the arrays."""
Run: TypeAlias = "Callable[[Values, Views, object], object]"
"""``Plan.run``."""
Resolver: TypeAlias = Callable[[Sequence[Argument]], Resolved]
"""``Dispatcher.resolve``."""


class Specialisation:
    """A kernel for one call signature: compiled at once for arrays that do not overlap, for others when they first come.

    ``plans`` makes its plans.
    """

    def __init__(
        self, source: FunctionSource, parameters: Sequence[Parameter], args: Mapping[str, ArgType], options: Options,
        config: Config, target: TargetSpec, fuse: Fuse = False,
    ) -> None:  # fmt: skip
        self._source, self._parameters, self._options = source, parameters, options
        self.plans = PlanMaker(source, args, options, config, target, fuse)
        self._lock = new_lock()
        self._disjoint = self.plans.plan(options)
        self._overlapping: Plan | None = None
        names = [name for name, arg in args.items() if isinstance(arg, ArrayArg)]
        self._overlaps = Overlaps(names, self._disjoint.code, self.plans.fields)
        self._overlap = self._overlaps.found
        self.sections = Sections(source) if has_sections(self._disjoint.code.flow) else None
        on_cpu = isinstance(self._disjoint, CpuPlan)
        repeats = on_cpu and not self.sections and not has_memory(self._disjoint.code)
        self._repeated = RepeatedCalls(parameters) if repeats else None
        self.waits = config.synchronous and not on_cpu
        self.has_fast_calls = self._repeated is not None or (
            isinstance(self._disjoint, GpuPlan)
            and not self.waits
            and not has_memory(self._disjoint.code)
            and not self._overlaps.sorted
        )
        self.is_plain = not self.has_fast_calls and not self.waits and self.sections is None
        self._fast_calls: dict[Hashable, FastCall | None] = {}
        self._binds: dict[Hashable, Bind | None] = {}

    def waiting(self, run: Run) -> Run:
        """``run``, which then waits until the work is done; for ``qp.init(synchronous=True)``."""

        def run_and_wait(values: Values, views: Views, stream: object) -> object:
            done = run(values, views, stream)
            device = current_device()
            complete(device, stream_of(device, stream))
            return done

        return run_and_wait

    def pick(self, views: Views) -> Plan:
        """The plan for arrays with these addresses: ranges are compared if at least one of the two is written."""
        return self._for_overlaps() if views and self._overlap(views) else self._disjoint

    def can_repeat(self, stream: object) -> bool:
        """Whether a fast call may take calls like one on ``stream``."""
        is_plain_call = stream is None and not CAPTURES.count and not CAPTURES.watched
        return self.has_fast_calls and (self._repeated is None or is_plain_call)

    def fast_call(self, args: Sequence[Argument]) -> FastCall | None:
        """The fast call for arguments like ``args``, which have views in place of arrays; None if there is none.

        One is generated for each mixture of quadpy's memory and other libraries'.
        """
        plan = self._disjoint
        if self._repeated is not None:
            return self._repeated_call(self._repeated, args)
        if not isinstance(plan, GpuPlan):
            return None

        def telling(others: Sequence[Argument], tell: Tell) -> FastCall | None:
            given = zip(others, self._parameters, strict=True)
            if any(isinstance(parameter, ArrayParameter) and type(one) is not NDArray for one, parameter in given):
                return None
            return GpuCalls(self._parameters, others, plan, self._overlaps.pairs).telling(tell)

        observed = ObservedCalls(self._source, plan, plan.device, forms_of(args), telling)
        return self._generated(self._fast_calls, lambda calls: calls.fast_call(observed), plan, args)

    def _repeated_call(self, repeated: RepeatedCalls, args: Sequence[Argument]) -> FastCall | None:
        pairs = zip(args, self._parameters, strict=True)
        plan = self.pick([view for view, parameter in pairs if isinstance(parameter, ArrayParameter)])
        if repeated.is_vain:
            self.has_fast_calls, self.is_plain = False, True
        if not isinstance(plan, CpuPlan) or has_memory(plan.code):  # code for overlaps may check for races
            return None
        return repeated.fast_call(plan, args)

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
                self._overlapping = self.plans.plan(replace(self._options, noalias=False))
        return self._overlapping


def bind_on_cpu(
    parameters: Sequence[Parameter], args: Sequence[Argument], plan: CpuPlan, pairs: Sequence[tuple[int, int]]
) -> Bind | None:
    """A function that packs the arguments of calls with the types of ``args``; None if each call must be resolved.

    ``pairs`` are arrays, by number, that must not overlap; none may overlap a field.
    """
    arguments = Arguments(parameters, args, plan.hidden)
    arrays, names = arguments.arrays, arguments.names
    if plan.checks_values or any(type(args[k]) is not NDArray for k in arrays):
        return None
    names |= {"NDArray": NDArray, "pack": struct.Struct(plan.code.layout.format).pack}

    def guard(k: int) -> str:
        names[f"key{k}"] = arguments.view(k).type_key
        different = f"type(a{k}) is not NDArray or a{k}.type_key is not key{k}"
        exported = f"a{k}._storage.exported"  # other libraries have the memory: then a replay defers nothing
        return f"{different} or a{k}.wide is not {arguments.view(k).wide} or {exported}"

    fields = [(field.pointer, field.nbytes) for field in plan.fields]
    values = [[f"*a{k}.abi"] if k in arrays else texts for k, texts in enumerate(arguments.values)]
    packed = ", ".join([*(text for texts in values for text in texts), *arguments.hidden])
    lines = [
        arguments.head("_"),
        "    try:",
        f"        if {arguments.guards(guard)}: return None",
        *arguments.overlaps([(arrays[i], arrays[j]) for i, j in pairs], arrays, fields),
        *arguments.components(),
        f"        return Bound(pack({packed}), (), ({''.join(f'a{k}, ' for k in arrays)}))",
        "    except refusals: return None",
    ]
    return define(lines, names)  # type: ignore[return-value]  # by its text


_MOST = 256
"""Most calls that are remembered as checked."""


def has_sections(flow: Flow) -> bool:
    """Whether a kernel of this flow has sections that run at once."""
    return any(isinstance(step, Fork) for step in steps_of(flow))


class Sections:
    """The sections of one specialised kernel."""

    def __init__(self, source: FunctionSource) -> None:
        self._source = source
        self._checked: dict[tuple[int, ...], object] = {}

    def check(self, plan: Plan, values: Sequence[float], views: Sequence[ArrayView]) -> None:
        """Compare what the sections of a call of ``plan`` touch, unless that was done before.

        Raises:
            HazardError: two of them certainly touch one element, which one of them writes.
        """
        observed = import_late("quadpy.jit.observed_call")
        tasks = observed.task_accesses(plan, values)
        arrays: Sequence[ArrayMemory] = (*views, *plan.fields)
        key = (id(tasks), *[array.pointer for array in arrays])
        if self._checked.get(key) is tasks:
            return
        forks = [step for step in steps_of(plan.code.flow) if isinstance(step, Fork)]
        sections = [
            [[(arrays[a.array], a) for number in tasks_of(branch) for a in tasks[number]] for branch in fork.branches]
            for fork in forks
        ]
        import_late("quadpy.hazards.sections").check_sections(self._source.name, self._source.span, sections)
        if len(self._checked) >= _MOST:
            self._checked.clear()
        self._checked[key] = tasks
