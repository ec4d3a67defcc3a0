"""Python functions that run while compiling, and what they depend on: see ``changes.py``."""

from __future__ import annotations

from change import Change

__all__ = ["CALLED"]


def _called(name: str, body: str, cfg: str, **options: object) -> Change:
    """``cfg`` has the text NUMBER where its versions have 1 and 2."""
    first, second = (cfg.replace("NUMBER", str(number)) for number in (1, 2))
    return Change(name, body, first, second, **options)  # type: ignore[arg-type]


_CALL = "o[i] = qp.static(f())"
_FIELDS = (
    "import quadpy as qp\na, b = qp.field(qp.f64, 3), qp.field(qp.f64, 3)\na.fill(1)\nb.fill(2)\n"
    "def f(): return (a, b)[NUMBER - 1]\n"
)

CALLED = [
    _called("a Python function in static", "o[i] = qp.static(f(0))", "def f(x): return x + NUMBER\n"),
    _called("a Python function of another module", "o[i] = qp.static(cfg.f())", "def f(): return NUMBER\n"),
    _called("a Python lambda in static", "o[i] = qp.static(f(0))", "f = lambda x: x + NUMBER\n"),
    _called("a Python function in a lambda", "o[i] = qp.static((lambda x: f(x))(0))", "def f(x): return x + NUMBER\n"),
    _called("a Python function in a tuple", "o[i] = qp.static(FS[0]())", "def f(): return NUMBER\nFS = (f,)\n", recorded=False),
    _called("what a Python function reads", _CALL, "N = NUMBER\ndef f(): return N\n"),
    _called("what a Python function calls", _CALL, "def g(): return NUMBER\ndef f(): return g()\n"),
    _called("the closure of a Python function", _CALL, "def make(n): return lambda: n\nf = make(NUMBER)\n"),
    _called("a default of a Python function", _CALL, "def f(n=NUMBER): return n\n"),
    _called("a Python function that is wrapped", _CALL,
            "import functools\n@functools.lru_cache\ndef f(): return NUMBER\n"),
    _called("a part of a Python function", _CALL, "import functools\nf = functools.partial(max, NUMBER, 0)\n"),
    _called("the environment of the process", _CALL,
            "import os\nos.environ['QP_TEST_NUMBER'] = 'NUMBER'\ndef f(): return int(os.environ['QP_TEST_NUMBER'])\n"),
    _called("a file", _CALL, "import pathlib\ndef f(): return int('NUMBER' in pathlib.Path(__file__).read_text()) * NUMBER\n"),
    _called("a method in static", "o[i] = qp.static(c.f())", "class C:\n    def f(self): return NUMBER\nc = C()\n"),
    _called("an attribute that a method reads", "o[i] = qp.static(c.f())",
            "class C:\n    n = 0\n    def f(self): return self.n\nc = C()\nc.n = NUMBER\n"),
    _called("an attribute inside an attribute that a method reads", "o[i] = qp.static(c.f())",
            "class C:\n    def f(self): return self.inner.n\nc = C()\nc.inner = C()\nc.inner.n = NUMBER\n"),
    _called("an attribute whose name a method computes", "o[i] = qp.static(c.f())",
            "class C:\n    def f(self): return getattr(self, 'n' + str(5))\nc = C()\nc.n5 = NUMBER\n"),
    _called("a static method in static", "o[i] = qp.static(C.f())", "class C:\n    @staticmethod\n    def f(): return NUMBER\n"),
    _called("a class method in static", "o[i] = qp.static(C.f())",
            "class C:\n    n = NUMBER\n    @classmethod\n    def f(cls): return cls.n\n"),
    _called("an object that is called in static", "o[i] = qp.static(c())",
            "class C:\n    def __call__(self): return self.n\nc = C()\nc.n = NUMBER\n"),
    _called("an object that a Python function is given", "o[i] = qp.static(f(c))", "class C: n = NUMBER\nc = C()\n",
            setup="def f(c): return c.n\n"),
    _called("an object by its keyword", "o[i] = qp.static(f(c=cfg.c))", "class C: n = NUMBER\nc = C()\n",
            setup="def f(*, c): return c.n\n"),
    _called("an object of an argument's", "o[i] = qp.static(f(m.c))", "class C: n = NUMBER\nc = C()\nd = C()\nd.c = c\n",
            setup="def f(c): return c.n\n", parameters=", m: qp.template()", arguments=", cfg.d", late=False),
    _called("which object a Python function is given", "o[i] = qp.static(f(c, d))",
            "class C: pass\nc = C()\nd = c if NUMBER == 1 else C()\n", setup="def f(c, d): return 1 if c is d else 2\n"),
    _called("numbers that a Python function is given", "o[i] = qp.static(f([N, 0.5], (True, None), {'a': 'b'}, k={1: -0.0}))",
            "N = NUMBER\n", setup="def f(*given, k): return given[0][0] if (given[1:], k) == (((True, None), {'a': 'b'}), {1: 0}) else 0\n"),
    _called("the type of a number that a Python function is given", "o[i] = qp.static(f(N))",
            "N = (1, 1.0)[NUMBER - 1]\n", setup="def f(n): return 1 if type(n) is int else 2\n"),
    _called("an array that a Python function is given", "o[i] = qp.static(f(A))", "import numpy as np\nA = np.full(9, NUMBER)\n",
            setup="def f(a): return int(a[8])\n"),
    _called("a type that a Python function is given", "o[i] = qp.static(f(T))",
            "import quadpy as qp\nT = (qp.i32, qp.f32)[NUMBER - 1]\n", setup="def f(t): return 1 if t is qp.i32 else 2\n"),
    _called("the result of a Python function for another", "o[i] = qp.static(f(g(0), n=g(1)))",
            "def g(n): return [n, NUMBER]\n", setup="def f(a, n): return a[1] if n[0] == 1 else 0\n"),
    _called("one list in two places", "o[i] = qp.static(f(N, N))", "N = [NUMBER]\n",
            setup="def f(a, b): return a[0]\n", recorded=False),
    _called("a list that a Python function fills", "made = [0]\n        qp.static(f(made))\n        o[i] = made[-1]",
            "def f(made): made.append(NUMBER)\n", recorded=False, late=False),
    _called("a dict of lists that a Python function fills",
            "made = {'a': [0]}\n        qp.static(f(made))\n        o[i] = made['a'][-1]",
            "def f(made): made['a'].append(NUMBER)\n", recorded=False, late=False),
    _called("a list that another Python function fills", "qp.static(g())\n        made = qp.static(f())\n        o[i] = made[-1]",
            "made = []\ndef f(): return made\ndef g(): made.append(NUMBER)\n"),
    _called("a list that is filled when it was returned", "made = qp.static(f())\n        qp.static(g())\n        o[i] = len(made) + qp.static(f())[1]",
            "made = [0]\ndef f(): return made\ndef g(): made.append(NUMBER - 1)\n"),
    _called("what a Python function sets", "qp.static(cfg.f())\n        o[i] = cfg.N", "N = 0\ndef f():\n    global N\n    N = NUMBER\n"),
    _called("what was read before a Python function set it", "o[i] = cfg.N\n        qp.static(cfg.f())\n        o[i] += cfg.N - cfg.N",
            "N = NUMBER\ndef f():\n    global N\n    N += 5\n"),
    _called("how often a Python function is called", "o[i] = qp.static(f())", "n = NUMBER - 1\ndef f():\n    global n\n    n += 1\n    return n\n"),
    _called("a number of calls", "for v in qp.static(range(f(), 0, -1)):\n            o[i] = f(v)",
            "import quadpy as qp\ndef f(v=0): return NUMBER\n", setup="", whole="""
@qp.kernel
def k(o: F64, p: F64):
    for i in o:
        o[i] = 0 * p[i]
        for v in qp.static(range(f())):
            o[i] += qp.static(cfg.f(v)) / qp.static(f())
"""),
    _called("a generator in static", "for n in qp.static(f()):\n            o[i] = n", "def f():\n    yield 0\n    yield NUMBER\n"),
    _called("an array that a Python function returns", "o[i] = qp.static(f())[8]",
            "import numpy as np\ndef f(): return np.full(9, NUMBER)\n"),
    _called("a member of an enumeration that is made", "o[i] = 1 if qp.static(E(f()) == E.A) else 2",
            "import enum\nclass E(enum.Enum):\n    A = 1\n    B = 2\ndef f(): return NUMBER\n"),
    _called("a field that a Python function picks", "o[i] = qp.static(f())[0]", _FIELDS, late=False),
    _called("two fields that a Python function picks", "o[i] = qp.static(f())[0] * a[0]", _FIELDS, late=False),
    _called("a function that a Python function picks", "o[i] = qp.static(f())(0)", """
import quadpy as qp
@qp.func
def one(x):
    return x + 1
@qp.func
def two(x):
    return x + 2
def f(): return (one, two)[NUMBER - 1]
"""),
    _called("a class in static", "o[i] = qp.static(C()).n", "class C:\n    def __init__(self): self.n = NUMBER\n", recorded=False),
    _called("an object that a Python function makes", "o[i] = qp.static(f()).n",
            "class C: pass\ndef f():\n    c = C()\n    c.n = NUMBER\n    return c\n", recorded=False),
    _called("a method of a dict in static", "for n in qp.static(D.values()): o[i] = n", "D = {'a': NUMBER}\n"),
]  # fmt: skip
