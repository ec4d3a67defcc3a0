"""The host's count of a loop's iterations equals what the loop does."""

import struct

from hypothesis import given, strategies as st

import quadpy as qp
from quadpy.core.artifact import CodeObject
from quadpy.core.formula import BlockValue, Formula, Operation, formula_from_json, formula_to_json
from quadpy.jit.formula import HELPERS, compile_formula, formula_source

small = st.integers(-50, 50)


@qp.kernel
def strided(x: qp.types.ndarray(dtype=qp.f32, ndim=2), start: qp.i32, stop: qp.i32, step: qp.i32):
    for i in range(start, stop, step):
        x[0, 0] += i
    for i, j in qp.ndrange((1, x.shape[0] - 1), x.shape[1] // 2):
        x[i, j] = 0.0


@qp.kernel
def from_memory(n: qp.types.ndarray(dtype=qp.i32, ndim=1), x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    for i in range(n[0]):
        x[i] = 0.0


def extents(code: CodeObject, *values: float) -> list[int]:
    struct.pack(code.layout.format, *values)  # these are the values of the argument block, in order
    parallel = [task for task in code.tasks if task.parallel and task.extent is not None]
    return [compile_formula(task.extent)(values) for task in parallel if task.extent is not None]


@given(start=small, stop=small, step=small, rows=st.integers(0, 9), cols=st.integers(0, 9))
def test_counts_are_those_of_python_ranges(start: int, stop: int, step: int, rows: int, cols: int) -> None:
    counts = extents(strided.compile("gfx942"), 0, rows, cols, start, stop, step)
    assert counts[0] == (len(range(start, stop, step)) if step else 0)
    assert counts[-1] == max(0, rows - 2) * (cols // 2)


def test_sums_wrap_as_in_the_kernel() -> None:
    least = -(2**31)
    counts = extents(strided.compile("gfx942"), 0, least, 4, 0, 0, 1)
    assert counts[-1] == (2**31 - 2) * 2  # least - 1 wraps to the greatest


def test_a_bound_in_memory_has_no_extent() -> None:
    tasks = [task for task in from_memory.compile("gfx942").tasks if task.parallel]
    assert [task.extent for task in tasks] == [None]
    assert tasks[0].grid_stride


def test_extents_survive_the_manifest() -> None:
    code = strided.compile("gfx1100")
    assert CodeObject.from_parts(code.manifest(), code.image) == code


def test_the_source_of_a_formula_says_what_it_computes() -> None:
    bounds = st.one_of(st.integers(-9, 9), st.builds(BlockValue, st.integers(0, 2)))
    wrapping = st.sampled_from([0, 8, 64])

    def combined(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
        pairs, triples = st.tuples(inner, inner), st.tuples(inner, inner, inner)
        two = st.sampled_from(["add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "product"])
        return st.builds(Operation, two, pairs, wrapping) | st.builds(Operation, st.just("count"), triples)

    @given(st.recursive(bounds, combined, max_leaves=8), st.tuples(*[st.integers(-9, 9)] * 3))
    def check(formula: Formula, values: tuple[int, int, int]) -> None:
        found = compile_formula(formula)(values)
        assert eval(formula_source(formula, list(map(str, values))), dict(HELPERS)) == found
        assert formula_from_json(formula_to_json(formula)) == formula

    check()
