"""What runs while compiling: Python functions in ``qp.static``, lambdas, comprehensions, ``match``, stars."""

from __future__ import annotations

import itertools
import random
import textwrap

import numpy as np
import pytest

import quadpy as qp

HEAD = """
import enum, functools, itertools, math, operator
F = qp.types.ndarray(qp.f64, 1)
LETTERS = "xy"
NAMES, TABLE, MODE = ["a", "b"], {"a": 1, "b": 2}, "fast"
SCALAR = qp.field(qp.f64, ())
CALLS = []

class Color(enum.Enum):
    RED = 1
    BLUE = 2

class Point:
    __match_args__ = ("x", "y")
    def __init__(self, x, y): self.x, self.y = x, y
    def area(self): return self.x * self.y

POINT = Point(3, 4)

def plain(a, b=2):
    CALLS.append(a)
    return a * b + 1

def primes(n):
    for k in range(2, n):
        if all(k % j for j in range(2, k)):
            yield k

square = lambda a: a * a
"""


def run(load, body, size=4):
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    module = load(f"{HEAD}\n@qp.kernel\ndef kernel(x: F, n: qp.i32):\n{lines}\n")
    x = np.zeros(size)
    module.kernel(x, 2)
    return x.tolist(), module


VALUES = {
    # Python functions in qp.static
    "a function": ("x[0] = qp.static(plain(3, b=4))", 13),
    "a lambda of the module": ("x[0] = qp.static(square(3))", 9),
    "a lambda in the kernel": ("x[0] = qp.static((lambda a, b=5: a + b)(2))", 7),
    "a generator": ("for k in qp.static(primes(20)): x[0] += k", 77),
    "math": ("x[0] = qp.static(math.factorial(5))", 120),
    "NumPy": ("x[0] = qp.static(np.linspace(0, 1, 5))[3]", 0.75),
    "NumPy's reductions": ("x[0] = qp.static(np.arange(5).sum())", 10),
    "a method of an object": ("x[0] = qp.static(POINT.area())", 12),
    "a class": ("x[0] = qp.static(Point(2, 5)).y", 5),
    "methods of a dict": ("for name, k in qp.static(TABLE.items()): x[0] += k * (10 if name == 'b' else 1)", 21),
    "a method of a list": ("x[0] = qp.static(NAMES.index('b'))", 1),
    "a method of text": ("x[0] = 1 if qp.static(MODE.upper() == 'FAST') else 2", 1),
    "functools": ("x[0] = qp.static(functools.reduce(operator.mul, [2, 3, 4]))", 24),
    "map": ("x[0] = qp.static(sum(map(lambda a: a * a, [1, 2, 3])))", 14),
    "sorted with a key": ("x[0] = sorted([1, 3, 2], key=lambda a: -a)[0]", 3),
    "max with a key": ("x[0] = qp.static(max([1, -3, 2], key=abs))", -3),
    "in a condition": ("if qp.static(plain(1) == 3): x[0] = 1\nelse: x[0] = x.nothing", 1),
    "of a shape": ("x[0] = qp.static(square(len(SCALAR.shape) + 2))", 4),
    "in an assertion": ("qp.static_assert(square(3) == 9, 'no')\nx[0] = 1", 1),
    # lambdas over run-time values
    "a lambda that is named": ("f = lambda a: a + n\nx[0] = f(3.5)", 5.5),
    "a lambda as an argument": ("x[0] = (lambda f, a: f(f(a)))(lambda b: b * n, 3)", 12),
    "a lambda that is kept in a list": ("fs = [lambda a: a + 1, lambda a: a * n]\nfor f in qp.static(fs): x[0] = f(x[0])", 2),
    "a lambda with parameters by name": ("x[0] = (lambda a, *, k=n: a * k)(2, k=n + 1)", 6),
    "lambdas that see names as they are at the call": ("y = 1.0\nf = lambda: y\ny = n + 1\nx[0] = f()", 3),
    "lambdas of a comprehension": ("fs = [(lambda a: a + k) for k in range(3)]\nx[0] = fs[0](0) + 10 * fs[1](1)", 32),
    "a lambda that gives a lambda": ("x[0] = (lambda a: (lambda b: a - b))(n)(5)", -3),
    "numbers from text": ("x[0] = int('12') + float('inf') * 0 if False else int('12') + float('0.5')", 12.5),
    # comprehensions
    "a list": ("x[0] = sum([j * n for j in range(5) if j % 2])", 8),
    "a list of lists": ("x[0] = [[i * j for i in range(3)] for j in range(3)][2][1]", 2),
    "two loops": ("x[0] = len([(i, j) for i in range(2) for j in range(i, 3)])", 5),
    "an ndrange": ("x[0] = sum([10 * i + j for i, j in qp.ndrange(2, 3)])", 36),
    "a dict": ("d = {name: k * n for name, k in qp.static(TABLE.items())}\nx[0] = d['b']", 4),
    "a dict over run-time values": ("d = {k: x[0] + k for k in range(3)}\nx[0] = d[2]", 2),
    "a set": ("x[0] = len({k % 3 for k in range(10)})", 3),
    "a written set": ("x[0] = 1 if 2 in {1, 2} else 3", 1),
    "a set and a run-time value": ("x[0] = 1 if n in {1, 2} else 3", 1),
    "a generator expression": ("x[0] = sum(n * j for j in range(4))", 12),
    "any of a generator expression": ("x[0] = 1 if any(n == j for j in (5, 2)) else 3", 1),
    "the least of a generator expression": ("x[0] = min(abs(j - n) for j in range(5, 9))", 3),
    "a vector": ("x[0] = qp.Vector([j * n for j in range(4)]).sum()", 12),
    # zip, enumerate, range under static
    "zip": ("for a, b in qp.static(zip([1, 2], [3, 4])): x[0] += a * b", 11),
    "enumerate": ("for i, (a, b) in qp.static(enumerate(zip([1, 2], [3, 4]), 1)): x[0] += i * a * b", 19),
    "range": ("for i in qp.static(range(6, 0, -2)): x[0] = 10 * x[0] + i", 642),
    "stars in a loop": ("for a, *b in qp.static([(1, 2, 3), (4, 5)]): x[0] += a * len(b)", 6),
    # text
    "text": ("x[0] = 1 if qp.static(f'{MODE}{1 + 1:03d}{0.5!r}' == 'fast0020.5') else 2", 1),
    "text that names a member": ("x[0] = getattr(POINT, f'{LETTERS[1]}')", 4),
    # names in expressions
    "a static name": ("if qp.static((size := len(NAMES)) > 1): x[0] = qp.static(size + 1)", 3),
    "a name": ("if (y := n + 3) > 4: x[0] = y", 5),
    # stars
    "a star at the end": ("a, *b = 1, 2, 3\nx[0] = a + 10 * len(b) + 100 * b[1]", 321),
    "a star in the middle": ("a, *b, c = n, 2.5, 3.5, 4\nx[0] = a + c + b[0] * b[1]", 14.75),
    "a star that takes nothing": ("a, *b = (n,)\nx[0] = len(b) + a", 2),
    "a star over a vector": ("a, *b = qp.Vector([1.0, 2.0, 3.0])\nx[0] = a + b[1]", 4),
    "stars in calls": ("x[0] = qp.max(*[1, n], *(7, 3))", 7),
    "names and values in calls": ("x[0] = (lambda a, b: a - b)(**{'b': n, 'a': 5})", 3),
    # is, in
    "is": ("x[0] = (1 if Color.RED is Color.RED else 0) + (2 if MODE is not None else 0)", 3),
    "in": ("x[0] = (1 if 'a' in TABLE else 0) + (2 if 'z' not in NAMES else 0) + (4 if 'as' in MODE else 0)", 7),
    # loops over one empty index
    "ndrange of none": ("for I in qp.ndrange(): x[0] += 1", 1),
    "grouped ndrange of none": ("for I in qp.grouped(qp.ndrange()): x[0] += 1", 1),
    "a field without axes": ("for I in SCALAR: SCALAR[I] = n\nx[0] = SCALAR[None]", 2),
    "a grouped field without axes": ("for I in qp.grouped(SCALAR): SCALAR[I] = n + 1\nx[0] = SCALAR[()]", 3),
    "a field without axes inside a loop": ("for i in range(1):\n    for I in qp.grouped(SCALAR): SCALAR[I] = n\n    x[0] = SCALAR[None]", 2),
}  # fmt: skip


@pytest.mark.parametrize("case", VALUES)
def test_value(load, case):
    body, value = VALUES[case]
    (found, *_), _ = run(load, body)
    assert found == value


MATCHES = {
    "text": "match MODE:\n    case 'slow': x[0] = 1\n    case 'fast': x[0] = 2\n    case _: x[0] = 3",
    "a static value": "match qp.static(len(NAMES)):\n    case 1: x[0] = 1\n    case 2 | 3: x[0] = 2",
    "an enumeration": "match Color.RED:\n    case Color.BLUE: x[0] = 1\n    case Color.RED: x[0] = 2",
    "a case that is not compiled": "match 1:\n    case 2: x.nothing()\n    case _: x[0] = 2",
    "no case": "x[0] = 2\nmatch 1:\n    case 5: x[0] = 1",
    "None": "match None:\n    case True: x[0] = 1\n    case None: x[0] = 2",
    "a tuple": "match (1, n, 3):\n    case (1, 2): x[0] = 1\n    case (1, y, 3): x[0] = y",
    "a list with a star": "match [1, 2, 3, 4]:\n    case [first, *_, last] if last == 4: x[0] = first + 1",
    "nested tuples": "match (1, (2, n)):\n    case (1, (_, y)): x[0] = y",
    "a vector": "match qp.Vector([1.0, 2.0]):\n    case (a, b): x[0] = b",
    "a dict": "match TABLE:\n    case {'a': 1, **rest}: x[0] = rest['b']",
    "an object": "match POINT:\n    case Point(3, y=1): x[0] = 1\n    case Point(3, y): x[0] = y - 2",
    "a class of Python": "match NAMES:\n    case str(): x[0] = 1\n    case list(l): x[0] = len(l)",
    "a static guard": "match 5:\n    case y if y > 9: x[0] = 1\n    case y: x[0] = y - 3",
    "a truth of run time": "match n > 1:\n    case False: x[0] = 1\n    case True: x[0] = 2",
    "a number is no truth": "match n:\n    case True | None: x[0] = 1\n    case _: x[0] = 2",
    "a run-time value": "match n:\n    case 1: x[0] = 1\n    case 2: x[0] = 2\n    case _: x[0] = 3",
    "alternatives": "match n:\n    case 0 | 1: x[0] = 1\n    case 2 | 3: x[0] = 2",
    "a float": "match n * 0.5:\n    case 0.5: x[0] = 1\n    case 1.0: x[0] = 2",
    "a name for what fits": "match n:\n    case 1: x[0] = 1\n    case other: x[0] = other",
    "a pattern with a name": "match n:\n    case (1 | 2) as k: x[0] = k",
    "a guard at run time": "match n:\n    case 2 if x[1] > 0: x[0] = 1\n    case 2 if x[1] == 0: x[0] = 2\n    case _: x[0] = 3",
    "a guard that names": "match n:\n    case k if k > 5: x[0] = 1\n    case k if k > 1: x[0] = k",
    "loops in cases": "match MODE:\n    case 'fast':\n        for i in x: x[i] = 2\n    case _:\n        for i in x: x[i] = 1",
    "a tuple with run-time items": "match (n, 1):\n    case (1, 1): x[0] = 1\n    case (2, 1): x[0] = 2",
    "an assignment in each case": "y = 0.0\nmatch n:\n    case 1: y = 1.0\n    case 2: y = 2.0\n    case _: y = 3.0\nx[0] = y",
}  # fmt: skip


@pytest.mark.parametrize("case", MATCHES)
def test_match(load, case):
    (found, *_), _ = run(load, MATCHES[case])
    assert found == 2


def test_matches_of_run_time_values_as_python_has_them(load):
    """Random cases over random numbers, beside Python itself."""
    rng = random.Random(3)
    for _ in range(5):
        cases = []
        for number in range(rng.randint(2, 6)):
            values = " | ".join(str(rng.randint(-3, 9)) for _ in range(rng.randint(1, 3)))
            guard = f" if k % {rng.randint(2, 3)} == 0" if rng.random() < 0.4 else ""
            cases.append(f"        case ({values}) as k{guard}:\n            y = {number} + 10 * k")
        body = "\n".join(cases)
        module = load(f"""
def python(v):
    y = -1
    match v:
{body}
    return y

@qp.kernel
def kernel(x: qp.types.ndarray(qp.i32, 1)):
    for i in x:
        v, y = x[i], -1
        match v:
{body.replace(chr(10), chr(10) + "    ").replace("        case", "            case", 1)}
        x[i] = y
""")
        given = np.arange(-5, 12, dtype=np.int32)
        found = given.copy()
        module.kernel(found)
        assert found.tolist() == [module.python(int(v)) for v in given]


def test_a_name_of_a_case_that_does_not_fit_is_not_bound(load):
    with pytest.raises(qp.KernelNameError, match="'k' is not defined here"):
        run(load, "match n:\n    case 1 as k: pass\n    case _: pass\nx[0] = k")


def test_functions_return_out_of_cases(load):
    module = load("""
        @qp.func
        def name(v):
            match v:
                case 0:
                    return 10
                case 1 | 2:
                    return 20
                case _:
                    return 30

        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.i32, 1)):
            for i in x:
                x[i] = name(i)
    """)
    x = np.zeros(5, np.int32)
    module.kernel(x)
    assert x.tolist() == [10, 20, 20, 30, 30]


RETURNS = """
@qp.func
def search(x):
    for i in range(10):
        if i * i > x:
            return qp.Vector([i * 1.0, 2.0]), i
        while True:
            if x > 50:
                return qp.Vector([7.0, 7.0]), 7
            break
    return qp.Vector([0.0, 0.0]), -1

@qp.func
def nested(x):
    if x > 0:
        if x > 1:
            return x
        else:
            return search(x)[0][0]
    else:
        for i in range(3):
            for j in range(3):
                if i + j == 3:
                    return qp.f64(i * 10 + j)
    return -5.0
"""


@pytest.mark.parametrize(
    "body",
    [
        "for i in x: x[i] = nested(i - 1.0)",
        "for i in x: x[i] = nested(i - 1.0) if nested(2.0) > 1 and nested(0.5) > 0 else 99",
        "for i in qp.static(range(4)): x[i] = [nested(j - 1.0) for j in range(4)][i]",
        "for i in x:\n    while nested(x[i]) > 5: x[i] += 0.5\n    x[i] = nested(i - 1.0)",
        "for i in x:\n    v = qp.Vector([nested(i - 1.0), nested(2.0)])\n    x[i] = v[0]",
        "for i in x: x[search(1.0)[1] * 0 + i] = nested(i - 1.0)",
        "for i in x: x[i] = nested(nested(i - 1.0) * 0 + i - 1.0)",
        "x[0], x[1] = nested(-1.0), nested(0.0)\nx[2] = nested(1.0)\nx[3] = nested(2.0)",
    ],
)
def test_functions_with_several_returns_in_all_places(load, body):
    lines = "\n".join("    " + line for line in body.splitlines())
    module = load(f"{RETURNS}\n@qp.kernel\ndef kernel(x: qp.types.ndarray(qp.f64, 1)):\n{lines}\n")
    x = np.zeros(4)
    module.kernel(x)
    assert x.tolist() == [12, 12, 2, 2]


def test_functions_return_containers_out_of_branches(load):
    module = load("""
        @qp.func
        def parts(x):
            if x > 1:
                return {"size": x, "pair": (qp.Vector([x, 1.0]), 3)}
            return {"size": -x, "pair": (qp.Vector([2.0, x]), 4)}

        @qp.func
        def chosen(a, b, k: qp.template()):
            return a if k else b

        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.f64, 1), y: qp.types.ndarray(qp.f64, 1)):
            for i in x:
                found = parts(i)
                v, k = found["pair"]
                x[i] = found["size"] * 100 + v[1] * 10 + k + chosen(x, y, False)[i]
    """)
    x = np.zeros(3)
    module.kernel(x, np.ones(3))
    assert x.tolist() == [5, -85, 214]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if x > 1:\n        return 'a'\n    return 'b'", "gives numbers, not str"),
        ("if x > 1:\n        return lambda: 1\n    return lambda: 2", "gives numbers, not a lambda"),
        ("if x > 1:\n        return 1\n    return 1, 2", "must give values of the same shape"),
        ("if x > 1:\n        return {'a': 1}\n    return {'b': 1}", "must give values of the same shape"),
        ("if x > 1:\n        return 1", "ends without a return"),
    ],
)
def test_returns_that_do_not_meet(load, body, message):
    module = load(f"""
@qp.func
def f(x):
    {body}

@qp.kernel
def kernel(x: qp.types.ndarray(qp.f64, 1)):
    for i in x:
        x[i] = f(x[i])
""")
    with pytest.raises(qp.KernelTypeError, match=message) as caught:
        module.kernel(np.zeros(1))
    assert caught.value.hint
    assert caught.value.span.file == module.__file__


def test_a_kernel_returns_no_dict(load):
    module = load("""
        @qp.kernel
        def kernel():
            return 1, {"a": 1.0}
    """)
    with pytest.raises(qp.KernelTypeError, match="a kernel cannot return a dict"):
        module.kernel()


def test_a_function_whose_loop_ends_early_runs_it_alone(load):
    """At the top level of the kernel, other loops of functions are parallel."""
    module = load("""
        @qp.func
        def first(x, limit):
            found = -1
            for i in range(x.shape[0]):
                if x[i] > limit:
                    found = i
                    break
            return found

        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.f64, 1)) -> qp.i32:
            return first(x, 2.0)
    """)
    assert module.kernel(np.array([1.0, 2.0, 3.0, 4.0])) == 2


def test_a_python_function_is_called_once_for_a_specialisation(load):
    module = load(f"""{HEAD}
@qp.kernel
def kernel(x: F):
    for i in range(x.shape[0]):
        x[i] = qp.static(plain(len(CALLS)))
""")
    x = np.zeros(2)
    module.kernel(x)
    first = x.tolist()
    module.kernel(x)
    assert x.tolist() == first
    assert len(module.CALLS) == 1


def test_calls_while_compiling_give_one_value_for_one_signature(load):
    """Arrays that overlap are another specialisation of the same signature."""
    module = load(f"""{HEAD}
counter = []

def draw():
    counter.append(0)
    return len(counter)

@qp.kernel
def kernel(x: F, y: F):
    for i in range(x.shape[0]):
        x[i] = y[i] * 0 + qp.static(draw())
""")
    x, y = np.zeros(2), np.zeros(2)
    module.kernel(x, y)
    assert x.tolist() == [1, 1]
    module.kernel(x, x)
    assert x.tolist() == [1, 1]


FAILS = {
    "a plain function": ("x[0] = plain(3)", qp.KernelSyntaxError, "plain is a plain Python function", "call it in qp.static"),
    "a plain function of a run-time value": ("x[0] = plain(n)", qp.KernelSyntaxError, "a plain Python function", "@qp.func"),
    "a static function of a run-time value": ("x[0] = qp.static(plain(n))", qp.KernelTypeError, "cannot take run-time values: i32", "@qp.func"),
    "a method outside static": ("x[0] = 1 if MODE.startswith('f') else 2", qp.KernelTypeError, "startswith cannot be called", "qp.static"),
    "what a function raises": ("x[0] = qp.static(plain('a', 'b'))", qp.CompilationError, "raised TypeError", ""),
    "wrong arguments": ("x[0] = qp.static(plain())", qp.KernelTypeError, "missing 1 required positional argument", ""),
    "what C raises": ("x[0] = qp.static(math.factorial(-1))", qp.KernelTypeError, "factorial: ValueError", ""),
    "a generator without end": ("for k in qp.static(itertools.count()): x[0] += k", qp.KernelValueError, "more than the limit", "COMPILE_STEPS"),
    "a kernel": ("x[0] = qp.static(kernel(x, n))", qp.KernelSyntaxError, "cannot call another kernel", ""),
    "a lambda that calls itself": ("f = lambda a: f(a)\nx[0] = f(1)", qp.KernelSyntaxError, "this lambda calls itself", "loop"),
    "a lambda that changes in a branch": ("f = lambda a: a\nif n > 1: f = lambda a: a + 1\nx[0] = f(1)", qp.KernelTypeError, "'f' cannot become", "outside run-time branches"),
    "None that changes in a branch": ("s = None\nif n > 1: s = 'b'\nx[0] = 1 if qp.static(s is None) else 2", qp.KernelTypeError, "'s' cannot become str", "outside run-time branches"),
    "None that becomes a number in a branch": ("s = None\nif n > 1: s = 5\nx[0] = 1 if qp.static(s is None) else 2", qp.KernelNameError, "'s' is None on one path", "such as s = 0.0"),
    "a text that changes in a parallel loop": ("s = 'a'\nfor i in range(n): s = 'b'\nx[0] = len(s)", qp.KernelNameError, "each iteration of the loop in line", "use another name inside"),
    "a tuple that changes in a parallel loop": ("s = (1, 2)\nfor i in range(n): s = (3, 4)\nx[0] = s[0]", qp.KernelNameError, "binds 's' for itself", "use another name inside"),
    "texts swapped in a parallel loop": ("a, b = 'a', 'b'\nfor i in range(n): a, b = b, a\nx[0] = len(a)", qp.KernelTypeError, "'a' cannot become str", "and loops"),
    "a list that changes in a serialized loop": ("s = [1]\nqp.loop_config(serialize=True)\nfor i in range(n): s = [2, 'b']\nx[0] = s[0]", qp.KernelTypeError, "'s' cannot become list", "and loops"),
    "None that becomes a number in a parallel loop": ("s = None\nfor i in range(n): s = i\nx[0] = 1 if qp.static(s is None) else 2", qp.KernelNameError, "binds 's' for itself", "use another name inside"),
    "None that an iteration reads and changes": ("s = None\nfor i in range(n):\n    x[i] = 1 if qp.static(s is None) else 2\n    s = i", qp.KernelTypeError, "'s' is a compile-time NoneType", "such as s = 0.0"),
    "an index that shadows a text": ("s = 'a'\nfor s in range(n): x[s] = 1\nx[0] = len(s)", qp.KernelNameError, "binds 's' for itself", "use another name inside"),
    "a static index that shadows a text": ("s = 'a'\nfor i in range(n):\n    for s in qp.static(('x', 'y')): x[i] = len(s)\nx[0] = len(s)", qp.KernelNameError, "binds 's' for itself", "use another name inside"),
    "a function that changes in a parallel loop": ("f = qp.sin\nfor i in range(n): f = qp.cos\nx[0] = f(0.0)", qp.KernelNameError, "binds 'f' for itself", "use another name inside"),
    "a field that changes in a parallel loop": ("f = SCALAR\nfor i in range(n): f = x\nx[0] = f[()]", qp.KernelNameError, "binds 'f' for itself", "use another name inside"),
    "an assertion with a message": ("assert qp.static(1 > 2), f'{1 + 1} is too many'", qp.KernelTypeError, "this assertion fails at compile time: 2 is too many", ""),
    "an assertion with a message of run time": ("assert False, f'{n} is too many'", qp.KernelTypeError, "this assertion fails at compile time", ""),
    "text that is no number": ("x[0] = float('x')", qp.KernelTypeError, "could not convert", ""),
    "an endless loop": ("while True:\n    x[0] = 1\nx[1] = 2", qp.KernelSyntaxError, "this loop never ends", "break"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILS)
def test_failure(load, case):
    body, error, message, hint = FAILS[case]
    with pytest.raises(error) as caught:
        run(load, body)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.span is not None


def test_pyfuncs_are_functions_of_kernels_and_of_python(load):
    module = load("""
        @qp.pyfunc
        def area(v, scale=2.0):
            if v.x > 1:
                return v.x * v.y * scale
            return qp.sqrt(v.y)

        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.f64, 1)):
            for i in x:
                x[i] = area(qp.Vector([i * 1.0, 4.0]))
    """)
    x = np.zeros(4)
    module.kernel(x)
    assert x.tolist() == [module.area(qp.Vector([i * 1.0, 4.0])) for i in range(4)] == [2, 2, 16, 24]


def test_ndranges_on_the_host():
    assert list(qp.ndrange()) == [()]
    assert list(qp.ndrange(2, (1, 3))) == list(itertools.product(range(2), range(1, 3)))
    assert list(qp.ndrange(0, 5)) == []
    with pytest.raises(qp.ArgumentError, match="integers and pairs"):
        qp.ndrange(1.5)


def test_a_name_of_an_unrolled_loop_in_a_branch_is_bound_in_each_turn():
    @qp.kernel
    def k(n: qp.i32) -> qp.f32:
        total = 0.0
        if n > 1:
            for turn in qp.static(range(3)):
                part = n * 1.0 + turn
                total += part
        return total

    assert (k(1), k(2)) == (0.0, 9.0)


def test_an_iteration_binds_a_name_of_compile_time_for_itself():
    @qp.kernel
    def k(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
        best = None
        for d in qp.static(range(2)):
            x[d] += 100
        for i in x:
            d = i * 2
            best = d + 1
            x[i] += best
        for d in qp.static(range(2)):
            x[d] += 1000

    x = np.zeros(3, np.int32)
    k(x)
    assert x.tolist() == [1101, 1103, 5]


OBJECTS = """
import enum

class Access(enum.IntFlag):
    READ = 1
    WRITE = 2

class Interval:
    def __init__(self, low, high): self.low, self.high = low, high
    def __contains__(self, x): return self.low <= x <= self.high
    def __iter__(self): return iter((self.low, self.high))
    def __reversed__(self): return iter((7, 8))
    def __bool__(self): return self.low < self.high
    def __int__(self): return self.high - self.low
    def __float__(self): return self.high / 2

BOTH, INSIDE, EMPTY = Access.READ | Access.WRITE, Interval(1, 5), Interval(3, 3)
"""


def test_objects_answer_by_their_own_methods(arch, load):
    module = load(
        OBJECTS
        + textwrap.dedent("""
        @qp.kernel
        def ask(x: qp.types.ndarray(qp.f64, 1), flags: qp.template()):
            x[0] = Access.WRITE in flags
            x[1] = 3 in INSIDE
            x[2] = 6 not in INSIDE
            for k in qp.static(reversed(INSIDE)):
                x[3] = 10 * x[3] + k
            x[4] = int(max(Access.READ, Access.WRITE))
            x[5] = sum(INSIDE)
            x[6] = qp.static(bool(INSIDE)) and not qp.static(bool(EMPTY))
            x[7] = qp.static(int(INSIDE))
            x[8] = qp.static(float(INSIDE))
    """)
    )
    x = np.zeros(9)
    module.ask(x, module.BOTH)
    assert x.tolist() == [1, 1, 1, 78, 2, 6, 1, 4, 2.5]


def test_methods_that_read_a_container_are_for_static(load):
    module = load("""
        TABLE = {"a": 1}

        @qp.kernel
        def largest() -> qp.i32:
            return max(TABLE.values())

        @qp.kernel
        def added() -> qp.i32:
            TABLE.update({"b": 2})
            return 1
    """)
    with pytest.raises(qp.KernelTypeError, match=r"values cannot be called.*\n.*\n.*\n.*hint: call it in qp.static"):
        module.largest()
    with pytest.raises(qp.KernelTypeError, match="fixed when it compiles"):
        module.added()
