"""What refused calls and wrong values look like: one traceback, a caret under the parameter, and words that users know."""

import re
import traceback

import numpy as np
import pytest

import quadpy as qp

vec3 = qp.math.vec3
ONES, VECTORS = np.ones(4, np.float32), np.ones((4, 3), np.float32)


@qp.kernel
def kernel(
    x: qp.Array1D[qp.f32],
    a: qp.f32 = 1.0,
    *,
    v: qp.types.ndarray(vec3, 1) = VECTORS,
    any: qp.types.ndarray() = ONES,
):
    for i in x:
        x[i] = a


@qp.data_oriented
class Owner:
    @qp.kernel
    def method(self, x: qp.Array1D[qp.f32], other: vec3):
        for i in x:
            x[i] = other.x


REFUSED = {
    "another number of axes": (lambda: kernel(np.ones((4, 4), np.float32)), "x: qp.Array1D[qp.f32],"),
    "another type": (lambda: kernel(qp.ndarray(qp.i32, 4)), "x: qp.Array1D[qp.f32],"),
    "no number": (lambda: kernel(ONES, "two"), "a: qp.f32 = 1.0,"),
    "vectors of another length": (lambda: kernel(ONES, v=np.ones((3, 4), np.float32)), "v: qp.types.ndarray(vec3, 1) = VECTORS,"),
    "complex numbers": (lambda: kernel(ONES, any=np.ones(4, np.complex64)), "any: qp.types.ndarray() = ONES,"),
    "no array": (lambda: kernel(ONES, any=object()), "any: qp.types.ndarray() = ONES,"),
    "another shape": (lambda: Owner().method(ONES, [1, 2]), "def method(self, x: qp.Array1D[qp.f32], other: vec3):"),
    "a missing argument": (lambda: Owner().method(ONES), "def method(self, x: qp.Array1D[qp.f32], other: vec3):"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("options", [{}, {"debug": True}, {"arch": qp.python}])
def test_refused_arguments_show_the_parameter_and_one_traceback(init, options, case):
    init(**options)
    call, line = REFUSED[case]
    with pytest.raises(qp.ArgumentError) as caught:
        call()
    shown = str(caught.value).splitlines()
    assert shown[1].strip() == line
    name = line.partition(":")[0] if not line.startswith("def") else "other"
    assert shown[1][shown[2].index("^") :].startswith(f"{name}: ")
    text = "".join(traceback.format_exception(caught.value))
    assert "noqa" not in text
    assert text.count("Traceback (most recent call last)") == 1
    own = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if "quadpy/jit/" in frame.filename]
    assert len(own) == 1


def test_parameters_without_a_type_are_shown():
    @qp.kernel
    def untyped(x: qp.f32, wrong: "no type"):  # noqa: F722 - as users write it
        pass

    @qp.kernel
    def starred(x: qp.f32, *others):
        pass

    for wrong, name in ((untyped, "wrong"), (starred, "others")):
        with pytest.raises((qp.KernelTypeError, qp.KernelSyntaxError)) as caught:
            wrong(1.0, 2.0)
        assert caught.value.span is not None
        if wrong is starred:
            assert str(caught.value).splitlines()[1].startswith(f"        def starred(x: qp.f32, *{name})")


class Series:
    """As those of pandas and Polars: neither a buffer nor DLPack."""

    __module__ = "pandas.core.series"

    def to_numpy(self):
        return np.ones(4, np.float32)


def test_columns_of_tables_are_told_to_become_arrays():
    with pytest.raises(qp.ArgumentError, match="pandas's Series is not an array") as caught:
        kernel(Series())
    assert caught.value.hint == "pass its .to_numpy(), and copy results back if that is a copy"


def test_complex_numbers_are_told_to_become_vectors():
    x = np.array([1 + 2j, 3 - 4j], np.complex64)
    with pytest.raises(
        qp.ArgumentError, match="kernels have no complex numbers, and this is an array of complex64"
    ) as caught:
        kernel(ONES, any=x)
    hint = caught.value.hint
    assert hint == "pass x.view(np.float32).reshape(*x.shape, 2), an array of vectors of two numbers"

    @qp.kernel
    def conjugate(x: qp.types.ndarray(qp.math.vec2, 1)):
        for i in x:
            x[i].y = -x[i].y

    conjugate(eval(hint.removeprefix("pass ").partition(", an")[0]))
    assert x.tolist() == [1 - 2j, 3 + 4j]


def test_arrays_of_vectors_say_what_shape_they_have():
    with pytest.raises(qp.ArgumentError, match="do not match elements of shape") as caught:
        kernel(ONES, v=np.ones((3, 4), np.float32))
    assert caught.value.hint == "an array of n such elements has shape (n, 3)"


class Plain:
    pass


FIELD, OBJECT = qp.field(qp.f32, 4), Plain()


@qp.func
def helper(a):
    return a


INTERNAL = re.compile(
    r"\b(Grouped|NdRange|Func|Method|Builtin|Lambda|StructType|GridNode|NDArrayType|Scalar)\b|0x[0-9a-f]{6}"
)
WRONG = (
    "qp.grouped(FIELD) + 1", "qp.ndrange(3) + 1", "FIELD[helper]", "FIELD[qp.f32]", "FIELD[qp.sin]", "helper + 1", "-helper",
    "(lambda a: a) + 1", "Struct + 1", "Struct.nothing", "Struct(1.0).method + 1", "helper.nothing", "helper[0]",
    "len(qp.ndrange(2))", "abs(helper)", "max(helper, 1)", "range(helper)", "[y for y in helper]", "qp.cast(1.0, OBJECT)",
    "qp.Vector([helper])", "OBJECT + 1", "FIELD.parent() + 1", "qp.types.ndarray() + 1", "qp.template() + 1",
    "qp.static(qp.grouped)(3).x",
)  # fmt: skip


@pytest.mark.parametrize("expression", WRONG)
def test_messages_have_no_words_of_quadpys_own(load, expression):
    module = load(f"""
        from test_refused_arguments import FIELD, OBJECT, helper

        @qp.dataclass
        class Struct:
            a: qp.f32

            @qp.func
            def method(self):
                return self.a

        @qp.kernel
        def run():
            wrong = {expression}
    """)
    with pytest.raises(qp.CompilationError) as caught:
        module.run()
    assert not INTERNAL.search(f"{caught.value.message} {caught.value.hint}"), caught.value.message


def test_errors_show_no_addresses():
    for call in (lambda: qp.field(OBJECT, 3), lambda: qp.func(OBJECT), lambda: kernel(ONES, stream=OBJECT),
                 lambda: qp.types.vector(3, OBJECT), lambda: qp.data_oriented(OBJECT)):  # fmt: skip
        with pytest.raises(qp.QuadpyError) as caught:
            call()
        assert "0x" not in str(caught.value)
