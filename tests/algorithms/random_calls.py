"""Calls of ``qp.algorithms`` at random, one after another, and what NumPy makes of the same numbers.

Each program is drawn by its number: arrays of any type, shape and layout, and calls that take them and each other's
results.  ``python tests/algorithms/random_calls.py --count 1000`` compares with NumPy; ``--mode same`` compares ways to
run them with each other, ``--mode device --arch cuda`` a GPU with the CPU.  With ``--subnormals`` a third of the floats
are subnormal numbers.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numbers_of_tests import ALL, numbers, with_subnormals

import quadpy as qp

al = qp.algorithms
TYPES = {
    np.dtype(t): getattr(qp, name)
    for t, name in zip(
        ALL, ("u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"), strict=True
    )
}
LENGTHS = (0, 1, 2, 3, 31, 32, 33, 64, 100, 255, 257, 1000, 4097, 9000)
SHAPES = ((1, 1), (5, 7), (40, 3), (3, 300), (0, 4), (2, 3, 4), (33, 1, 5))
FORMS = ("array", "array", "array", "field", "NumPy", "strided", "backwards", "by columns", "read-only")


@qp.func
def last_set(a, b):
    return qp.select(b != 0, b, a)


@qp.func
def plus(a, b):
    return a + b


FUNCTIONS = {"last_set": last_set, "plus": plus}


@dataclass
class Call:
    """``run`` gets the arrays so far and options, ``expected`` their numbers; both give a tuple, None where NumPy says nothing.

    ``counted`` says that the last result counts the elements of the others that mean something.
    """

    text: str
    run: Callable[[list, dict], tuple]
    expected: Callable[[list], tuple]
    counted: bool = False


@dataclass
class Program:
    inputs: list[np.ndarray]
    forms: list[str]
    calls: list[Call] = field(default_factory=list)

    def __str__(self):
        inputs = enumerate(zip(self.inputs, self.forms, strict=True))
        given = [f"x{k}: {x.dtype} {x.shape}, {form}" for k, (x, form) in inputs]
        return "\n".join([*given, *(call.text for call in self.calls)])

    def expected(self):
        values, results = [x.copy() for x in self.inputs], []
        with np.errstate(all="ignore"):
            for call in self.calls:
                results.append(call.expected(values))
                values.append(results[-1][0])
        return results

    def called(self, way="plain"):
        """What the calls give, as NumPy arrays: in their order, on a stream, or in a graph."""
        arrays = [placed(x, form) for x, form in zip(self.inputs, self.forms, strict=True)]
        results = []

        def run(**options):
            for call in self.calls:
                found = call.run(arrays, options)
                results.append(found)
                arrays.append(found[0])

        if way == "stream":
            with qp.create_stream() as stream:
                qp.sync()
                run(stream=stream)
                stream.synchronize()
        elif way == "graph":
            arrays[:] = [placed(np.asarray(x), "array") if isinstance(x, np.ndarray) else x for x in arrays]
            qp.sync()
            with qp.graph.capture() as graph:
                run()
            with graph.instantiate() as executable:
                executable.launch()
                qp.sync()
                return [read(call, found) for call, found in zip(self.calls, results, strict=True)]
        else:
            run()
        return [read(call, found) for call, found in zip(self.calls, results, strict=True)]


def read(call, found):
    found = [np.array(x.to_numpy() if hasattr(x, "to_numpy") else x) for x in found]
    if call.counted:
        found[:-1] = [x[: int(found[-1])] for x in found[:-1]]
    return tuple(found)


def placed(x, form):
    """The numbers as an argument of a call."""
    if form in ("array", "field"):
        made = qp.ndarray(TYPES[x.dtype], x.shape) if form == "array" else qp.field(TYPES[x.dtype], x.shape)
        made.from_numpy(x)
        return made
    if form == "strided":
        room = np.zeros([2 + 3 * n for n in x.shape], x.dtype)
        view = room[tuple(slice(1, 1 + 3 * n, 3) for n in x.shape)]
        view[...] = x
        return view
    copy = np.asfortranarray(x) if form == "by columns" else x.copy()
    if form == "backwards":
        turned = tuple(slice(None, None, -1) for _ in x.shape)
        return copy[turned].copy()[turned]
    copy.flags.writeable = form != "read-only"
    return copy


# What NumPy makes of the same numbers.


def order(x, descending=False):
    """The places of the last axis's numbers in stable order; NaNs are the greatest."""
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    return (x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable"))[..., ::-1]


def wide(t):
    return np.dtype({"b": np.int64, "i": np.int64, "u": np.uint64}.get(t.kind, t))


def ranks(x, op):
    """Integers in the order of the numbers: -0 is below 0, and a NaN loses."""
    if x.dtype.kind != "f":
        return x.view(np.uint8) if x.dtype.kind == "b" else x
    bits = x.view(f"i{x.itemsize}")
    info = np.iinfo(bits.dtype)
    places = np.where(bits < 0, info.min - bits - 1, bits)
    return np.where(x != x, info.max if op == "min" else info.min, places).astype(bits.dtype)


def numbers_of(places, t):
    """The numbers of ``ranks``."""
    if t.kind != "f":
        return places.view(t)
    info = np.iinfo(places.dtype)
    numbers = np.where(places < 0, info.min - places - 1, places).astype(places.dtype).view(t)
    return np.where((places == info.max) | (places == info.min), np.array(np.nan, t), numbers)


def heads(x):
    """Where a run of equal numbers begins."""
    x = x.reshape(-1)
    return np.concatenate([[True], (x[1:] != x[:-1]) & ~((x[1:] != x[1:]) & (x[:-1] != x[:-1]))])[: x.size]


def accumulated(x, op, axis=0):
    """Running results, or None where the order of operations decides."""
    if op == "last_set":
        out = np.moveaxis(x.copy(), axis, 0)
        for n in range(1, len(out)):
            out[n] = np.where(out[n] != 0, out[n], out[n - 1])
        return np.moveaxis(out, 0, axis)
    if op in ("min", "max"):
        return numbers_of({"min": np.minimum, "max": np.maximum}[op].accumulate(ranks(x, op), axis), x.dtype)
    if x.dtype.kind == "f":
        return None
    f = np.multiply if op == "mul" else np.add
    return f.accumulate(x, axis, x.dtype if op == "plus" else wide(x.dtype))


def start(t, op):
    """What an exclusive scan begins with."""
    if op not in ("min", "max"):
        return op == "mul"
    if t.kind == "f":
        return np.inf if op == "min" else -np.inf
    if t.kind == "b":
        return op == "min"
    return np.iinfo(t).max if op == "min" else np.iinfo(t).min


def scanned(x, op, axis, *, exclusive):
    """As ``accumulated``, or of what comes before each number."""
    if exclusive and x.shape[axis]:
        first = np.full_like(np.take(x, [0], axis), start(x.dtype, op))
        x = np.concatenate([first, np.delete(x, -1, axis)], axis)
    return accumulated(x, op, axis)


class Maker:
    """Draws a program."""

    def __init__(self, seed, *, subnormals=False):
        self.rng, self.subnormals = random.Random(seed), subnormals
        self.numbers = np.random.default_rng(seed)
        self.known: list[np.ndarray] = []
        self.program = Program([], [])

    def pick(self, options):
        return self.rng.choice(options)

    def make(self):
        for _ in range(self.pick((1, 2, 3))):
            shape = (self.pick(LENGTHS),) if self.pick((0, 0, 1)) == 0 else self.pick(SHAPES)
            x = numbers(self.numbers, self.pick(ALL), int(np.prod(shape)))
            if self.subnormals:
                x = with_subnormals(self.numbers, x)
            if self.pick((0, 0, 1)):
                x = np.repeat(x, 5)[: x.size]
            form = self.pick(FORMS)
            self.program.inputs.append(x.reshape(shape))
            self.program.forms.append(form if x.size or form != "field" else "array")
        self.known = list(self.program.inputs)
        for _ in range(self.pick((1, 2, 2, 3, 4))):
            call = self.pick([
                self.reduced, self.place, self.scanned, self.scanned_by_key, self.by_key, self.ordered, self.ordered_pairs,
                self.segmented, self.taken, self.distinct, self.runs, self.binned, self.counted, self.shuffled,
                self.permuted,
            ])()  # fmt: skip
            self.program.calls.append(call)
            with np.errstate(all="ignore"):
                result = call.expected(self.known)[0]
            if result is None:
                break  # nothing can be said of what takes it
            self.known.append(np.ascontiguousarray(result).reshape(np.shape(result)))
        return self.program

    def input(self, accepts=lambda x: True):
        """The number of an array, a new one if none will do."""
        usable = [k for k, x in enumerate(self.known) if accepts(x) and not self.was_counted(k)]
        return self.pick(usable or [None])

    def was_counted(self, k):
        """Whether the array is a result whose length only the device knows."""
        at = k - len(self.program.inputs)
        return at >= 0 and self.program.calls[at].counted

    def twin(self, k, accepts=lambda x: True):
        """An array of as many numbers."""
        return self.input(lambda x: x.size == self.known[k].size and accepts(x))

    def call(self, name, expected, *arrays, counted=False, **options):
        given = ", ".join([*(f"x{k}" for k in arrays), *(f"{k}={v!r}" for k, v in options.items())])
        options = {k: FUNCTIONS.get(v, v) if isinstance(v, str) else v for k, v in options.items()}

        def run(known, others):
            found = getattr(al, name)(*(known[k] for k in arrays), **options, **others)
            return tuple(found) if isinstance(found, tuple) else (found,)

        return Call(f"x{len(self.known)} = al.{name}({given})", run, expected, counted)

    def operator(self, x):
        """An operator for numbers such as those of ``x``; 0 is not an identity of ``last_set`` if ``x`` has a -0."""
        also = {"b": (), "f": ("plus",)}.get(x.dtype.kind, ("plus", "last_set"))
        op = self.pick(("add", "add", "mul", "min", "max", *also))
        return op, {"op": op} | ({"identity": 0} if op in FUNCTIONS else {})

    def axis(self, x):
        return self.pick([None, *range(-x.ndim, x.ndim)]) if x.ndim else None

    def reduced(self):
        k = self.input()
        axis, (op, options) = self.axis(self.known[k]), self.operator(self.known[k])
        if op in ("min", "max") and not (self.known[k].size if axis is None else self.known[k].shape[axis]):
            op, options = "add", {"op": "add"}

        def expected(known):
            x = known[k].reshape(-1) if axis is None else known[k]
            along = -1 if axis is None else axis
            if not x.shape[along]:
                t = x.dtype if op in FUNCTIONS or x.dtype.kind == "f" else wide(x.dtype)
                return (np.full(x.sum(along).shape, op == "mul", t),)
            running = accumulated(x, op, along)
            return (None if running is None else np.take(running, -1, along),)

        return self.call("reduce", expected, k, axis=axis, **options)

    def place(self):
        k = self.input(lambda x: x.size)
        if k is None:
            return self.shuffled()
        name, axis = self.pick(("argmin", "argmax")), self.axis(self.known[k])

        def expected(known):
            x = known[k].reshape(-1) if axis is None else known[k]
            place = np.argmin if name == "argmin" else np.argmax
            return (
                np.asarray(place(ranks(x + x.dtype.type(0), name[3:]), -1 if axis is None else axis), np.int64),
            )  # -0 is 0

        return self.call(name, expected, k, axis=axis)

    def scanned(self):
        k = self.input(lambda x: x.ndim)
        if k is None:
            return self.shuffled()
        x = self.known[k]
        axis, (op, options) = self.pick(range(-x.ndim, x.ndim)), self.operator(x)
        exclusive = self.pick((False, True))

        def expected(known):
            return (scanned(known[k], op, axis, exclusive=exclusive),)

        return self.call("exclusive_scan" if exclusive else "inclusive_scan", expected, k, axis=axis, **options)

    def scanned_by_key(self):
        k = self.input(lambda x: x.ndim)
        v = None if k is None else self.twin(k)
        if v is None:
            return self.shuffled()
        op, options = self.operator(self.known[v])
        exclusive = self.pick((False, True))

        def expected(known):
            x, out = known[v].reshape(-1), []
            for part in np.split(x, np.flatnonzero(heads(known[k]))[1:]):
                out.append(scanned(part, op, 0, exclusive=exclusive))
            return (None if out[0] is None else np.concatenate(out),)

        return self.call("exclusive_scan_by_key" if exclusive else "inclusive_scan_by_key", expected, k, v, **options)

    def by_key(self):
        k = self.input(lambda x: x.size)
        v = None if k is None else self.twin(k)
        if v is None:
            return self.shuffled()
        op, options = self.operator(self.known[v])

        def expected(known):
            x, starts = known[v].reshape(-1), np.flatnonzero(heads(known[k]))
            ends = [accumulated(part, op) for part in np.split(x, starts[1:])]
            values = None if ends[0] is None else np.array([e[-1] for e in ends], ends[0].dtype)
            return known[k].reshape(-1)[starts], values, np.int64(len(starts))

        return self.call("reduce_by_key", expected, k, v, counted=True, **options)

    def ordered(self):
        k = self.input(lambda x: x.ndim)
        if k is None:
            return self.shuffled()
        axis, descending = self.pick(range(-self.known[k].ndim, self.known[k].ndim)), self.pick((False, True))
        name = self.pick(("sort", "argsort"))

        def expected(known):
            x = np.moveaxis(known[k], axis, -1)
            places = order(x, descending)
            found = places.astype(np.int64) if name == "argsort" else np.take_along_axis(x, places, -1)
            return (np.moveaxis(found, -1, axis),)

        return self.call(name, expected, k, axis=axis, descending=descending)

    def ordered_pairs(self):
        k = self.input(lambda x: x.ndim)
        v = None if k is None else self.input(lambda x: x.shape == self.known[k].shape)
        if v is None:
            return self.shuffled()
        descending = self.pick((False, True))

        def expected(known):
            places = order(known[k], descending)
            return tuple(np.take_along_axis(x, places, -1) for x in (known[k], known[v]))

        return self.call("sort_pairs", expected, k, v, descending=descending)

    def segmented(self):
        k = self.input(lambda x: x.ndim == 1)
        if k is None:
            return self.shuffled()
        n, descending = self.known[k].size, self.pick((False, True))
        ends = np.sort(self.numbers.integers(0, n + 1, self.pick((2, 3, 9)))).astype(self.pick((np.int32, np.int64)))
        ends[[0, -1]] = 0, n

        def expected(known):
            parts = np.split(known[k], ends[1:-1])
            return (np.concatenate([part[order(part, descending)] for part in parts]),)

        return self.call("sort", expected, k, segments=ends, descending=descending)

    def taken(self):
        k = self.input(lambda x: x.ndim)
        v = None if k is None else self.twin(k, lambda x: x.dtype.kind in "biu")
        if v is None:
            return self.shuffled()
        name = self.pick(("select", "partition"))

        def expected(known):
            x, flags = known[k].reshape(-1), known[v].reshape(-1) != 0
            found = x[flags] if name == "select" else np.concatenate([x[flags], x[~flags]])
            return found[: flags.sum()], np.int64(flags.sum())

        return self.call(name, expected, k, v, counted=True)

    def distinct(self):
        k = self.input()
        name = self.pick(("unique", "unique_consecutive"))

        def expected(known):
            x = known[k].reshape(-1)
            x = x[order(x)] if name == "unique" else x
            return x[heads(x)], np.int64(heads(x).sum())

        return self.call(name, expected, k, counted=True)

    def runs(self):
        k = self.input()

        def expected(known):
            x = known[k].reshape(-1)
            starts = np.flatnonzero(heads(x))
            return x[starts], np.diff(np.append(starts, x.size)), np.int64(len(starts))

        return self.call("run_length_encode", expected, k, counted=True)

    def binned(self):
        k = self.input(lambda x: x.dtype not in (np.bool_, np.float16))
        if k is None:
            return self.shuffled()
        bins, limits = self.pick((1, 7, 300)), self.pick(((0, 1), (-50.5, 200), (3, 3)))

        def expected(known):
            x = known[k].reshape(-1).astype(np.float64)
            return np.histogram(x[x == x], bins, limits)

        return self.call("histogram", expected, k, bins=bins, range=limits)

    def counted(self):
        k = self.input(lambda x: x.dtype.kind in "iu" and x.dtype != np.uint64)
        if k is None:
            return self.shuffled()
        length = self.pick((0, 1, 5, 300))

        def expected(known):
            x = known[k].reshape(-1)
            return (np.bincount(x[(x >= 0) & (x < length)].astype(np.int64), minlength=length),)

        return self.call("bincount", expected, k, length=length)

    def shuffled(self):
        """What is drawn, too, where another call finds no input."""
        return self.call("shuffle", lambda known: (None,), self.input(lambda x: x.ndim), seed=self.rng.randrange(5))

    def permuted(self):
        n, seed = self.pick(LENGTHS), self.rng.randrange(2**64)
        return self.call("permutation", lambda known: (None,), n=n, seed=seed)


# What is asked of each program: None, or what is wrong.


def difference(found, expected):
    """Where results differ, or None: the same bits are asked for, but that all NaNs are one."""
    for number, (row, wanted) in enumerate(zip(found, expected, strict=True)):
        for part, (x, y) in enumerate(zip(row, wanted, strict=True)):
            if y is None:
                continue
            y = np.asarray(y)  # a number as an array without axes
            if x.dtype != y.dtype or x.shape != y.shape:
                return f"call {number}, result {part}: {x.dtype} {x.shape}, not {y.dtype} {y.shape}"
            equal = np.frombuffer(x.tobytes(), f"V{x.itemsize}") == np.frombuffer(y.tobytes(), f"V{x.itemsize}")
            if x.dtype.kind == "f":
                equal |= (np.isnan(x) & np.isnan(y)).reshape(-1)
            if not equal.all():
                at = int(np.argmin(equal))
                return f"call {number}, result {part}, place {at}: {x.reshape(-1)[at]!r}, not {y.reshape(-1)[at]!r}"
    return None


def computes(program, arch):
    """What NumPy says."""
    qp.init(arch=arch, cpu_max_num_threads=2)
    return difference(program.called(), program.expected())


def same_bits(program, arch):
    """One thread and three, on a stream, in a graph, with checks."""
    qp.init(arch=arch, cpu_max_num_threads=1)
    expected = program.called()
    for way, options in (("plain", {}), ("stream", {}), ("graph", {}), ("plain", {"debug": True})):
        qp.init(arch=arch, cpu_max_num_threads=3, **options)
        try:
            found = program.called(way)
        except qp.KernelOverflowError:
            continue  # sums and products of users' numbers may overflow
        if wrong := difference(found, expected):
            return f"{way} {options}: {wrong}"
    return None


def device_bits(program, arch):
    """A GPU and the CPU."""
    qp.init(arch="cpu")
    expected = program.called()
    qp.init(arch=arch)
    return difference(program.called(), expected)


MODES = {"exact": computes, "same": same_bits, "device": device_bits}


def program_of(seed, *, subnormals=False):
    return Maker(seed, subnormals=subnormals).make()


def failure(seed, mode, arch, *, subnormals=False):
    """What is wrong with the program of that number, and the program; None if nothing is."""
    program = program_of(seed, subnormals=subnormals)
    try:
        wrong = MODES[mode](program, arch)
    except Exception:  # noqa: BLE001  (whatever a call raises is a finding)
        wrong = traceback.format_exc()
    return wrong and f"calls {seed}, {mode}: {wrong}\n{program}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--mode", choices=MODES, default="exact")
    parser.add_argument("--arch", default="cpu", help="the backend, for --mode device a GPU's: cuda or amdgpu")
    parser.add_argument("--subnormals", action="store_true", help="subnormal numbers among the floats")
    given = parser.parse_args()
    failed = []
    for seed in range(given.first, given.first + given.count):
        if wrong := failure(seed, given.mode, given.arch, subnormals=given.subnormals):
            failed.append(seed)
            print(wrong, flush=True)
    print(f"{given.count} programs, {given.mode}: {len(failed)} failures {failed}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
