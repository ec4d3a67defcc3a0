"""Kernels that cannot be read, launches that cannot be: read-only arrays, no source, unknown targets."""

from __future__ import annotations

import functools
import subprocess
import sys

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
SOURCE = "import quadpy as qp\n@qp.kernel\ndef kernel(n: qp.i32) -> qp.i32:\n    return n\n"


def test_a_kernel_made_by_exec():
    scope = {}
    exec(SOURCE.replace("return n", "return n + 1"), scope)  # nobody keeps this text
    with pytest.raises(qp.KernelSourceError, match="the source of 'kernel' cannot be found") as caught:
        scope["kernel"](1)
    assert "file" in caught.value.hint
    assert caught.value.span.line == 2


def test_a_function_made_by_exec(load):
    scope = {"qp": qp}
    lines = ["@qp.func", "def inner(n):", "    return n"]
    exec("\n".join(lines), scope)  # nobody keeps this text
    module = load("""
        inner = None

        @qp.kernel
        def kernel(n: qp.i32) -> qp.i32:
            return inner(n)
    """)
    module.inner = scope["inner"]
    with pytest.raises(qp.KernelSourceError, match="'inner'"):
        module.kernel(1)


def test_a_kernel_typed_at_the_interpreter():
    program = SOURCE + "\nkernel(1)\n"
    done = subprocess.run([sys.executable, "-i", "-q"], input=program, capture_output=True, text=True, check=False)
    if sys.version_info < (3, 13):  # later interpreters keep what was typed
        assert "KernelSourceError" in done.stderr
        assert "hint: define the function in a file" in done.stderr


async def asynchronous(n: qp.i32):
    pass


@pytest.mark.parametrize(
    "function",
    [lambda n: n, asynchronous, len, 5, functools.partial(print, 1)],
    ids=["lambda", "async", "builtin", "number", "partial"],
)
def test_what_is_no_plain_function(function):
    with pytest.raises((qp.KernelSourceError, qp.KernelTypeError)):
        qp.kernel(function)(1)


@qp.kernel
def store(x: A(qp.f32, 1)):
    for i in x:
        x[i] = 1.0


@qp.kernel
def add(x: A(qp.f32, 1)):
    for i in x:
        x[i] += 1.0


@qp.kernel
def set_component(x: A(qp.types.vector(2, qp.f32), 1)):
    for i in x:
        x[i].y = 1.0


@pytest.mark.parametrize("kernel", [store, add, set_component], ids=lambda k: k.__name__)
def test_a_read_only_array_that_the_kernel_writes(kernel):
    array = np.zeros((4, 2) if kernel is set_component else 4, np.float32)
    array.flags.writeable = False
    with pytest.raises(qp.KernelTypeError, match="writes the array 'x', which is read-only") as caught:
        kernel(array)
    assert caught.value.span.line == kernel.source.span.line + 3
    assert "copy" in caught.value.hint
    assert not array.any()
    array.flags.writeable = True
    kernel(array)
    assert array.any()


def repeated(base, shape, strides):
    """A writable view that NumPy, unlike ``numpy.broadcast_to``, does not protect; ``torch.expand`` gives the same."""
    return np.lib.stride_tricks.as_strided(base, shape, strides)


POINT = qp.types.struct(a=qp.f32, b=qp.f32)


@qp.kernel
def set_member(x: A(POINT, 1)):
    for i in x:
        x[i].b = 1.0


@qp.kernel
def store_table(x: A(qp.f32, 2)):
    for i, j in x:
        x[i, j] = 1.0


REPEATED = {
    "one element": (store, lambda: repeated(np.zeros(1, np.float32), (4,), (0,))),
    "an update": (add, lambda: repeated(np.zeros(1, np.float32), (4,), (0,))),
    "one row": (store_table, lambda: repeated(np.zeros(3, np.float32), (4, 3), (0, 4))),
    "one column": (store_table, lambda: repeated(np.zeros(3, np.float32), (3, 4), (4, 0))),
    "vectors": (set_component, lambda: repeated(np.zeros(2, np.float32), (4, 2), (0, 4))),
    "structs": (set_member, lambda: repeated(np.zeros(1, POINT.numpy_dtype), (4,), (0,))),
}


@pytest.mark.parametrize("case", REPEATED)
def test_an_array_with_a_stride_of_0_that_the_kernel_writes(case):
    """Its elements are one place in memory, of which the last iteration would win."""
    kernel, make = REPEATED[case]
    array = make()
    apart = np.zeros((2 * len(array), *array.shape[1:]), array.dtype)[::2]  # strided as well, but not by 0
    kernel(apart)
    before = apart.copy()
    with pytest.raises(
        qp.KernelTypeError, match=r"writes the array 'x', which .* repeats elements by a stride of 0"
    ) as caught:
        kernel(array)
    assert caught.value.span.line == kernel.source.span.line + 3
    assert "copy" in caught.value.hint
    assert not array.view(np.float32).any() if case != "structs" else array[0] == np.zeros(1, array.dtype)
    np.testing.assert_array_equal(apart, before)
    kernel(array.copy())


def test_an_array_with_a_stride_of_0_may_be_read():
    @qp.kernel
    def copy(x: A(qp.f32, 2), y: A(qp.f32, 2)):
        for i, j in x:
            y[i, j] = x[i, j]

    row, y = np.arange(3, dtype=np.float32), np.zeros((4, 3), np.float32)
    for x in (np.broadcast_to(row, (4, 3)), repeated(row, (4, 3), (0, 4))):
        copy(x, y)
        np.testing.assert_array_equal(y, x)


def test_an_axis_of_one_element_may_have_any_stride():
    x = repeated(np.zeros(8, np.float32), (1, 4), (0, 8))
    store_table(x)
    assert x.all()


@qp.kernel
def no_annotation(x):
    pass


@qp.kernel
def strange_annotation(x: list[int]):
    pass


@qp.kernel
def many(*x: qp.i32):
    pass


@pytest.mark.parametrize(
    ("kernel", "message"),
    [(no_annotation, "'x' has no annotation"), (strange_annotation, "list"), (many, r"\*x cannot be a parameter")],
    ids=["none", "strange", "many"],
)
def test_parameters_that_cannot_be(kernel, message):
    with pytest.raises(qp.KernelTypeError, match=message) as caught:
        kernel(1)
    assert caught.value.span.line == kernel.source.span.line + 1
    assert "x" in caught.value.span.excerpt().splitlines()[0]


@pytest.mark.parametrize("target", ["gfx9999", "sparc", "", "cpu:no-such-cpu!"])
def test_an_unknown_target(target):
    with pytest.raises(qp.UnknownTargetError) as caught:
        store.compile(target)
    assert caught.value.hint


def test_an_unknown_backend():
    with pytest.raises(qp.NoDeviceError, match="no backend 'vulkan'") as caught:
        qp.init(arch="vulkan")
    assert "qp.cpu" in caught.value.hint


def test_the_language_does_not_exist_outside_kernels():
    with pytest.raises(qp.KernelSyntaxError, match="inside kernels only"):
        qp.loop_config()


@qp.kernel
def returns_text() -> qp.i32:
    return "text"


@qp.kernel
def returns_too_much() -> (qp.i32, qp.i32):
    return 1, 2, 3


@qp.kernel
def returns_an_array(x: A(qp.f32, 1)) -> qp.f32:
    return x


@qp.kernel
def returns_a_list() -> list:
    return 1


def test_results_that_cannot_be():
    for kernel, args in ((returns_text, ()), (returns_too_much, ()), (returns_an_array, (np.zeros(1, np.float32),)),
                         (returns_a_list, ())):  # fmt: skip
        with pytest.raises(qp.KernelTypeError) as caught:
            kernel(*args)
        assert caught.value.span.file == __file__
