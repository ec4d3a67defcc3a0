"""What the compiler hands to the runtime."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import Any, Final, Literal, TypeAlias

from quadpy.core.faults import Site
from quadpy.core.flow import Flow, flow_from_json, flow_to_json
from quadpy.core.formula import Formula, formula_from_json, formula_to_json, operand_from_json
from quadpy.core.light import dataclass

LOOP_DONE: Final = -1
"""What stands in memory for the part of a loop that comes next, when the loop is over."""
OUT_OF_MEMORY: Final = -2
"""Returned by a CPU's entry function if a loop could not allocate working memory; -1 means that all tasks are done."""
INTERRUPTED: Final = -3
"""The same if a handler of a signal, such as that of Ctrl-C, raised: ``runtime.cpu.pool`` has the exception."""

OUT_OF_BOUNDS: Final = -4
"""The same, before anything has run, if an access may certainly leave its array: ``Limit`` says how the host finds out."""
CHECKED: Final = 1 << 30
"""Added to the number of the first task: the host has found that all accesses stay inside their arrays."""

Part = Literal["pointer", "extent", "stride", "scalar"]
ResultShape: TypeAlias = 'Literal["scalar"] | tuple[int, ...] | list[ResultShape] | dict[str, ResultShape] | None'
"""What a kernel returns: a scalar, a vector of this shape, a tuple or a struct of these, or nothing."""


@dataclass(frozen=True, slots=True)
class AbiValue:
    """One machine value of the argument block; ``code`` is its letter in ``struct``'s language."""

    param: str
    part: Part
    axis: int
    code: str
    offset: int


@dataclass(frozen=True, slots=True)
class AbiLayout:
    """The argument block of a kernel: C struct rules, in the order of the parameters.

    An array is its pointer, then its run-time extents, then its run-time strides (i64, in units of its layout).
    """

    values: tuple[AbiValue, ...]
    size: int

    @property
    def format(self) -> str:
        """For ``struct.Struct``, which pads as C does."""
        return "@" + "".join(value.code for value in self.values)


HIDDEN: Final = "$"
"""Begins the names of parameters that the caller does not pass; none of the user's can."""


SHADOW: Final = "$shadow"
"""The name of the memory in which checks for races keep who touched each element: a parameter that is not an array of a call."""

CHECKPOINT: Final = "checkpoint.state"
"""The name of an array of two i32 that each call of a kernel with checkpoints passes: whether a loop goes on, and the turn."""
TURN: Final = 1
"""The element that holds the turn: 0 where all parts of the kernel run; the number of the checkpoint at which it resumes."""
PAUSED: Final = 1 << 24
"""Added to the turn when the checkpoint of that number has paused the kernel: nothing runs from then on."""


@dataclass(frozen=True, slots=True)
class HiddenArgument:
    """A word of 64 bits in the argument block that the launch provides, not the caller.

    ``name`` is one of the rows of ``jit.hidden_arguments``, which says where the value comes from.
    """

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """One launch of a kernel.

    symbol       the name of its code
    parallel     False for one block
    block_dim    threads of a block, or iterations that wait for each other
    count        the iteration count as text of the IR, for a reader
    effects      what it does with each array, in letters: ``r``, ``w`` and ``a`` (atomic)
    grid_stride  on a GPU, whether any number of blocks runs all iterations; if not, a launch has a thread for each
    extent       the iteration count for the host; None where it depends on memory
    has_barrier  whether iterations wait for each other, so that their number must be a multiple of ``block_dim``
    coarsened    the number of threads where each may run several iterations; None where none does
    scratch      what it does with scratch memory: nothing, ``r`` or ``rw``
    latch        whether it decides which part of a loop comes next
    cooperative  whether its blocks wait for each other, so that the device must hold all of them at once
    meetings     how often they all wait for each other, with one pass through each loop
    shared_bytes shared memory that the launch must ask for, since it is more than the code can declare
    joined       the symbols that tasks would have which this launch runs too
    """

    symbol: str
    parallel: bool
    block_dim: int = 0
    count: str = ""
    effects: tuple[tuple[str, str], ...] = ()
    grid_stride: bool = False
    extent: Formula | None = None
    has_barrier: bool = False
    coarsened: Formula | None = None
    scratch: str = ""
    latch: bool = False
    cooperative: bool = False
    shared_bytes: int = 0
    joined: tuple[str, ...] = ()
    meetings: int = 0

    def to_json(self) -> dict[str, Any]:
        """The same, with formulas as ``formula_to_json`` writes them."""
        return asdict(self) | {name: formula_to_json(getattr(self, name)) for name in ("extent", "coarsened")}

    @staticmethod
    def from_json(facts: dict[str, Any]) -> TaskInfo:
        formulas = {name: formula_from_json(facts[name]) for name in ("extent", "coarsened")}
        effects = tuple((array, letters) for array, letters in facts["effects"])
        return TaskInfo(**facts | formulas | {"effects": effects, "joined": tuple(facts["joined"])})


@dataclass(frozen=True, slots=True)
class Limit:
    """One iteration's access to an array, along one axis: a launch whose access is outside must not begin.

    It is outside if all ``runs``, the lengths of the loops around it, are above 0, and ``index`` is below 0 for a ``low``
    limit, or else the extent or more.  This costs too much for each launch.  Therefore, a launch first looks at the sum of
    ``terms``, each a factor and the numbers of values of the argument block to multiply it with: only if it is negative,
    for a ``low`` limit, or else not negative, the access may be outside.

    arrays  the array as users know it, with its extents; then those whose extents matter too
    first   what the user's indices of the axis begin at
    """

    arrays: tuple[tuple[str, tuple[Formula, ...]], ...]
    axis: int
    first: int
    low: bool
    terms: tuple[tuple[int, tuple[int, ...]], ...]
    index: Formula
    runs: tuple[Formula, ...]

    def to_json(self) -> list[Any]:
        arrays = [[name, *map(formula_to_json, extents)] for name, extents in self.arrays]
        numbers = [formula_to_json(formula) for formula in (self.index, *self.runs)]
        return [arrays, self.axis, self.first, self.low, self.terms, numbers]

    @staticmethod
    def from_json(facts: list[Any]) -> Limit:
        arrays, axis, first, low, terms, numbers = facts
        shapes = tuple((name, tuple(map(operand_from_json, extents))) for name, *extents in arrays)
        index, *runs = map(operand_from_json, numbers)
        return Limit(shapes, axis, first, low, tuple((factor, tuple(k)) for factor, k in terms), index, tuple(runs))


@dataclass(frozen=True, slots=True, repr=False)
class CodeObject:
    """Machine code of one kernel for one target, with all that a launch needs to know.

    ``entry`` is the CPU's entry point: ``i32 entry(ptr args, ptr scratch, i32 first_task)`` runs the tasks
    from ``first_task`` on, for ``~first_task`` that one alone, and returns the next one to run, or -1.  GPU targets have a symbol a task instead.
    ``hidden`` are the arguments that the launch adds, in the order of their offsets: first those that are parameters of
    the IR, and so in ``layout``, then on a GPU the address of scratch memory, after it.
    ``flow`` is the order of ``tasks``; ``()`` stands for all of them in order.
    ``messages`` are what it prints, each as ``Message.text``.
    ``sites`` are the checks of code under ``debug=True``, by their numbers; ``shadow`` says how many words of memory its
    checks for races need in a launch, None where there are none.
    ``limits`` are of accesses that are certain.
    """

    target: str
    image: bytes
    entry: str
    layout: AbiLayout
    tasks: tuple[TaskInfo, ...]
    results: tuple[str, ...] = ()
    slots: int = 0
    flow: Flow = ()
    hidden: tuple[HiddenArgument, ...] = ()
    messages: tuple[str, ...] = ()
    asm: str = field(default="", compare=False)
    sites: tuple[Site, ...] = ()
    shadow: Formula | None = None
    limits: tuple[Limit, ...] = ()

    def __repr__(self) -> str:
        names = ", ".join(task.symbol for task in self.tasks)
        return (
            f"<CodeObject for {self.target}, {len(self.image):,} bytes: {names[:80]}{'…' if len(names) > 80 else ''}>"
        )

    @property
    def written(self) -> set[str]:
        """The names of the arrays that some task writes."""
        return {name for task in self.tasks for name, access in task.effects if access != "r"}

    @property
    def steps(self) -> Flow:
        """``flow``, with all tasks in order written out."""
        return self.flow or tuple(range(len(self.tasks)))

    @property
    def block_bytes(self) -> int:
        """Bytes of the argument block."""
        return max([self.layout.size, *(hidden.offset + 8 for hidden in self.hidden)])

    def manifest(self) -> str:
        """All but the image, as JSON: what ``from_parts`` reads back."""
        facts = {f: getattr(self, f) for f in ("target", "entry", "results", "slots", "messages")}
        facts |= {
            "flow": flow_to_json(self.flow),
            "hidden": [(hidden.name, hidden.offset) for hidden in self.hidden],
            "layout": asdict(self.layout),
            "tasks": [task.to_json() for task in self.tasks],
        }
        if self.sites:
            facts["sites"] = [site.to_json() for site in self.sites]
        if self.shadow is not None:
            facts["shadow"] = formula_to_json(self.shadow)
        if self.limits:
            facts["limits"] = [limit.to_json() for limit in self.limits]
        import json  # most programs read no manifest

        return json.dumps(facts, sort_keys=True)

    @staticmethod
    def from_parts(manifest: str, image: bytes) -> CodeObject:
        import json  # as above

        facts = json.loads(manifest)
        layout = AbiLayout(tuple(AbiValue(**value) for value in facts["layout"]["values"]), facts["layout"]["size"])
        tasks = tuple(map(TaskInfo.from_json, facts["tasks"]))
        return CodeObject(
            target=facts["target"], image=image, entry=facts["entry"], layout=layout, tasks=tasks,
            results=tuple(facts["results"]), slots=facts["slots"], messages=tuple(facts["messages"]),
            flow=flow_from_json(facts["flow"]), hidden=tuple(HiddenArgument(*hidden) for hidden in facts["hidden"]),
            sites=tuple(map(Site.from_json, facts.get("sites", ()))), shadow=formula_from_json(facts.get("shadow")),
            limits=tuple(map(Limit.from_json, facts.get("limits", ()))),
        )  # fmt: skip
