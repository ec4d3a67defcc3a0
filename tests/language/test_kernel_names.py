"""A kernel may have any name: what LLVM, the linker or the C library calls so is another thing."""

from __future__ import annotations

import numpy as np
import pytest

F32 = "qp.types.ndarray(dtype=qp.f32, ndim=1)"

MEMORY = ["memset", "memcpy", "memmove", "bzero", "bcmp", "memset_pattern16", "__memcpy_chk"]
C_LIBRARY = [
    "malloc",
    "free",
    "calloc",
    "realloc",
    "sin",
    "pow",
    "sqrt",
    "fma",
    "floor",
    "main",
    "printf",
    "strlen",
    "abort",
]
COMPILER = [
    "__divdi3",
    "__muldi3",
    "__truncsfhf2",
    "__chkstk",
    "llvm_memset_p0_i64",
    "qp_pool_run",
    "pool_run",
    "fn",
    "entry",
]
PYTHON = ["_", "__", "λ", "名前", "memset_entry", "memset_t0", "k" * 3000]


@pytest.mark.parametrize("name", [*MEMORY, *C_LIBRARY, *COMPILER, *PYTHON], ids=lambda name: name[:20])
def test_a_kernel_of_this_name_fills_copies_and_reduces(load, name):
    """Loops that LLVM turns into calls of the C library's functions."""
    kernel = getattr(load(f"""
        @qp.kernel
        def {name}(x: {F32}, y: {F32}, total: {F32}):
            for i in x:
                y[i] = x[i]
            for i in x:
                x[i] = 0
            for i in y:
                total[0] += qp.sin(y[i]) * 0
    """), name)  # fmt: skip
    for size in (3, 20_000):
        x, y, total = np.arange(size, dtype=np.float32), np.ones(size, np.float32), np.zeros(1, np.float32)
        kernel(x, y, total)
        np.testing.assert_array_equal(x, 0)
        np.testing.assert_array_equal(y, np.arange(size))
        assert total[0] == 0


@pytest.mark.parametrize("target", ["gfx942", "sm_90", "cpu"])
def test_symbols_have_the_name_in_the_letters_of_every_assembler(load, target):
    """As profilers show it: letters that are not ASCII are underscores, and what comes after 200 of them is cut."""
    module = load(f"""
        @qp.kernel
        def größe_2(x: {F32}):
            for i in x:
                x[i] = 0

        @qp.kernel
        def {"k" * 3000}(x: {F32}):
            for i in x:
                x[i] = 0
    """)
    for kernel, shown in ((module.größe_2, "gr__e_2"), (getattr(module, "k" * 3000), "k" * 200)):
        assert kernel.compile(target).tasks[0].symbol == f"{shown}_t0"
