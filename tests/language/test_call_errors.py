"""Calls that cannot be: what the messages say, and where they point."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp


@pytest.fixture
def scale(load):
    return load("""
        @qp.kernel
        def scale(x: qp.types.ndarray(dtype=qp.f32, ndim=1), a: qp.i32):
            for i in x:
                x[i] *= a
    """).scale


@pytest.mark.parametrize(
    ("args", "message", "parameter"),
    [
        ((), "missing a required argument: 'x'", "x"),
        ((np.zeros(1, np.float32), 1, 2), "too many positional arguments", ""),
        ((1.0, 1), "x takes an array, not float", "x"),
        (([1.0], 1), "list is not an array", "x"),
        ((np.zeros(1, ">f4"), 1), "foreign byte order", "x"),
        ((np.zeros(1), 1), "x takes elements of f32, not f64", "x"),
        ((np.zeros((1, 1), np.float32), 1), "x takes 1 dimension, not 2", "x"),
        ((np.zeros(1, np.float32), 1.5), "a takes an integer", "a"),
        ((np.zeros(1, np.float32), 1 << 40), "does not fit i32", "a"),
        ((np.zeros(1, np.float32), "1"), "a takes a number", "a"),
    ],
)
def test_wrong_arguments_name_the_kernel_and_show_the_parameter(scale, args, message, parameter):
    with pytest.raises(qp.ArgumentError, match=message) as caught:
        scale(*args)
    assert caught.value.message.startswith("scale: ")
    span = caught.value.span
    line, carets = span.excerpt().splitlines()
    assert span.line == scale.source.span.line + bool(parameter)
    assert line[carets.index("^") :].startswith(f"{parameter}: " if parameter else "@qp.kernel")


def test_a_function_of_numpy_is_answered_with_the_builtin(load):
    kernel = load("""
        @qp.kernel
        def wave(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            for i in x:
                x[i] = np.sin(x[i])
    """).wave
    with pytest.raises(qp.KernelTypeError, match="sin cannot be called inside a kernel") as caught:
        kernel(np.zeros(1, np.float32))
    assert caught.value.hint == "there is qp.sin"


def test_a_math_function_with_too_many_arguments(load):
    kernel = load("""
        @qp.kernel
        def wave(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            for i in x:
                x[i] = qp.sin(x[i], 2)
    """).wave
    with pytest.raises(qp.KernelTypeError, match="sin takes 1 argument, not 2"):
        kernel(np.zeros(1, np.float32))


def test_the_caret_stands_below_a_parameter_of_a_method(load):
    method = load("""
        class Solver:
            @qp.kernel
            def run(self, x):
                pass
    """).Solver.run
    with pytest.raises(qp.KernelTypeError, match="'x' has no annotation") as caught:
        method(1)
    assert caught.value.span.excerpt().splitlines() == ["        def run(self, x):", "                      ^"]


@pytest.mark.parametrize(
    "options", [{"default_fp": 32}, {"default_fp": qp.i32}, {"default_ip": qp.i8}, {"cpu_max_num_threads": 0}]
)
def test_init_refuses_what_cannot_be(init, options):
    with pytest.raises(qp.ArgumentError, match=next(iter(options))):
        init(**options)


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("n = sum(x)", "sum cannot take an array", "write a loop over its indices"),
        ("x[:] = 0", "a kernel cannot assign a slice of an array", "write a loop, or x[a:b].fill(value)"),
        ("a, b = 1, 2, 3", "2 names for 3 values", "name each value; a name with a star takes the rest: a, *rest"),
        ("a, *b = x", "2 names for array", "name its elements: x[0], x[1]"),
        (
            "x[0] = None",
            "a number is needed here, not NoneType",
            "give the variable a number first, such as 0.0; a function returns one",
        ),
        ("y: list = 3", "a list is needed here, not int", "leave the annotation out, or write the type of a number"),
        ("y: np.float32 = 0.5", r"the annotation np\.float32 is not a type", "there is qp.f32"),
        (
            "y: qp.sin = 0.5",
            r"the annotation qp\.sin is not a type",
            "write a type such as qp.f32, or qp.types.vector(3, qp.f32)",
        ),
        (
            "y: qp.types.ndarray(qp.f32, 1) = x",
            r"the annotation qp\.types\.ndarray\(qp\.f32, 1\) is not a type",
            "write a type such as qp.f32, or qp.types.vector(3, qp.f32)",
        ),
        ("x[0] = qp.cast(1.5, 'f32')", "cast takes a type, not 'f32'", "such as qp.f32, int, or a vector type"),
        ("x[0, 1] = 2.0", "2 indices for an array of 1 dimension", "an element is x[i]"),
        ("x[1.5] = 2.0", "an index must be an integer, not float", "cast it: qp.i32(...)"),
        ("for i, j in x: x[i] = 1.0", "this loop has 1 index, not 2", "name each index once"),
        ("x[0] = qp.Vector([1.0, 2.0]).q", "no component or method 'q'", "its components are x, y"),
        ("x[0] = qp.Vector([1.0] * 6).foo", "no component or method 'foo'", "its components are v[0] to v[5]"),
        (
            "v = qp.Vector([1, 2])\nv = qp.Vector([1, 2, 3])",
            "cannot change its shape",
            "give the new value another name",
        ),
        (
            "v = qp.Vector([1, 2]) + qp.Vector([1, 2, 3])",
            "shapes do not agree",
            "take the first 2 components: v[:2]",
        ),
        ("qp.atomic_add(3, 4)", "needs a target that can be assigned", "such as an element, x[i], or a variable"),
        ("x[0] = 3j", "no complex literals", "use vectors of two numbers with qp.math.cmul and similar functions"),
        ("y = [i for i in x]", "known at compile time", "such as qp.static(range(3)) or a vector; else write a loop"),
        ("import math", "import is not part of the kernel language", "import outside the kernel"),
    ],
)
def test_what_one_would_try_first_has_an_answer(load, line, message, hint):
    kernel = load(f"""
        @qp.kernel
        def attempt(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            {line.replace(chr(10), chr(10) + " " * 12)}
    """).attempt
    with pytest.raises(qp.CompilationError, match=message) as caught:
        kernel(np.zeros(3, np.float32))
    assert caught.value.hint == hint


@qp.kernel
def takes_bf16(x: qp.types.ndarray(qp.bf16, 1)):
    for i in x:
        x[i] = 1


@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_numpy_arrays_in_place_of_bf16_are_told_the_way(dtype):
    with pytest.raises(qp.ArgumentError, match="x takes elements of bf16, not") as caught:
        takes_bf16(np.zeros(3, dtype))
    assert "make a qp.ndarray(qp.bf16, shape)" in caught.value.hint


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x[i] = qp.math.normalize(x[i])", "normalize: a vector or matrix is needed, not an f32"),
        ("x[i] = qp.math.cross(1.0, 2.0)", "cross: a vector or matrix is needed, not float"),
        ("u, s, v = qp.svd(x[i])", "svd: a vector or matrix is needed, not an f32"),
        ("u, s, v = qp.svd(qp.Matrix([[x[i], 1.0]]))", "svd takes a matrix of 2 x 2 or 3 x 3"),
    ],
)
def test_an_error_inside_a_function_of_quadpy_names_the_function_and_shows_the_call(load, body, message):
    kernel = load(f"""
        @qp.kernel
        def use(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            for i in x:
                {body}
    """).use
    with pytest.raises(qp.KernelTypeError) as caught:
        kernel(np.zeros(1, np.float32))
    assert caught.value.message == message
    assert body in str(caught.value)


def test_arguments_that_are_keywords_only_are_not_counted_among_positional_ones(load):
    module = load("""
        @qp.func
        def inside(a, *, b=1):
            return a + b

        @qp.kernel
        def calls() -> qp.i32:
            return inside(1, 2)
    """)
    with pytest.raises(qp.KernelTypeError, match="it takes 1, not 2"):
        module.calls()
    with pytest.raises(qp.ArgumentError, match="it takes 0, not 1"):
        qp.profile(True)


@pytest.mark.parametrize(
    ("dtype", "hint"),
    [(np.float32, "use qp.f32"), (np.dtype("u1"), "use qp.u8"), ("int64", "use qp.i64"), ("i16", "use qp.i16")],
)
def test_types_of_numpy_are_answered_with_quadpys(dtype, hint):
    with pytest.raises(qp.ArgumentError, match="is not a scalar type") as caught:
        qp.types.ndarray(dtype=dtype, ndim=1)
    assert caught.value.hint == hint


def test_a_vector_type_without_its_arguments(load):
    kernel = load("""
        @qp.kernel
        def take(v: qp.types.vector):
            pass
    """).take
    with pytest.raises(qp.KernelTypeError, match=r"the parameter 'v' is annotated with qp\.types\.vector") as caught:
        kernel(1)
    assert caught.value.span.line == kernel.source.span.line + 1
    with pytest.raises(qp.ArgumentError, match="vector: missing a required argument: 'n'"):
        qp.types.vector()
