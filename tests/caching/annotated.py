"""Kernels and functions with each annotation that the language page names, and annotations that change.

Every kernel here depends on the number ``N`` of ``cfg``, or on what an annotation means; a warm start finds all of them.
"""

from __future__ import annotations

from typing import Final

from change import Change

__all__ = ["ANNOTATIONS"]

_SETUP: Final = """
import dataclasses, typing
ELEMENTS = typing.TypeVar('ELEMENTS')
class C: pass
@dataclasses.dataclass
class D:
    a: qp.types.NDArray[qp.f64, 1]
    b: float = 0.5
    c: qp.template() = 1
    d: C = None
I = qp.types.struct(a=qp.f64)
@qp.dataclass
class S:
    i: I
    b: int
    @qp.func
    def whole(self):
        return self.i.a + self.b + N
"""
_OF_ARRAYS: Final = (
    "qp.Array1D[qp.f64]", "qp.Array[qp.f64, 1]", "qp.Array", "qp.Array1D[ELEMENTS]", "qp.types.ndarray()", "qp.types.ndarray",
    "qp.types.ndarray(dtype=qp.f64, ndim=1)", "qp.types.ndarray(qp.f64, 1, boundary='clamp')", "qp.types.NDArray[qp.f64, 1]",
    "qp.NDArray[qp.f64]", "qp.Field[qp.f64]", "typing.Annotated[C, qp.Array1D[qp.f64]]", "'qp.Array1D[qp.f64]'",
)  # fmt: skip
_OF_EITHER: Final = ("qp.template()", "qp.Template", "qp.Template[qp.f64, 1]", "qp.template(dtype=qp.f64, ndim=1)", "'qp.template()'",
                     "qp.Tensor", "qp.Tensor[qp.f64, 1]", "typing.Annotated[C, qp.template()]")  # fmt: skip
_OF_FUNCTIONS: Final = ("qp.ref()", "qp.ref(qp.f64)", "typing.Any", "object", "C", "D", "np.ndarray", "typing.Optional[C]",
                        "int | None", "typing.Callable[[int], int]", "typing.Literal[1]", "ELEMENTS", "'C'")  # fmt: skip
_OF_NUMBERS: Final = ("float", "qp.f64", "qp.f32", "int", "qp.i64", "typing.Annotated[C, qp.f64]")
_NUMBERS: Final = ("N = 1\n", "N = 2\n")


def _of_functions() -> list[Change]:
    made = []
    for annotation in (*_OF_ARRAYS, *_OF_EITHER, *_OF_FUNCTIONS):
        function = f"@qp.func\ndef f(x: {annotation}, i):\n    x[i] = N\n"
        method = f"@qp.data_oriented\nclass O:\n    @qp.func\n    def f(self, x: {annotation}, i):\n        x[i] = N\nO = O()\n"
        made += [
            Change(f"a function of {annotation}", "f(o, i)", *_NUMBERS, setup=_SETUP + function),
            Change(f"a method of {annotation}", "O.f(o, i)", *_NUMBERS, setup=_SETUP + method),
        ]
    for annotation in (*_OF_NUMBERS, *_OF_FUNCTIONS, "qp.template()", "qp.Template"):
        for kind in ("func", "real_func", "pyfunc"):
            function = f"@qp.{kind}\ndef f(x: {annotation}) -> {annotation}:\n    return x + N\n"
            made.append(Change(f"a {kind} from {annotation}", "o[i] = f(0)", *_NUMBERS, setup=_SETUP + function))
    return made


def _of_kernels() -> list[Change]:
    made = []
    arrays, either = "np.zeros(2)", "qp.field(qp.f64, 2)"
    rows = [
        *((annotation, arrays, "x[0]") for annotation in _OF_ARRAYS),
        *((annotation, either, "x[0]") for annotation in _OF_EITHER),
        *((annotation, "0", "x") for annotation in (*_OF_NUMBERS, "bool")),
        ("qp.Tensor", "qp.ndarray(qp.f64, 2)", "x[0]"), ("qp.Tensor", "None", "qp.static(0 if x is None else 5)"),
        ("qp.math.vec2", "[0, 1]", "x[0]"), ("qp.types.matrix(2, 2, qp.f64)", "[[0, 1], [2, 3]]", "x[0, 0]"),
        ("I", "I(0)", "x.a"), ("S", "S(I(0), 0)", "x.whole() - N"), ("D", "D(np.zeros(2))", "x.a[0] * x.b * x.c"),
        ("qp.template()", "D(qp.ndarray(qp.f64, 2))", "x.a[0] * x.b * x.c"), ("qp.template()", "S(I(0), 0)", "x.whole() - N"),
        ("qp.template()", "qp.ndarray(qp.f64, 2)", "x[0]"), ("qp.template()", "(0, 1)", "x[0]"), ("qp.template()", "'a'", "len(x) - 1"),
        ("qp.template()", "qp.f64", "x(0)"), ("qp.template()", "None", "qp.static(0 if x is None else 5)"),
        ("qp.template()", "plus", "x(0)"), ("qp.template()", "qp.Vector([0, 1])", "x[0]"),
        *((annotation, "S.ndarray(2)", "x[0].whole() - N") for annotation in
          ("qp.Array1D[S]", "qp.NDArray[S]", "qp.types.ndarray()", "qp.Tensor", "qp.template()", "qp.Array1D[ELEMENTS]")),
        *((annotation, "S.field(2)", "x[0].whole() - N") for annotation in ("qp.Tensor", "qp.template()")),
    ]  # fmt: skip
    for annotation, argument, value in rows:
        setup = f"{_SETUP}@qp.func\ndef plus(x):\n    return x\nARGUMENT = {argument}\n"
        made.append(Change(f"a kernel of {annotation}, {argument}", f"o[i] = N + {value}", *_NUMBERS, setup=setup, late=False,
                           parameters=f", x: {annotation}", arguments=", ARGUMENT"))  # fmt: skip
    of_results = [
        ("None", ""), ("typing.Any", "return N"), ("qp.f64", "return N"), ("float", "return N"), ("tuple[qp.f64]", "return N,"),
        ("typing.Tuple[qp.f64]", "return N,"), ("(qp.f64,)", "return N,"), ("typing.Annotated[C, qp.f64]", "return N"),
    ]  # fmt: skip
    for annotation, end in of_results:
        kernel = f"\n@qp.kernel\ndef k(o: F64, p: F64) -> {annotation}:\n    for i in o:\n        o[i] = N + 0 * p[i]\n    {end}\n"
        made.append(Change(f"a kernel that returns {annotation}", "", *_NUMBERS, setup=_SETUP, late=False,
                           whole=kernel.replace("def k", "def returning") + "def k(o, p):\n    returning(o, p)\n"))  # fmt: skip
    return made


def _meanings(first: str, second: str) -> tuple[str, str]:
    head = "import typing\nimport quadpy as qp\nclass C: pass\nclass E: pass\n"
    return f"{head}T = {first}\n", f"{head}T = {second}\n"


_CHANGES: Final = "@qp.func\ndef f(x: T):\n    x += 1\n"
_HALVES: Final = "@qp.func\ndef f(x: T):\n    return x / 2\n"
_RESULTS: Final = "@qp.func\ndef f() -> T:\n    return 2049.0, 1.5\n"
_METHOD: Final = """import quadpy as qp
@qp.dataclass
class I:
    a: qp.f64
    @qp.func
    def get(self):
        return self.a + NUMBER
"""
_STRUCTS: Final = "S = qp.types.struct(i=I, b=qp.f64)\n"
_METHODS: Final = (_METHOD.replace("NUMBER", "1"), _METHOD.replace("NUMBER", "2"))


def _that_change() -> list[Change]:
    reference = "v = p[i]\n        f(v)\n        o[i] = v"
    return [
        Change("a reference that was a value", reference, *_meanings("object", "qp.template()"), (0, 1), setup=_CHANGES),
        Change("a reference that was of a class", reference, *_meanings("C", "qp.ref(qp.f64)"), (0, 1), setup=_CHANGES),
        Change("a value that was a template", reference, *_meanings("qp.Template", "qp.f64"), (1, 0), setup=_CHANGES),
        Change("a type that was a class", "o[i] = f(3.5)", *_meanings("C", "qp.i32"), (1.75, 1.5), setup=_HALVES),
        Change("a type that was Any", "o[i] = f(3.5)", *_meanings("typing.Any", "int"), (1.75, 1.5), setup=_HALVES),
        Change("a type in Annotated", "o[i] = f(3.5)", *_meanings("typing.Annotated[C, qp.f64]", "typing.Annotated[C, int]"),
               (1.75, 1.5), setup=_HALVES),
        Change("a type in typing.Tuple", "o[i] = f()[0]", *_meanings("typing.Tuple[qp.f64, C]", "typing.Tuple[qp.f16, C]"),
               (2049, 2048), setup=_RESULTS),
        Change("a type in a tuple with a class", "o[i] = f()[0]", *_meanings("(C, qp.f64)", "(qp.f16, C)"), (2049, 2048), setup=_RESULTS),
        Change("a method of a member", "o[i] = S(i=I(a=0)).i.get()", *_METHODS, setup=_STRUCTS, late=False),
        Change("a method of a member of an argument", "o[i] = s.i.get()", *_METHODS, setup=_STRUCTS, late=False,
               parameters=", s: S", arguments=", S()"),
        Change("a method of a member of a template", "o[i] = s.i.get()", *_METHODS, setup=_STRUCTS, late=False,
               parameters=", s: qp.template()", arguments=", S()"),
        Change("a method of an array's elements", "o[i] = s[0].i.get()", *_METHODS, setup=_STRUCTS, late=False,
               parameters=", s: qp.types.ndarray()", arguments=", S.ndarray(1)"),
        Change("a method of a field's elements", "o[i] = s[0].i.get()", *_METHODS, setup=_STRUCTS, late=False,
               parameters=", s: qp.template()", arguments=", S.field(1)"),
    ]  # fmt: skip


ANNOTATIONS: Final = [*_of_functions(), *_of_kernels(), *_that_change()]
