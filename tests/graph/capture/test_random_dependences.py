"""Random functions that read what changes between their calls: a replay gives the same bytes as the function itself.

``--random-graphs=N`` tries N functions with each device.
"""

from __future__ import annotations

from random import Random

import numpy as np

import quadpy as qp

SIZES = (1, 3, 3)
SETUP = """
from types import SimpleNamespace
class Base:
    base = 1
class Thing(Base):
    shared = 1
    @property
    def twice(self):
        return 2 * self.own
    def method(self):
        return self.own + helper()
def cell(value):
    def read():
        return value
    def write(new):
        nonlocal value
        value = new
    return read, write
read, write = cell(1)
def helper(extra=1):
    return extra + number
def nested(v, x):
    add(v + number, x)
    if things[0] > 2:
        add(things[0], x)
number, thing, things, table = 1, Thing(), [1, 2], {"k": 1}
thing.own = 1
kernel = add
"""
READS = (
    "number", "thing.own", "thing.twice", "thing.shared", "thing.base", "thing.method()", "things[0]", "len(things)",
    "table['k']", "table.get('k')", "read()", "helper()", "a", "k", "int(numbers[0])", "3",
)  # fmt: skip
CHANGES = (
    "number = new", "thing.own = new", "Thing.shared = new", "Base.base = new", "things[0] = new", "things.append(new)",
    "del things[1:]", "table['k'] = new", "write(new)", "helper.__defaults__ = (new,)", "numbers[0] = new",
    "arrays['z'], arrays['w'] = arrays['w'], arrays['z']", "thing = Thing(); thing.own = new", "kernel = add",
    "kernel = twice", "spare.fill(new)", "Thing.method = lambda self: new",
)  # fmt: skip


def statement(random, depth=0):
    """A statement of the function, as a list of lines."""
    value, other = random.choice(READS), random.choice(READS)
    x, y = (random.choice(("x", "y", "arrays['z']", "arrays['w']", "t")) for _ in range(2))
    kind = random.randrange(10 if depth < 2 else 7)
    if kind >= 7:
        head = random.choice((f"if ({value}) % 2:", f"for k in range(({value}) % 3):"))
        return [head, *(f"    {line}" for _ in range(2) for line in statement(random, depth + 1))]
    return [
        (
            f"add({value}, {x})",
            f"mix({value}, {x}, {y})",
            f"kernel({value}, {x})",
            f"nested({value}, {x})",
            f"{x}.fill({value})",
            f"{x}.copy_from(spare) if {x}.shape == spare.shape else add({value} + {other}, {y})",
            f"t = qp.ndarray(qp.i32, 3 + ({value}) % 2)",
        )[kind]
    ]


def source(random):
    lines = [line for _ in range(random.randrange(2, 8)) for line in statement(random)]
    body = "\n".join(f"    {line}" for line in ["k = 0", "t = qp.ndarray(qp.i32, 3)", *lines, "return t"])
    return f"def step(a, x, y):\n{body}\n"


class Twin:
    """One of two equivalent forms."""

    def __init__(self, here, text, wrap):
        self.space = {name: getattr(here, name) for name in ("add", "mix", "twice")}
        self.made = [here.array(*range(n)) for n in (*SIZES, *SIZES)]
        z, w, *self.given = self.made
        self.space |= {"qp": qp, "numbers": np.ones(1, np.int64), "arrays": {"z": z, "w": w}, "spare": self.given[-1]}
        exec(SETUP + text, self.space)
        self.step = wrap(self.space["step"])

    def call(self, a, x, y):
        found = self.step(a, self.given[x], self.given[y]).to_numpy().tobytes()
        return found, [array.to_numpy().tobytes() for array in self.made]

    def change(self, text, new):
        self.space["new"] = new
        exec(text, self.space)


def test_a_replay_follows_whatever_changes(here, request):
    count = request.config.getoption("--random-graphs")
    states = set()
    for seed in range(count if here.is_cpu or here.is_simulated else min(count, 3)):
        random = Random(seed)
        text = source(random)
        twins = [Twin(here, text, wrap) for wrap in (lambda step: step, qp.graph.replay)]
        for _ in range(14):
            for _ in range(random.choice((0, 0, 1, 2))):
                change, new = random.choice(CHANGES), random.randrange(-3, 6)
                for twin in twins:
                    twin.change(change, new)
            call = random.randrange(-2, 3), random.randrange(4), random.randrange(4)
            expected, found = (twin.call(*call) for twin in twins)
            assert found == expected, f"seed {seed}, called with {call}:\n{text}"
            here.without_races()
        step = twins[1].step
        states.add(step.state)
        step.clear()
    assert "captured" in states
