"""What calls of algorithms launch on the CPU, kept for later calls with arrays of the same types and shapes.

To check arguments, to choose kernels, and to make an array for each part of the scratch memory takes longer than the work
on some thousand numbers.  None of this depends on the numbers: a second call makes its results, and launches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from quadpy.algorithms.runs import Run
from quadpy.dtypes import Scalar
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.kernel import Kernel
from quadpy.jit.plan import Plan, Values, Views
from quadpy.lang.decorators import Func
from quadpy.runtime.arrays.ndarray import NDArray, unset_array
from quadpy.runtime.arrays.reinterpret import over_memory_of
from quadpy.runtime.device.current import State
from quadpy.runtime.memory.host_memory import HOST

__all__ = ["run_planned"]

T = TypeVar("T")
Answer: TypeAlias = "int | _View | tuple[Any, list[Answer]]"
"""What a call returns: an array by its number, a view of one, or a tuple with its class."""

_MOST: Final = 512
"""Calls that are kept; then all are forgotten."""


class _Unknown(Exception):
    """A call has no plan: the next one may differ in what its arguments do not show."""


class _View(NamedTuple):
    array: int
    dtype: Scalar
    shape: tuple[int, ...]
    start: int


class _Launch(NamedTuple):
    """The run of a kernel's plan, its values, and which of them are addresses: index, number of the memory, offset."""

    run: Callable[[Values, Views, object], object]
    values: Values
    addresses: list[tuple[int, int, int]]


class _Planned(NamedTuple):
    """A call.  Its memory is numbered: the arrays of the caller, the results, the scratch memory."""

    launches: list[_Launch]
    results: list[tuple[Scalar, tuple[int, ...]]]
    scratch: int
    answer: Answer

    def call(self, given: list[NDArray]) -> Any:
        arrays = [*given, *(unset_array(dtype, shape) for dtype, shape in self.results)]
        bases = [array.pointer for array in arrays]
        if self.scratch:
            scratch = HOST.allocate(self.scratch)
            bases.append(scratch.pointer)
        for run, values, addresses in self.launches:
            known = values.copy()
            for index, memory, offset in addresses:
                known[index] = bases[memory] + offset
            run(known, (), None)
        return _answered(self.answer, arrays)


def _answered(answer: Answer, arrays: list[NDArray]) -> Any:
    if isinstance(answer, int):
        return arrays[answer]
    if isinstance(answer, _View):
        return over_memory_of(arrays[answer.array], answer.dtype, answer.shape, answer.start)
    made, parts = answer
    return made(_answered(part, arrays) for part in parts)


class _Recorder(Run):
    """A call that runs, and is noted: its results, the parts of its scratch memory with their offsets, its launches."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[NDArray] = []
        self.parts: list[tuple[NDArray, int]] = []
        self.launches: list[tuple[CpuPlan, Values, Views]] = []

    def launch(self, kernel: Kernel, *args: object) -> None:
        kernel.planned(args, {}, self._run)

    def _run(self, plan: Plan, values: Values, views: Views) -> None:
        before = values.copy()
        plan.run(values, views, None)
        if isinstance(plan, CpuPlan) and not plan.fields and all(view.nbytes for view in views):
            self.launches.append((plan, before, views))
        else:
            self.depends_on_more = True

    def temporary(self, dtype: Scalar, shape: int | tuple[int, ...]) -> NDArray:
        made = super().temporary(dtype, shape)
        self.parts.append((made, self.used - made.nbytes))
        return made

    def result(self, dtype: Scalar, shape: int | tuple[int, ...]) -> NDArray:
        made = super().result(dtype, shape)
        self.results.append(made)
        return made

    def planned(self, given: list[NDArray], answer: object) -> _Planned | None:
        """The call, which gave ``answer``; None if later calls may differ."""
        try:
            return None if self.depends_on_more else self._planned(given, answer)
        except _Unknown:
            return None

    def _planned(self, given: list[NDArray], answer: object) -> _Planned:
        arrays = [*given, *self.results]
        memory = [(array.pointer, array.nbytes, number, 0) for number, array in enumerate(arrays)]
        memory += [(part.pointer, part.nbytes, len(arrays), offset) for part, offset in self.parts]
        launches = [
            _Launch(plan.run, values, [(index, *_place(memory, int(values[index]))) for index in plan.pointers])
            for plan, values, _ in self.launches
        ]
        results = [(array.dtype, array.shape) for array in self.results]
        return _Planned(launches, results, self.used, _described(answer, arrays, memory))


def _place(memory: list[tuple[int, int, int, int]], pointer: int) -> tuple[int, int]:
    """In which memory an address is, and where."""
    for start, nbytes, number, offset in memory:
        if start <= pointer < start + nbytes:
            return number, pointer - start + offset
    raise _Unknown


def _described(answer: Any, arrays: list[NDArray], memory: list[tuple[int, int, int, int]]) -> Answer:
    if isinstance(answer, tuple):
        parts = [_described(part, arrays, memory) for part in answer]
        return getattr(answer, "_make", tuple), parts
    for number, array in enumerate(arrays):
        if answer is array:
            return number
    number, start = _place(memory, answer.pointer)
    if number == len(arrays):
        raise _Unknown  # scratch memory
    return _View(number, answer.dtype, answer.shape, start)


class _Known:
    """The plans for a configuration: signature -> plan, or None where there is none."""

    config: object = None
    plans: dict[Hashable, _Planned | None] = {}  # noqa: RUF012 - replaced, not shared


def run_planned(name: str, body: Callable[[Run], T]) -> T:
    """The result of ``body``, which depends on its closure alone, on the calling thread's stream of the CPU."""
    if _Known.config is not State.config or len(_Known.plans) > _MOST:
        _Known.config, _Known.plans = State.config, {}
    plans = _Known.plans
    given: list[NDArray] = []
    try:
        signature = (name, *[_signed(cell.cell_contents, given) for cell in body.__closure__ or ()])
    except _Unknown:
        return body(Run())
    if signature not in plans:
        recorder = _Recorder()
        answer = body(recorder)
        plans[signature] = recorder.planned(given, answer)
        return answer
    found = plans[signature]
    return body(Run()) if found is None else found.call(given)


def _signed(value: Any, given: list[NDArray]) -> Any:
    """All that a call can depend on in one of its arguments, except for the numbers in an array.

    Raises:
        _Unknown: it may depend on more.
    """
    kind = type(value)
    if kind is NDArray:
        return _signed_array(value, given)
    if value is None or kind is int or kind is str or kind is bool or isinstance(value, Func):
        return kind, value
    if kind is float:
        return value.hex()
    if kind is Scalar:
        return value.name
    if kind is tuple:
        return tuple([_signed(part, given) for part in value])
    raise _Unknown


def _signed_array(array: NDArray, given: list[NDArray]) -> Hashable:
    if array.device is not None or not array.nbytes:
        raise _Unknown
    start = array.pointer
    end = start + array.nbytes
    for number, other in enumerate(given):
        if start < other.pointer + other.nbytes and other.pointer < end:
            if array is other:
                return number
            raise _Unknown  # they overlap
    given.append(array)
    return array.type_key, array.shape
