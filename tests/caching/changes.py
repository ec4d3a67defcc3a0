"""What a kernel can depend on: for each kind of thing a program whose text stays, and two states of what it reads.

Each program consists of a module with the kernel, and a module ``cfg`` that is imported as ``cfg`` and by ``*``, of
which there are two versions.  The kernel writes to ``o[0]`` what it makes of ``cfg``.
"""

from __future__ import annotations

from annotated import ANNOTATIONS
from called import CALLED
from change import Change

__all__ = ["CHANGES"]


def _numbers(first: object = 1, second: object = 2, name: str = "N") -> tuple[str, str]:
    return f"{name} = {first}\n", f"{name} = {second}\n"


_QP = "import quadpy as qp\n"
_FUNCTION = (_QP + "@qp.func\ndef f(x):\n    return x + 1\n", _QP + "@qp.func\ndef f(x):\n    return x + 2\n")
_CLASS = ("class C:\n    N = 1\n", "class C:\n    N = 2\n")
_OBJECT = ("class C: pass\nc = C()\nc.N = 1\n", "class C: pass\nc = C()\nc.N = 2\n")
_TYPE = (_QP + "T = qp.f64\n", _QP + "T = qp.i32\n")
_WIDTH = (_QP + "T = qp.f64\n", _QP + "T = qp.f16\n")
_FIELDS = (
    _QP + "a = qp.field(qp.f64, 3)\na.fill(1)\nb = a\n",
    _QP + "a = qp.field(qp.f64, 3)\na.fill(1)\nb = qp.field(qp.f64, 3)\nb.fill(2)\n",
)
_ODD = """
class Odd({base}):
    def __repr__(self): return 'odd'
    def __str__(self): return 'odd'
    def __hash__(self): return 1
N = Odd({value})
"""


def _odd(base: str, first: object, second: object) -> tuple[str, str]:
    """Numbers of a type of their own, which print alike."""
    return _ODD.format(base=base, value=first), _ODD.format(base=base, value=second)


def _each(text: str, first: object = 1, second: object = 2) -> tuple[str, str]:
    return text.replace("NUMBER", str(first)), text.replace("NUMBER", str(second))


NAMES = [
    Change("a global", "o[i] = N", *_numbers()),
    Change("a global of another module", "o[i] = cfg.N", *_numbers()),
    Change("a global of a class", "o[i] = C.N", *_CLASS),
    Change("a global of an object", "o[i] = c.N", *_OBJECT),
    Change("an attribute of an attribute", "o[i] = cfg.c.N", *_OBJECT),
    Change("an attribute of an item", "o[i] = cfg.L[0].N", *_each("class C: N = NUMBER\nL = [C()]\n"), recorded=False),
    Change("a property", "o[i] = c.N", *_each("class C:\n    @property\n    def N(self): return NUMBER\nc = C()\n")),
    Change("an attribute that a module makes", "o[i] = cfg.M", *_each("def __getattr__(name):\n    if name == 'M': return NUMBER\n    raise AttributeError(name)\n")),
    Change("a name that was a builtin", "o[i] = int(2.9)", "", _FUNCTION[0].replace("f(x)", "int(x)"), (2, 3.9)),
    Change("a builtin under another name", "o[i] = min(3, i + 5)", "", "min = max\n", (3, 5)),
    Change("the range of a loop", "for j in range(3):\n            o[i] = j", "",
           "import quadpy as qp\n@qp.func\ndef range(n):\n    return (0, 5)\n", (2, 5)),
    Change("a function of Python", "o[i] = size((2, 4, 6))", "size = len\n", "size = sum\n", (3, 12)),
    Change("a name that is not there", "o[i] = qp.static(2 if hasattr(cfg, 'FAST') else 1)", "", "FAST = 0\n"),
    Change("getattr", "o[i] = getattr(cfg, 'N')", *_numbers()),
    Change("getattr with another value", "o[i] = getattr(cfg, 'N', 1)", "", "N = 2\n"),
    Change("a module under a local name", "m = cfg\n        o[i] = m.N", *_numbers(), recorded=False),
    Change("a module as an argument of a function", "o[i] = of(cfg)", *_numbers(), recorded=False,
           setup="@qp.func\ndef of(m):\n    return m.N\n"),
    Change("a module in a tuple", "o[i] = MODULES[0].N", *_numbers(), setup="MODULES = (cfg,)\n", recorded=False),
    Change("a closure variable", "", *_numbers(), late=False, whole="""
def make(n):
    @qp.kernel
    def k(o: F64, p: F64):
        for i in o:
            o[i] = n + 0 * p[i]
    return k
k = make(cfg.N)
"""),
]  # fmt: skip

VALUES = [
    Change("the type of a number", "v = qp.i32(0 * p[i]) + 2**24 + 1\n        o[i] = v * N", *_numbers("1", "1.0"),
           (2**24 + 1, 2**24)),
    Change("a zero's sign", "o[i] = qp.copysign(1.0, N)", *_numbers("0.0", "-0.0"), (1, -1)),
    Change("a bool", "o[i] = 1 + qp.static(isinstance(N, bool))", *_numbers("0", "False")),
    Change("the last bit of a float", "o[i] = (N - 1.0) * 2.0**52", *_numbers("1.0 + 2.0**-52", "1.0 + 2.0**-51")),
    Change("an integer of a type of its own", "o[i] = N", *_odd("int", 1, 2), recorded=False),
    Change("a float of a type of its own", "o[i] = N", *_odd("float", 1, 2), recorded=False),
    Change("an integer of an own type in a tuple", "o[i] = T[0]", *(t + "T = (N,)\n" for t in _odd("int", 1, 2)),
           recorded=False),
    Change("a member of an enumeration", "o[i] = E.A", *_each("import enum\nclass E(enum.IntEnum):\n    A = NUMBER\n")),
    Change("a member of an enumeration that prints alike", "o[i] = E.A", *_each(
        "import enum\nclass E(enum.IntEnum):\n    A = NUMBER\n    def __repr__(self): return 'A'\n")),
    Change("which member of an enumeration", "o[i] = A", *_each(
        "import enum\nclass E(enum.IntEnum):\n    a = 1\n    b = 2\nA = E(NUMBER)\n")),
    Change("a number of NumPy", "o[i] = N", *_each("import numpy as np\nN = np.float32(NUMBER)\n")),
    Change("an array of NumPy", "o[i] = N[1]", *_each("import numpy as np\nN = np.array([0, NUMBER])\n")),
    Change("a longer list", "o[i] = 0\n        for v in qp.static(N):\n            o[i] += v", *_numbers("[1]", "[1, 1]")),
    Change("the length of a list of objects", "o[i] = len(N)", *_each("class C: pass\nN = [C()] * NUMBER\n"), recorded=False),
    Change("an item of a dict", "o[i] = N['a']", *_numbers({"a": 1}, {"a": 2})),
    Change("the order of a dict", "for key in qp.static(list(N)):\n            o[i] = N[key]",
           *_numbers({"b": 2, "a": 1}, {"a": 1, "b": 2})),
    Change("an item of a tuple of tuples", "o[i] = N[1][0]", *_numbers(((0,), (1,)), ((0,), (2,)))),
    Change("a text", "o[i] = 2 if qp.static(N == 'two') else 1", *_numbers("'one'", "'two'")),
    Change("what is None", "o[i] = 1 if qp.static(N is None) else 2", *_numbers("None", "0")),
    Change("an index", "o[i] = (1, 2)[N]", *_numbers("0", "1")),
    Change("a slice", "o[i] = (1, 2)[N][0]", *_numbers("slice(1)", "slice(1, 2)")),
    Change("a vector", "o[i] = N[0]", *_each("import quadpy as qp\nN = qp.Vector([NUMBER, 0.5])\n")),
    Change("the scalars of a vector", "o[i] = N[0]",
           *_each("import quadpy as qp\nN = qp.Vector([2**24 + 1], qp.NUMBER)\n", "f64", "f32"), (2**24 + 1, 2**24)),
]  # fmt: skip

TYPES = [
    Change("the type of a cast", "o[i] = T(2.75)", *_TYPE, (2.75, 2)),
    Change("the type of a local name", "v: T = 2.75\n        o[i] = v", *_TYPE, (2.75, 2)),
    Change("the type of a vector", "o[i] = V(1).sum()", *_each("import quadpy as qp\nV = qp.types.vector(NUMBER, qp.i32)\n")),
    Change("the scalars of a vector type", "o[i] = V(2.75)[0]",
           *_each("import quadpy as qp\nV = qp.types.vector(2, qp.NUMBER)\n", "f64", "i32"), (2.75, 2)),
    Change("the type of a parameter", "o[i] = n / 2", *_TYPE, (1.5, 1.5), parameters=", n: T", arguments=", 3",
           late=False),
    Change("the type of a kernel's result", "", *_WIDTH, (2049, 2048), late=False, whole="""
@qp.kernel
def k(o: F64, p: F64) -> T:
    for i in o:
        o[i] = 0 * p[i]
    return 2049.0
"""),
    Change("a default of a kernel", "o[i] = n", *_numbers(), parameters=", n: qp.i32 = cfg.N", late=False),
    Change("a template's default", "o[i] = n", *_numbers(), parameters=", n: qp.template() = cfg.N", late=False),
    Change("the options of a loop", "o[i] = qp.simt.block.block_dim()", *_numbers(32, 64), (32, 64), whole="""
@qp.kernel
def k(o: F64, p: F64):
    qp.loop_config(block_dim=N)
    for i in o:
        o[i] = qp.simt.block.block_dim() + 0 * p[i]
"""),
]  # fmt: skip

FUNCTIONS = [
    Change("a function", "o[i] = f(0)", *_FUNCTION),
    Change("a function of another module", "o[i] = cfg.f(0)", *_FUNCTION),
    Change("a function by getattr", "o[i] = getattr(cfg, 'f')(0)", *_FUNCTION),
    Change("a function under a local name", "g = cfg.f\n        o[i] = g(0)", *_FUNCTION),
    Change("a function as an argument", "o[i] = ap(cfg.f)", *_FUNCTION, setup="@qp.func\ndef ap(g):\n    return g(0)\n"),
    Change("a function in a tuple", "for g in qp.static(FS):\n            o[i] = g(0)", *_FUNCTION, setup="FS = (f,)\n",
           late=False),
    Change("a function in a dict", "o[i] = FS['f'](0)", *_FUNCTION, setup="FS = {'f': f}\n", late=False),
    Change("a global in a lambda", "o[i] = (lambda x: x + N)(0)", *_numbers()),
    Change("a global in a pattern", "match 2:\n            case cfg.N: o[i] = 2\n            case _: o[i] = 1", *_numbers()),
    Change("what a match is of", "match N:\n            case 2: o[i] = 2\n            case _: o[i] = 1", *_numbers()),
    Change("the global of a function", "o[i] = f(0)",
           *_each("import quadpy as qp\nN = NUMBER\n@qp.func\ndef f(x):\n    return x + N\n")),
    Change("the global of a function in a tuple", "for g in qp.static(FS):\n            o[i] = g(0)", *_each(_GLOBAL := """
import quadpy as qp
N = NUMBER
@qp.func
def f(x):
    return x + N
FS = (f,)
""")),
    Change("the closure of a function", "o[i] = f(0)", *_each("""
import quadpy as qp
def make(n):
    @qp.func
    def f(x):
        return x + n
    return f
f = make(NUMBER)
""")),
    Change("the closures of two functions", "o[i] = f(0) + g(0)", *_each(_MAKE := """
import quadpy as qp
def make(n):
    @qp.func
    def f(x):
        return x + n
    return f
f, g = NUMBER
""", "make(1), make(2)", "make(2), make(3)"), (3, 5)),
    Change("two functions that were one", "o[i] = f(0) + g(0)", *_each(_MAKE, "(make(1),) * 2", "make(1), make(2)"), (2, 3)),
    Change("a default of a function", "o[i] = f(0)",
           *_each("import quadpy as qp\nN = NUMBER\n@qp.func\ndef f(x, n=N):\n    return x + n\n")),
    Change("a keyword default of a function", "o[i] = f(0)",
           *_each("import quadpy as qp\nN = NUMBER\n@qp.func\ndef f(x, *, n=N):\n    return x + n\n")),
    Change("a default of a function of this module", "o[i] = f(0)", *_numbers(), late=False,
           setup="@qp.func\ndef f(x, n=N):\n    return x + n\n"),
    Change("an annotation of a function", "o[i] = f(2.75)", *_TYPE, (2.75, 2), late=False,
           setup="@qp.func\ndef f(x: T):\n    return x\n"),
    Change("an annotation that is a text", "o[i] = f(2.75)", *_TYPE, (2.75, 2),
           setup="@qp.func\ndef f(x: 'T'):\n    return x\n"),
    Change("the annotation of a function's result", "o[i] = f(qp.f64(2049))", *_WIDTH, (2049, 2048), late=False,
           setup="@qp.func\ndef f(x) -> T:\n    return x\n"),
    Change("an attribute of a function", "o[i] = f.order", *_each(_FUNCTION[0] + "f.order = NUMBER\n")),
]  # fmt: skip

ARGUMENTS = [
    Change("a number as a template", "o[i] = n", *_numbers(), parameters=", n: qp.template()", arguments=", cfg.N",
           late=False),
    Change("a number of an own type as a template", "o[i] = n", *_odd("int", 1, 2), parameters=", n: qp.template()",
           arguments=", cfg.N", recorded=False, late=False),
    Change("a module as a template", "o[i] = m.N", *_numbers(), parameters=", m: qp.template()", arguments=", cfg"),
    Change("an object as a template", "o[i] = m.N", *_OBJECT, parameters=", m: qp.template()", arguments=", cfg.c",
           late=False),
    Change("an object as a template and a local name", "n = m\n        o[i] = n.N", *_OBJECT, late=False, recorded=False,
           parameters=", m: qp.template()", arguments=", cfg.c"),
    Change("a list as a template", "o[i] = m[0]", *_numbers([1], [2]), late=False, parameters=", m: qp.template()",
           arguments=", cfg.N"),
    Change("a function as a template", "o[i] = f(0)", *_FUNCTION, late=False, parameters=", f: qp.template()",
           arguments=", cfg.f"),
    Change("the global of a function as a template", "o[i] = f(0)", *_each(_GLOBAL), late=False,
           parameters=", f: qp.template()", arguments=", cfg.f"),
    Change("two functions as templates that were one", "o[i] = f(0) + g(0)",
           *_each(_MAKE, "(make(1),) * 2", "make(1), make(2)"), (2, 3), late=False,
           parameters=", f: qp.template(), g: qp.template()", arguments=", cfg.f, cfg.g"),
]  # fmt: skip

_CELLS = """
@qp.kernel
def k(o: F64, p: F64):
    a[1] = 1
    for i in range(1):
        o[0] = 1 + qp.cast(qp.is_active(b.parent(), 1), qp.f64)
"""
_VISITED = """
@qp.kernel
def k(o: F64, p: F64):
    o[0] = 2
    a[1] = 1
    for i in a:
        o[0] -= 1 / 2.0
    for i in range(1):
        o[0] = (2 - o[0]) * 2
        o[0] = 3 - o[0]
"""
FIELDS = [
    Change("a field's shape", "o[i] = a.shape[0]", *_each("import quadpy as qp\na = qp.field(qp.i32, NUMBER)\n"), late=False),
    Change("a field's offset", "o[i] = a[1] + 1", *_each(
        "import quadpy as qp\na = qp.field(qp.f64, 2, offset=NUMBER)\nfor n in (0, 1): a[NUMBER + n] = 1 - n\n", 0, 1),
        late=False),
    Change("fields that were one", "o[i] = a[0] * b[0]", *_FIELDS, late=False),
    Change("fields of a tuple that were one", "o[i] = P[0][0] * P[1][0]", *(t + "P = (a, b)\n" for t in _FIELDS),
           late=False),
    Change("fields as templates that were one", "o[i] = x[0] * y[0]", *_FIELDS, late=False,
           parameters=", x: qp.template(), y: qp.template()", arguments=", cfg.a, cfg.b"),
    Change("a field that is a template, too", "o[i] = x[0] * b[0]", *_FIELDS, late=False,
           parameters=", x: qp.template()", arguments=", cfg.a"),
    Change("fields of objects that were one", "o[i] = x.f[0] * y.f[0]", *(
        t + "class C:\n    def __init__(self, f): self.f = f\nx, y = C(a), C(b)\n" for t in _FIELDS), late=False),
    Change("fields that share a sparse node", "", *(
        f"{_QP}a, b = qp.field(qp.i32), qp.field(qp.i32)\nn = qp.root.pointer(qp.i, 4)\nn.place(a)\n{other}.place(b)\n"
        for other in ("qp.root.pointer(qp.i, 4)", "n")), late=False, whole=_CELLS),
    Change("the kind of a node", "", *(
        f"{_QP}a, b = qp.field(qp.i32), qp.field(qp.i32)\nqp.root.{kind}(qp.i, 4).place(a, b)\na[1] = 1\n"
        for kind in ("pointer", "dense")), results=(2, 2), late=False, whole=_CELLS),
    Change("how far a node is from the field", "", *(
        f"{_QP}a, b = qp.field(qp.i32), qp.field(qp.i32)\nqp.root.pointer(qp.i, {n}).dense(qp.i, {8 // n}).place(a)\n"
        "qp.root.place(b)\n" for n in (4, 8)), late=False, whole=_VISITED),
]  # fmt: skip

CHANGES = [*NAMES, *VALUES, *TYPES, *FUNCTIONS, *CALLED, *ARGUMENTS, *FIELDS, *ANNOTATIONS]
