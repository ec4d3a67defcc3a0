"""Random programs of streams, and the oracle that says which of their accesses nothing orders.

A program is a list of steps.  Each becomes one line of Python, and one or more operations of ``Simulation``, the queues
of the simulated driver, whose vector clocks and quadratic search are the oracle.  Here it gets only the order that a
user asked for, as the guide to streams lists it.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field

from simulated_gpu.simulation import Simulation, merge, ordered

SIZE = 32
ARRAYS = ("x0", "x1", "x2")
COUNTERS = ("c0", "c1")
STREAMS = ("main", "s1", "s2", "s3")
EVENTS = ("e0", "e1")
VIEWS = {"v0": ("x0", 4, 20), "v1": ("x1", 0, 12), "v2": ("x0", 16, 32)}
GRAPHS = ("g0", "g1")
MEMORY = ("m0", "m1")

HEADER = f"""\
main = qp.Stream.from_handle(0)
s1, s2, s3 = (qp.create_stream() for _ in range(3))
e0, e1 = qp.create_event(), qp.create_event()
x0, x1, x2 = (qp.ndarray(qp.f32, {SIZE}) for _ in range(3))
c0, c1 = qp.ndarray(qp.i32, 8), qp.ndarray(qp.i32, 8)
sinks = {{name: qp.ndarray(qp.f32, {SIZE}) for name in {STREAMS}}}
p0, p1 = streams.malloc_async({4 * SIZE}, 0), streams.malloc_async({4 * SIZE}, 0)
m0, m1 = array_at(p0, x0, {SIZE}), array_at(p1, x0, {SIZE})
{"".join(f"{v} = view({x}, {b}, {e}); " for v, (x, b, e) in VIEWS.items())}
graph = qp.graph.Graph(); graph.add_kernel(part, x0, 0, 8); graph.add_kernel(copy_part, x0, 4, 12, x1); g0 = graph.instantiate()
graph = qp.graph.Graph(); graph.add_kernel(part, x2, 8, 24); graph.add_kernel(count, c0); g1 = graph.instantiate()
host = np.zeros({SIZE}, np.float32)
qp.sync()
"""
FIRST_LINE = HEADER.count("\n") + 1
"""The line of a program's first step."""


def any_range(chance, size=SIZE):
    begin = chance.randrange(size)
    return begin, chance.randint(begin + 1, min(size, begin + chance.choice((1, 4, size))))


def any_step(chance):
    """A step: its name, and the arguments of its methods in ``Lines`` and ``Oracle``."""
    array, stream, event = chance.choice(ARRAYS), chance.choice(STREAMS), chance.choice(EVENTS)
    target = chance.choice([name for name in ARRAYS if name != array])
    steps = {
        "write": (8, (array, *any_range(chance), stream)),
        "read": (8, (array, *any_range(chance), stream)),
        "copy": (3, (array, *any_range(chance), target, stream)),
        "every": (3, (array, chance.randrange(4), chance.randint(1, 4), stream)),
        "whole_view": (4, (chance.choice([*VIEWS]), stream)),
        "clip": (1, (array, stream)),
        "count": (2, (chance.choice(COUNTERS), stream)),
        "largest": (1, (chance.choice(COUNTERS), stream)),
        "clear": (1, (chance.choice(COUNTERS), stream)),
        "fill": (2, (array, stream)),
        "upload": (1, (array, stream)),
        "copy_from": (2, (array, target, stream)),
        "element": (1, (array, chance.randrange(SIZE))),
        "slice": (1, (array, *any_range(chance))),
        "fetch": (1, (array, chance.randrange(SIZE))),
        "download": (1, (array, stream)),
        "to_host": (1, (array, *any_range(chance), stream)),
        "record": (6, (event, stream)),
        "wait": (6, (event, stream)),
        "edge": (12, (event, stream, chance.choice(STREAMS))),
        "event_sync": (1, (event,)),
        "stream_sync": (1, (stream,)),
        "sync": (0.3, ()),
        "renew_array": (1, (array, stream)),
        "renew_stream": (0.5, (chance.choice(STREAMS[1:]),)),
        "use_memory": (2, (chance.choice(MEMORY), stream)),
        "free": (1, (chance.choice(MEMORY),)),
        "launch": (3, (chance.choice(GRAPHS), stream)),
    }
    name = chance.choices([*steps], [weight for weight, _ in steps.values()])[0]
    return name, steps[name][1]


def any_program(chance):
    """Steps, of which none uses memory that an earlier one freed: on the CPU it would be someone else's."""
    steps, freed = [], set()
    for _ in range(chance.randint(2, 20)):
        name, arguments = any_step(chance)
        if name in ("use_memory", "free") and arguments[0] in freed:
            continue
        if name == "free":
            freed.add(arguments[0])
        steps.append((name, arguments))
    return steps


class Lines:
    """Each step as a user writes it."""

    write = "part({0}, {1}, {2}, stream={3})"
    read = "copy_part({0}, {1}, {2}, sinks['{3}'], stream={3})"
    copy = "copy_part({0}, {1}, {2}, {3}, stream={4})"
    every = "every({0}, {1}, {2}, stream={3})"
    whole_view = "ramp({0}, stream={1})"
    clip = "clip({0}, stream={1})"
    count = "count({0}, stream={1})"
    largest = "largest({0}, stream={1})"
    clear = "clear({0}, stream={1})"
    fill = "{0}.fill(1.5, stream={1})"
    upload = "{0}.from_numpy(np.ones(32, np.float32), stream={1})"
    copy_from = "{1}.copy_from({0}, stream={2})"
    element = "{0}[{1}] = 1.5"
    slice = "{0}[{1}:{2}] = 1.5"
    fetch = "{0}[{1}]"
    download = "{0}.to_numpy(stream={1})"
    to_host = "copy_part({0}, {1}, {2}, host, stream={3})"
    record = "{0}.record({1})"
    wait = "{0}.wait({1})"
    edge = "{0}.record({1}); {0}.wait({2})"
    event_sync = "{0}.synchronize()"
    stream_sync = "{0}.synchronize()"
    sync = "qp.sync()"
    renew_array = "{0} = qp.ndarray(qp.f32, 32, stream={1})"
    renew_stream = "{0}.destroy(); {0} = qp.create_stream(); sinks['{0}'] = qp.ndarray(qp.f32, 32)"
    use_memory = "ramp({0}, stream={1})"
    free = "streams.free_async(p{0[1]}, 0)"
    launch = "{0}.launch({1})"


def source_of(steps):
    return HEADER + "".join(getattr(Lines, name).format(*arguments) + "\n" for name, arguments in steps)


class Element(tuple):
    """Address and size of an element, as a simulation wants them."""

    __slots__ = ()

    @property
    def base(self):
        return self[0] >> 16


@dataclass(eq=False)
class Array:
    """One generation of an array: its address in the oracle."""

    base: int

    def part(self, begin=0, end=SIZE, step=1):
        return [Element(((self.base << 16) + 4 * i, 4)) for i in range(begin, end, step)]


@dataclass
class Oracle:
    """The operations of a program, in the order that its user asked for.

    An operation has its line as its kind.  ``maybe`` has the elements that it writes only under a condition, ``updates``
    the atomic operation of all that it writes.  ``users`` and ``writers`` have the operations that named an array: a copy
    or a fill comes after those that named the same one, and knows nothing of views.
    """

    simulation: Simulation = field(default_factory=Simulation)
    maybe: dict = field(default_factory=dict)
    updates: dict = field(default_factory=dict)
    users: dict = field(default_factory=lambda: defaultdict(dict))
    writers: dict = field(default_factory=lambda: defaultdict(dict))

    def __post_init__(self):
        self.addresses = itertools.count(1)
        self.queues = {name: self.simulation.queue() for name in STREAMS}
        names = (*ARRAYS, *COUNTERS, *MEMORY)
        self.arrays = {name: Array(next(self.addresses)) for name in names}
        self.of_graphs = {"x0": self.arrays["x0"], "x1": self.arrays["x1"], "x2": self.arrays["x2"]}
        self.of_views = dict(self.of_graphs)
        self.events, self.launches, self.line = {}, {}, 0

    def run(self, steps):
        for self.line, (name, arguments) in enumerate(steps, FIRST_LINE):
            getattr(self, name)(*arguments)
        return self

    # operations

    def op(self, stream, *, reads=(), writes=(), maybe=(), update=None, after=None, named=None):
        """``reads``, ``writes`` and ``maybe`` are parts of arrays; ``named`` is the array that was named, if it is one."""
        op = self.simulation.submit(
            str(self.line), self.queues[stream], reads=reads, writes=[*writes, *maybe], after=after
        )
        self.maybe[op], self.updates[op] = frozenset(maybe), update
        for base in {part.base for part in (*reads, *writes, *maybe)} if named is None else {named}:
            merge(self.users[base], op.clock)
        for base in {part.base for part in (*writes, *maybe)} if named is None else {named}:
            merge(self.writers[base], op.clock)
        return op

    # kernels

    def write(self, array, begin, end, stream):
        self.op(stream, writes=self.arrays[array].part(begin, end))

    def read(self, array, begin, end, stream):
        self.op(stream, reads=self.arrays[array].part(begin, end))

    def copy(self, array, begin, end, target, stream):
        self.op(stream, reads=self.arrays[array].part(begin, end), writes=self.arrays[target].part(begin, end))

    def every(self, array, first, step, stream):
        self.op(stream, writes=self.arrays[array].part(first, SIZE, step))

    def whole_view(self, view, stream):
        array, begin, end = VIEWS[view]
        self.op(stream, writes=self.of_views[array].part(begin, end), named=view)

    def clip(self, array, stream):
        whole = self.arrays[array].part()
        self.op(stream, reads=whole, maybe=whole)

    def count(self, counter, stream):
        self.op(stream, writes=self.arrays[counter].part(0, 8), update="add")

    def largest(self, counter, stream):
        self.op(stream, writes=self.arrays[counter].part(0, 8), update="max")

    def clear(self, counter, stream):
        self.op(stream, writes=self.arrays[counter].part(0, 8))

    def launch(self, graph, stream):
        """The nodes of a graph come in their order, and after all earlier launches of the same graph."""
        arrays, after = self.of_graphs, self.launches.get(graph, {})
        if graph == "g0":
            reads, writes = arrays["x0"].part(4, 12), [*arrays["x0"].part(0, 8), *arrays["x1"].part(4, 12)]
            op = self.op(stream, reads=reads, writes=writes, after=after)
        else:
            self.op(stream, writes=arrays["x2"].part(8, 24), after=after)
            op = self.op(stream, writes=self.arrays["c0"].part(0, 8), update="add")
            for clocks in (self.users, self.writers):  # a launch is one piece of work
                merge(clocks[arrays["x2"].base], op.clock)
        self.launches[graph] = dict(op.clock)

    # copies and fills, which are ordered themselves

    def fill(self, array, stream):
        whole = self.arrays[array]
        self.op(stream, writes=whole.part(), after=self.users[whole.base])

    upload = fill

    def copy_from(self, array, target, stream):
        source, whole = self.arrays[array], self.arrays[target]
        after = dict(self.writers[source.base])
        merge(after, self.users[whole.base])
        self.op(stream, reads=source.part(), writes=whole.part(), after=after)

    def element(self, array, index):
        self.slice(array, index, index + 1)

    def slice(self, array, begin, end):
        whole = self.arrays[array]
        self.op("main", writes=whole.part(begin, end), after=self.users[whole.base])

    def fetch(self, array, index):
        self._fetched(array, "main", index, index + 1)

    def download(self, array, stream):
        self._fetched(array, stream, 0, SIZE)

    def _fetched(self, array, stream, begin, end):
        whole = self.arrays[array]
        op = self.op(stream, reads=whole.part(begin, end), after=self.writers[whole.base])
        self.simulation.observe(op.clock)

    def to_host(self, array, begin, end, stream):
        """A kernel that writes an array of NumPy's returns when that is written."""
        self.read(array, begin, end, stream)
        self.simulation.observe(self.queues[stream].clock)

    # order

    def record(self, event, stream):
        self.events[event] = self.op(stream)

    def wait(self, event, stream):
        if event in self.events:
            self.simulation.submit("wait", self.queues[stream], awaits=self.events[event])

    def edge(self, event, stream, waiting):
        self.record(event, stream)
        self.wait(event, waiting)

    def event_sync(self, event):
        if event in self.events:
            self.simulation.observe(self.events[event].clock)

    def stream_sync(self, stream):
        self.simulation.observe(self.queues[stream].clock)

    def sync(self):
        for op in self.simulation.ops:
            self.simulation.observe(op.clock)

    # memory

    def renew_array(self, array, stream):
        """Graphs and views keep the memory that they have."""
        self.arrays[array] = Array(next(self.addresses))

    def renew_stream(self, stream):
        self.queues[stream] = self.simulation.queue()

    def use_memory(self, memory, stream):
        self.op(stream, writes=self.arrays[memory].part())

    def free(self, memory):
        self.op("main", writes=self.arrays[memory].part())

    # what is found

    def pairs(self):
        """The lines of all pairs that nothing orders, of accesses that certainly meet, and of those that may."""
        certain, any_ = set(), set()
        for first, second in self.simulation.races():
            if self.updates.get(first) == self.updates.get(second) is not None:
                continue
            lines = (int(first.kind), int(second.kind))
            any_.add(lines)
            if self._certain(first, second):
                certain.add(lines)
        return certain, any_

    def _certain(self, first, second):
        one, two = ({*op.writes} - self.maybe[op] for op in (first, second))
        return bool(one & two or one & {*second.reads} or two & {*first.reads})

    def first_races(self):
        """For each element that is raced for, the lines of the first access that races, and of its partners."""
        accesses = defaultdict(list)
        for op in self.simulation.ops:
            for part in {*op.reads, *op.writes}:
                accesses[part].append(op)
        found = set()
        for part, ops in accesses.items():
            for k, second in enumerate(ops):
                partners = [first for first in ops[:k] if self._race_at(part, first, second)]
                if partners:
                    found.add((frozenset(int(first.kind) for first in partners), int(second.kind)))
                    break
        return found

    def _race_at(self, part, first, second):
        written = part in first.writes or part in second.writes
        commute = self.updates.get(first) == self.updates.get(second) is not None
        return written and not commute and not ordered(first, second)
