"""Changes what a replayed function depends on between its calls: the results stay those of the function itself."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import pytest
from backends import backends

import quadpy as qp

# the setup, the body of the function, and how its dependence is changed to ``new``
CASES = {
    "a global": ("v = 1", "add(v, x)", "v = new"),
    "a global that is deleted and made": ("v = 1", "add(v, x)", "del v; v = new"),
    "a global that hides a built-in": ("", "add(len('ab'), x)", "len = lambda _: new"),
    "a built-in": ("import builtins; builtins.qp_v = 1", "add(qp_v, x)", "builtins.qp_v = new"),
    "a global array": ("y = x", "add(1, y)", "y = other()"),
    "a name in locals of exec": ("code = compile('add(v, x)', 'c', 'exec'); v = 1", "exec(code)", "v = new"),
    "a cell": (
        "def make():\n v = 1\n def read(): return v\n def write(n):\n  nonlocal v\n  v = n\n return read, write\nread, write = make()",
        "add(read(), x)",
        "write(new)",
    ),
    "a cell of an argument": (
        "def make():\n v = 1\n def use(x): add(v, x)\n def write(n):\n  nonlocal v\n  v = n\n return use, write\nuse, write = make()",
        "[use][0](x)",
        "write(new)",
    ),
    "a default": ("def helper(v=1): add(v, x)", "helper()", "helper.__defaults__ = (new,)"),
    "a mutable default": ("def helper(v=[1]): add(v[0], x)", "helper()", "helper.__defaults__[0][0] = new"),
    "a keyword's default": ("def helper(*, v=1): add(v, x)", "helper()", "helper.__kwdefaults__ = {'v': new}"),
    "the code of a helper": (
        "def helper(): add(1, x)\ndef other_helper(): add(2, x)",
        "helper()",
        "helper.__code__ = other_helper.__code__ if new % 2 else (lambda: add(3, x)).__code__",
    ),
    "a helper that is replaced": ("def helper(): add(1, x)", "helper()", "def helper(k=new): add(k, x)"),
    "a global of a replaced helper": ("v = 1\ndef helper(): add(v, x)", "helper()", "def helper(): add(v, x)\nv = new"),
    "a kernel that is replaced": ("k = add", "k(2, x)", "k = twice if new % 2 else add"),
    "a kernel in a dict": ("ks = {'k': add}", "ks['k'](2, x)", "ks['k'] = twice if new % 2 else add"),
    "a partial": ("from functools import partial; p = partial(add, 1)", "p(x)", "p = partial(add, new)"),
    "a partial's keywords": (
        "from functools import partial\ndef h(x, v): add(v, x)\np = partial(h, v=1)", "p(x)", "p.keywords['v'] = new",
    ),
    "an attribute of a module": (
        "import types; m = types.ModuleType('m'); m.v = 1", "add(m.v, x)", "m.v = new",
    ),
    "a module's __getattr__": (
        "import types; m = types.ModuleType('m'); d = [1]; m.__getattr__ = lambda name: d[0]", "add(m.v, x)", "d[0] = new",
    ),
    "an attribute of a class": ("class C: v = 1", "add(C.v, x)", "C.v = new"),
    "an attribute of a base class": ("class B: v = 1\nclass C(B): pass", "add(C().v, x)", "B.v = new"),
    "an attribute of a metaclass": ("class M(type): v = 1\nclass C(metaclass=M): pass", "add(C.v, x)", "M.v = new"),
    "an attribute of an object": ("class C: pass\nc = C(); c.v = 1", "add(c.v, x)", "c.v = new"),
    "an attribute that hides that of the class": ("class C: v = 1\nc = C()", "add(c.v, x)", "c.v = new"),
    "a chain of attributes": (
        "class C: pass\nc = C(); c.d = C(); c.d.v = 1", "add(c.d.v, x)", "old = c.d; c.d = C(); c.d.v = new",
    ),
    "a slot": ("class C: __slots__ = ('v',)\nc = C(); c.v = 1", "add(c.v, x)", "c.v = new"),
    "a property": ("n = 1\nclass C:\n v = property(lambda self: n)\nc = C()", "add(c.v, x)", "n = new"),
    "a descriptor": (
        "class D:\n n = 1\n def __get__(self, *_): return self.n\nclass C: v = D()", "add(C().v, x)", "D.n = new",
    ),
    "__getattr__": ("d = {'v': 1}\nclass C:\n def __getattr__(self, n): return d[n]\nc = C()", "add(c.v, x)", "d['v'] = new"),
    "__getattribute__": (
        "n = 1\nclass C:\n def __getattribute__(self, name): return n\nc = C()", "add(c.v, x)", "n = new",
    ),
    "a class that an object changes to": (
        "class A: v = 1\nclass B: v = 5\nc = A()", "add(c.v, x)", "B.v = new; c.__class__ = B",
    ),
    "a method that is replaced": ("class C:\n def f(self): return 1\nc = C()", "add(c.f(), x)", "C.f = lambda self: new"),
    "a static method's global": ("n = 1\nclass C:\n @staticmethod\n def f(): return n", "add(C.f(), x)", "n = new"),
    "a class method": ("class C:\n v = 1\n @classmethod\n def f(cls): return cls.v", "add(C.f(), x)", "C.v = new"),
    "an attribute of a function": ("def f(): return f.v\nf.v = 1", "add(f(), x)", "f.v = new"),
    "a callable object": ("class C:\n v = 1\n def __call__(self): return self.v\nc = C()", "add(c(), x)", "c.v = new"),
    "a list": ("d = [1]", "add(d[0], x)", "d[0] = new"),
    "a list's length": ("d = [1]", "add(len(d), x)", "d.append(new)"),
    "a list that arrays are in": ("d = [x]", "add(1, d[0])", "d[0] = other()"),
    "a dict": ("d = {'v': 1}", "add(d['v'], x)", "d['v'] = new"),
    "a dict's get": ("d = {'v': 1}; get = d.get", "add(get('v'), x)", "d['v'] = new"),
    "the order of a dict": ("d = dict(a=1, b=2)", "add(next(iter(d.values())), x)", "d['a'] = d.pop('a') + new; d['b'] = d.pop('b')"),
    "a set": ("d = {1}", "add(max(d), x)", "d.add(new)"),
    "a tuple with a list in it": ("d = ([1],)", "add(d[0][0], x)", "d[0][0] = new"),
    "a subclass of list": ("class L(list): v = 1\nd = L()", "add(d.v, x)", "d.v = new"),
    "a subclass of dict": ("class D(dict):\n def __missing__(self, k): return n\nn = 1; d = D()", "add(d['v'], x)", "n = new"),
    "a subclass of int": (
        "class I(int):\n def __index__(self): return self.v\ni = I(1); i.v = 1", "add(i.__index__(), x)", "i.v = new",
    ),
    "a dataclass's field": (
        "from dataclasses import dataclass\n@dataclass\nclass C:\n v: int\nc = C(1)", "add(c.v, x)", "c.v = new",
    ),
    "an attribute of a dataclass that is no field": (
        "from dataclasses import dataclass\n@dataclass\nclass C:\n w: int\nc = C(1); c.v = 1", "add(c.v, x)", "c.v = new",
    ),
    "a frozen dataclass's field": (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass C:\n v: int\nc = C(1)",
        "add(c.v, x)",
        "object.__setattr__(c, 'v', new)",
    ),
    "a method of a frozen dataclass": (
        "from dataclasses import dataclass\nn = 1\n@dataclass(frozen=True)\nclass C:\n def f(self): return n\nc = C()",
        "add(c.f(), x)",
        "n = new",
    ),
    "a named tuple's field": (
        "from collections import namedtuple\nN = namedtuple('N', 'v'); t = N([1])", "add(t.v[0], x)", "t.v[0] = new",
    ),
    "a simple namespace": ("from types import SimpleNamespace as S; s = S(v=1)", "add(s.v, x)", "s.v = new"),
    "an enumeration": (
        "import enum\nclass E(enum.Enum): A = 1", "add(E.A.value, x)", "E.A._value_ = new",
    ),
    "a number in a NumPy array": ("a = np.ones(1, np.int32)", "add(int(a[0]), x)", "a[0] = new"),
    "a NumPy record": ("r = np.ones(1, [('v', 'i4')])[0]", "add(int(r['v']), x)", "r['v'] = new"),
    "a NumPy array without axes": ("a = np.array(1)", "add(int(a), x)", "a[...] = new"),
    "a memory view": ("m = memoryview(bytearray(b'a'))", "add(m[0], x)", "m[0] = new"),
    "a ctypes number": ("import ctypes; c = ctypes.c_int(1)", "add(c.value, x)", "c.value = new"),
    "an environment variable": ("import os; os.environ['QP_V'] = '1'", "add(int(os.environ['QP_V']), x)", "os.environ['QP_V'] = str(new)"),
    "sys.argv": ("import sys; sys.qp_v = 1", "add(sys.qp_v, x)", "sys.qp_v = new"),
    "an iterator": ("import itertools; it = itertools.count()", "add(next(it), x)", "next(it)"),
    "a generator": ("def g():\n while True: yield n\nn = 1; it = g()", "add(next(it), x)", "n = new"),
    "a context variable": (
        "import contextvars; c = contextvars.ContextVar('c'); c.set(1)", "add(c.get(), x)", "c.set(new)",
    ),
    "a thread's variable": ("import threading; t = threading.local(); t.v = 1", "add(t.v, x)", "t.v = new"),
    "a weak reference": (
        "import weakref\nclass C: v = 1\nc = C(); w = weakref.ref(c)", "add(w().v if w() else 0, x)", "c.v = new",
    ),
    "a cached function": (
        "import functools\nn = 1\n@functools.cache\ndef f(): return n", "add(f(), x)", "n = new; f.cache_clear()",
    ),
    "a random generator of NumPy's": ("rng = np.random.default_rng(1)", "add(int(rng.integers(9)), x)", "rng.integers(9)"),
    "a branch": ("v = 1", "add(1, x)\n if v > 2: add(v, x)", "v = new"),
    "how often a loop runs": ("v = 1", "for k in range(v): add(k, x)", "v = new"),
    "what a loop iterates over": ("d = [1]", "for k in d: add(k, x)", "d.append(new)"),
    "a fill": ("v = 1", "x.fill(v)\n add(1, x)", "v = new"),
    "numbers that are copied in": ("d = np.ones(3, np.int32)", "x.from_numpy(d)\n add(1, x)", "d[1] = new"),
    "an array that is copied from": ("y = other()", "x.copy_from(y)\n add(1, x)", "y = other(); y.fill(new)"),
    "the contents of an array": ("y = other()", "x.copy_from(y)\n add(1, x)", "y.fill(new)"),
    "a host function's arguments": ("seen = []; v = 1", "add(1, x)\n qp.graph.host_function(seen.append, v)", "v = new"),
    "an exception that is caught": (
        "d = {}", "add(1, x)\n try: add(d['v'], x)\n except KeyError: add(2, x)", "d['v'] = new",
    ),
    "what is printed": ("out = []; v = 1", "add(1, x)\n out.append(v)", "v = new"),
}  # fmt: skip


class Program:
    """Each case has a module of its own."""

    def __init__(self, here, case, wrap):
        setup, body, change = CASES[case]
        self.x, self.change = here.array(1, 2, 3), change
        self.space = {
            "np": np, "qp": qp, "add": here.add, "twice": here.twice, "x": self.x, "other": lambda: here.array(4, 5, 6),
        }  # fmt: skip
        exec(setup, self.space)
        exec(
            f"def step(x):\n {body}\n return {{k: v for k, v in globals().items() if k in ('seen', 'out')}}", self.space
        )
        self.step = wrap(self.space["step"])

    def call(self):
        result = self.step(self.space["x"])
        return result, [value.to_numpy().tobytes() for value in self.arrays()]

    def arrays(self):
        there = self.space.get("d")
        found = [self.x, self.space.get("y"), *(there if isinstance(there, list) else ())]
        return [one for one in found if isinstance(one, type(self.x))]

    def changed(self, new):
        self.space["new"] = new
        exec(self.change, self.space)


@pytest.mark.parametrize("case", CASES)
def test_what_changes_between_two_calls_is_seen(here, case):
    found = []
    for wrap in (lambda step: step, qp.graph.replay):
        program = Program(here, case, wrap)
        results = []
        for new in (None, None, 3, 3, None, 4, 8, 8, None):
            if new is not None:
                program.changed(new)
            results.append(program.call())
        found.append(results)
    assert found[0] == found[1]
    assert (program.step.state, program.step.stats.fallbacks) == ("captured", 0)


# numbers that are equal but not identical


@pytest.fixture
def cpu():
    qp.init(arch=qp.cpu)


@qp.kernel
def put(v: qp.f64, x: qp.types.ndarray(dtype=qp.f64, ndim=1)):
    for i in x:
        x[i] = v


NAN = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
PAIRS = [
    (0.0, -0.0), (0, -0.0), (False, -0.0), (np.float64(0.0), np.float64(-0.0)), (np.float32(-0.0), 0), (1, 1.0),
    (True, 1), (math.nan, float(NAN[0])), (math.nan, 1.0), (2**53, 2.0**53), (1.0, np.nextafter(1.0, 2.0)),
]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_equal_numbers_are_not_always_the_same_bits(cpu, pair):
    x, step = qp.ndarray(qp.f64, 2), qp.graph.replay(put)
    for v in (*pair, *reversed(pair), pair[1], pair[0]):
        put(v, x)
        expected = x.to_numpy().tobytes()
        step(v, x)
        assert x.to_numpy().tobytes() == expected


# compile-time values that change, in objects that stay the same


class Settings:
    value = 0


@dataclasses.dataclass
class Container:
    x: qp.types.ndarray(dtype=qp.f64, ndim=1)
    value: qp.template() = 0


@qp.data_oriented
class Solver:
    def __init__(self):
        self.value = 0

    @qp.kernel
    def put(self, x: qp.types.ndarray(dtype=qp.f64, ndim=1)):
        for i in x:
            x[i] = self.value


@qp.kernel
def put_item(values: qp.template(), x: qp.types.ndarray(dtype=qp.f64, ndim=1)):
    for i in x:
        x[i] = values[0]


@qp.kernel
def put_attribute(settings: qp.template(), x: qp.types.ndarray(dtype=qp.f64, ndim=1)):
    for i in x:
        x[i] = settings.value


@qp.kernel
def put_member(container: Container):
    for i in container.x:
        container.x[i] = container.value


def _item(x):
    values = [0]
    return functools.partial(put_item, values, x), functools.partial(values.__setitem__, 0)


def _attribute(x):
    return functools.partial(put_attribute, Settings(), x), functools.partial(setattr, Settings, "value")


def _member(x):
    container = Container(x)
    return functools.partial(put_member, container), functools.partial(setattr, container, "value")


def _of_self(x):
    solver = Solver()
    return functools.partial(solver.put, x), functools.partial(setattr, solver, "value")


@pytest.mark.parametrize("arch", backends())
@pytest.mark.parametrize("made", [_item, _attribute, _member, _of_self])
def test_compile_time_values_that_change_are_seen(arch, made):
    qp.init(arch=arch)
    x = qp.ndarray(qp.f64, 2)
    call, change = made(x)
    step = qp.graph.replay(call)
    found = []
    for value in (wanted := [1, 2, 3, 2, 1, 5, 5, 2.5, 1]):
        change(value)
        step()
        found.append(x[1])
    assert (found, step.stats.fallbacks) == (wanted, 0)


def test_what_the_function_returns_is_its_own(here):
    def step(x):
        here.add(1, x)
        return {"s": {1, 2}}, np.zeros(2), bytearray(b"ab"), iter([1, 2])

    replayed, x = qp.graph.replay(step), here.array(1)
    for _ in range(3):
        first, numbers, letters, iterator = replayed(x)
        assert (first, numbers.tolist(), letters, list(iterator)) == ({"s": {1, 2}}, [0, 0], b"ab", [1, 2])
        first["s"].add(9)
        numbers[0] = 7
        letters[0] = 122


def _generator(x):
    yield x


async def _coroutine(x):
    return x


async def _async_generator(x):
    yield x


class _Callable:
    def __call__(self, x):
        yield x


@pytest.mark.parametrize("function", [_generator, _coroutine, _async_generator, _Callable()])
def test_functions_that_run_behind_their_call_are_refused(function):
    with pytest.raises(qp.ArgumentError, match=r"is an? (generator|async) function"):
        qp.graph.replay(function)


def test_a_generator_that_a_function_returns_runs_when_it_is_asked(here):
    def parts(x):
        here.add(1, x)
        yield 1
        here.add(2, x)
        yield 2

    def step(x):
        return parts(x)

    step, x = qp.graph.replay(step), here.array(0)
    for k in range(3):
        assert list(step(x)) == [1, 2]
        assert x.to_numpy().tolist() == [3 * (k + 1)]
