"""Indices by which kernels find their neighbours, and what kernels may not do: as users write it for one device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.dist import Grid
from quadpy.errors import CodegenError, DistributedError, KernelSyntaxError

A1, A2, A3 = (qp.types.ndarray(qp.f32, ndim=n) for n in (1, 2, 3))
vec3, mat2 = qp.types.vector(3, qp.f32), qp.types.matrix(2, 2, qp.f32)


@pytest.fixture(autouse=True)
def _cpu() -> Iterator[None]:
    qp.init(arch=qp.cpu)
    yield
    qp.init(arch=qp.cpu)


def same_on_ranks(
    steps: Callable[..., Any],
    shape: tuple[int, ...],
    *dtypes: Any,
    ranks: tuple[int, ...] = (1, 2, 4),
    **grid_options: Any,
) -> None:
    """Runs ``steps`` on plain arrays, and on those of a grid on several ranks: the bits are the same."""

    def run(make: Callable[[Any], Any]) -> list[Any]:
        arrays = [make(dtype) for dtype in dtypes]
        for seed, array in enumerate(arrays):
            extents = array.shape + array.element_shape
            array.from_numpy(np.random.default_rng(seed).standard_normal(extents).astype(np.float32))
        found = steps(*arrays)
        return [found, *(array.to_numpy().tobytes() for array in arrays)]

    expected = run(lambda dtype: qp.ndarray(dtype, shape))

    def program() -> list[Any]:
        grid = Grid(shape, **grid_options)
        return run(grid.ndarray)

    for size in ranks:
        assert run_ranks(size, program) == [expected] * size, f"{size} ranks"


# ----------------------------------------------------------------------- axes that wrap, written by hand


@qp.kernel
def chosen(u: A2, v: A2):
    n, m = u.shape
    for i, j in v:
        ip = i + 1 if i + 1 < n else 0
        im = i - 1 if i > 0 else n - 1
        jp = (j + 2) % m
        jm = j - 1 if j != 0 else m - 1
        v[i, j] = u[ip, j] + u[im, j] + u[i, jp] + u[i, jm] + u[ip, jm] - u[im, jp] + u[i + 1 if i < n - 1 else 0, jm]


@qp.kernel
def in_steps(u: A2, v: A2):
    n = u.shape[0]
    for i, j in v:
        right = i + 1
        if right >= n:
            right = right - n
        far = i + 2
        at = far if far < n else far - n
        after = at + 1 if at + 1 < n else 0
        far = 0
        v[i, j] = u[right, j] + 2.0 * u[at, j] + 3.0 * u[after, j]


@pytest.mark.parametrize("kernel", [chosen, in_steps])
@pytest.mark.parametrize("ranks", [(1, 2), (2, 2)])
def test_wraps_by_hand(kernel: Any, ranks: tuple[int, int]):
    def steps(u: Any, v: Any) -> None:
        for _ in range(2):
            kernel(u, v)
            kernel(v, u)

    periodic = (ranks[0] > 1, True)
    same_on_ranks(steps, (8, 9), qp.f32, qp.f32, periodic=periodic, ranks=(ranks[0] * ranks[1],))


@qp.func
def returned(i, n):
    if i < 0:
        return i + n
    if i >= n:
        return i - n
    return i


@qp.func
def changed_twice(i, n):
    k = i
    if k < 0:
        k += n
    if k >= n:
        k -= n
    return k


@qp.kernel
def by_functions(u: A2, v: A2):
    n, m = u.shape
    for i, j in v:
        v[i, j] = u[returned(i - 1, n), j] + u[changed_twice(i + 1, n), returned(j + 2, m)]


@qp.kernel
def by_components(u: A2, v: A2):
    for place in qp.grouped(v):
        found = 0.0
        for axis in qp.static(range(2)):
            after, before = place, place
            after[axis] = (place[axis] + 1) % u.shape[axis]
            before[axis] -= 1
            if before[axis] < 0:
                before[axis] += u.shape[axis]
            found += u[after] - 2.0 * u[before]
        v[place] = found


@qp.kernel
def again(u: A2, v: A2):
    n = u.shape[0]
    for i, j in v:
        right = (i + 1) % n
        v[i, j] = u[(right + 1) % n, j] + u[(right - 3) % n, j]


def halo_of(kernel: Any, periodic: bool) -> Any:
    def program() -> Any:
        grid = Grid((64, 8), periodic=periodic, ranks=(2, 1))
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        kernel(u, v)
        return u.halo[0]

    return run_ranks(2, program)[1]


@pytest.mark.parametrize(("kernel", "halo"), [(by_functions, (1, 1)), (by_components, (1, 1)), (again, (2, 2))])
def test_wraps_in_branches_and_in_steps(kernel: Any, halo: Any):
    same_on_ranks(kernel, (8, 9), qp.f32, qp.f32, ranks=(2, 4), periodic=True)
    assert halo_of(kernel, True) == halo


@qp.func
def reflected(i, n):
    k = abs(i)
    if k >= n:
        k = 2 * n - 2 - k
    return k


@qp.kernel
def mirrors(u: A2, v: A2):
    n, m = u.shape
    for i, j in v:
        v[i, j] = u[abs(i - 2), j] + u[n - 1 - abs(n - 2 - i), reflected(j - 1, m)] + u[reflected(i + 1, n), j]


def test_mirrors():
    same_on_ranks(mirrors, (8, 9), qp.f32, qp.f32, ranks=(2, 4, 8))
    assert halo_of(mirrors, False) == (2, 1)


@qp.kernel
def ends_of_all_kinds(u: A3, v: A3):
    for i, j, k in qp.ndrange((0, v.shape[0] - 1), (2, v.shape[1] - 1), (2, v.shape[2])):
        at = i - 2 if i - 2 >= 0 and i - 2 < u.shape[0] else i
        v[i, j, k] = u[at, reflected(j - 1, u.shape[1]), qp.math.clamp(k + 3, 0, u.shape[2] - 1)]


def test_choices_along_each_axis():
    """Their formulas are short enough, as extents are numbers in them."""
    same_on_ranks(ends_of_all_kinds, (8, 6, 8), qp.f32, qp.f32, ranks=(8,), periodic=(False, True, True))


@qp.kernel
def clamped(u: A2, v: A2):
    n, m = u.shape
    for i, j in v:
        ip = i + 1 if i + 1 < n else i
        im = i - 1 if i > 0 else i
        v[i, j] = u[ip, j] + u[im, min(j + 1, m - 1)] + u[im, max(j - 1, 0)]


def test_a_mirrored_rim():
    same_on_ranks(clamped, (8, 9), qp.f32, qp.f32, ranks=(4,))


def test_a_choice_at_the_rim_needs_a_narrow_halo():
    def program() -> Any:
        grid = Grid((64, 8), periodic=(True, False), ranks=(2, 1))
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        chosen(u, v)
        return u.halo

    assert run_ranks(2, program) == [((1, 1), (0, 0))] * 2


@qp.kernel
def changed_later(u: A1, v: A1):
    n = u.shape[0]
    for i in v:
        k = i + 3
        if i > 3:
            k = i - 3
        at = k % n
        if i >= 0:
            k = i
        v[i] = u[at] + k


def test_an_index_keeps_its_value_when_what_it_was_made_of_changes():
    same_on_ranks(changed_later, (16,), qp.f32, qp.f32, periodic=True, ranks=(2,))


# ----------------------------------------------------------------------- elements, several loops, accumulations


@qp.kernel
def turns(u: qp.types.ndarray(vec3, ndim=1), m: qp.types.ndarray(mat2, ndim=1), v: qp.types.ndarray(vec3, ndim=1)):
    for i in u:
        s = u[i]
        if i > 0 and i + 2 < u.shape[0]:
            s += u[i - 1] * m[i + 2][0, 1]
        v[i].x = s.z + m[i][1, 1]
        v[i].y = s.x
    for i in u:
        if i + 1 < u.shape[0]:
            m[i][1, 0] = v[i + 1].x


def test_vectors_and_matrices():
    def steps(u: Any, m: Any, v: Any) -> None:
        turns(u, m, v)
        turns(v, m, u)

    same_on_ranks(steps, (17,), vec3, mat2, vec3)


@qp.kernel
def in_turn(u: A1, v: A1, table: A1) -> (qp.f32, qp.i32):
    k = 2.0 + table[0]
    for i in u:
        v[i] = u[i] * k
    table[1] = k
    n = 0
    for i in v:
        if i + 1 < v.shape[0]:
            u[i] = v[i + 1] + table[1]
        n += 1
    z = table[1] + n
    for i in u:
        if i > 0:
            v[i] = u[i - 1] + z + k
    for j in range(3):
        table[j] += z
    return z, n


def test_loops_that_read_what_earlier_ones_wrote():
    def steps(u: Any, v: Any) -> Any:
        table = qp.ndarray(qp.f32, 3)
        table.fill(0.5)
        return [(in_turn(u, v, table), table.to_numpy().tolist()) for _ in range(2)]

    same_on_ranks(steps, (21,), qp.f32, qp.f32)


@qp.kernel
def three(a: A1, b: A1, c: A1):
    for i in a:
        b[i] = a[i] * 2.0
    for i in a:
        if i + 2 < a.shape[0]:
            c[i] = a[i + 2] + b[i + 1]


def test_one_array_in_two_places():
    def steps(u: Any, v: Any) -> None:
        for _ in range(2):
            three(u, u, v)
            three(u, v, v) if u is v else three(v, v, u)

    same_on_ranks(steps, (20,), qp.f32, qp.f32)


@qp.kernel
def into_one_cell(u: A1, v: A1):
    for i in v:
        qp.atomic_max(u[9], v[i])
    for i in v:
        if i > 0:
            v[i] = u[i - 1]


def test_an_accumulation_into_an_element_of_the_grid():
    """Only its owner has the element, and the others' halos become stale."""

    def steps(u: Any, v: Any) -> None:
        into_one_cell(u, v)
        into_one_cell(u, v)

    same_on_ranks(steps, (12,), qp.f32, qp.f32, ranks=(1, 3))


@qp.kernel
def extremes(u: A2) -> (qp.f32, qp.f32):
    low, high = 1e30, -1e30
    for i, j in u:
        qp.atomic_min(low, u[i, j])
        qp.atomic_max(high, u[i, j])
    return low, high


@pytest.mark.parametrize("kind", ["some nan", "all nan", "one -0.0", "one 0.0", "inf"])
def test_minima_and_maxima_of_special_numbers(kind: str):
    values = np.random.default_rng(1).standard_normal((12, 9)).astype(np.float32)
    match kind:
        case "some nan":
            values[[0, 3, 11], [0, 4, 8]] = np.nan
        case "all nan":
            values[:] = np.nan
        case "one -0.0":
            values[:], values[5, 5] = 0.0, -0.0
        case "one 0.0":
            values[:], values[5, 5] = -0.0, 0.0
        case _:
            values[:] = np.inf

    def bits(u: Any) -> bytes:
        u.from_numpy(values)
        return np.array(extremes(u), np.float32).tobytes()

    same_on_ranks(bits, (12, 9), qp.f32, ranks=(1, 3))


# ----------------------------------------------------------------------- what is refused, with its line


@qp.kernel
def conditional_minimum(u: A1, v: A1):
    low = 70.0
    for i in u:
        if u[i] > 0.0:
            low = qp.min(low, u[i])
    for i in v:
        v[i] = low


@qp.kernel
def last_one(u: A1, v: A1):
    found = 0.0
    for i in u:
        if i == 3:
            found = u[i]
    for i in v:
        v[i] = found


@qp.kernel
def numbered(u: A1, v: A1):
    n = 0
    for i in u:
        v[i] = u[i] + qp.atomic_add(n, 1)


@qp.kernel
def in_a_while(u: A1, v: A1):
    k = 0
    while k < 3:
        for i in v:
            v[i] += u[i]
        k += 1


@qp.kernel
def under_an_if(u: A1, v: A1, on: qp.i32):
    if on > 0:
        for i in v:
            v[i] += u[i]


@qp.kernel
def in_blocks(u: A1, v: A1):
    qp.loop_config(block_dim=32)
    for i in v:
        v[i] = u[i] + qp.simt.block.thread_idx()


@qp.kernel
def wraps_where_nothing_repeats(u: A1, v: A1):
    n = u.shape[0]
    for i in v:
        v[i] = u[(i + 1) % n]


@qp.kernel(graph=True)
def until_small(u: A1, v: A1, error: qp.types.ndarray(qp.i32, ndim=1)):
    while qp.graph.do_while(error):
        for i in v:
            v[i] = u[i]
        error[0] = 0


@qp.kernel(graph=True, checkpoints=True)
def pausing(u: A1, v: A1, stop: qp.types.ndarray(qp.i32, ndim=0)):
    with qp.checkpoint(1, yield_on=stop):
        for i in v:
            v[i] = u[i]


@qp.kernel(graph=True)
def side_by_side(u: A1, v: A1):
    with qp.graph.parallel():
        for i in u:
            u[i] = 1.0
    with qp.graph.parallel():
        for i in v:
            v[i] = 2.0


REFUSED: list[tuple[Any, str, str, str]] = [
    (conditional_minimum, "low is set in iterations of a loop", "low = qp.min(low, u[i])", "qp.atomic_min(low"),
    (last_one, "each rank would have its own found", "found = u[i]", "found += "),
    (numbered, "n is set in iterations", "v[i] = u[i] + qp.atomic_add(n, 1)", "whose result is not used"),
    (in_a_while, "is not in a loop over the grid", "v[i] += u[i]", "at the top level of the kernel"),
    (under_an_if, "is not in a loop over the grid", "v[i] += u[i]", "at the top level of the kernel"),
    (in_blocks, "blocks and waves of a loop", "qp.simt.block.thread_idx()", "without shared arrays"),
    (wraps_where_nothing_repeats, "reads all of axis 0", "v[i] = u[(i + 1) % n]", "make the axis periodic"),
    (side_by_side, "parallel sections", "@qp.kernel(graph=True)", "a kernel of each task"),
    (pausing, "checkpoints or loops over tasks", "@qp.kernel(graph=True, checkpoints=True)", "qp.dist.capture"),
    (until_small, "loops over tasks cannot take distributed arrays", "@qp.kernel(graph=True)", "qp.dist.capture"),
]


@pytest.mark.parametrize(("kernel", "words", "line", "hint"), REFUSED, ids=[row[0].__name__ for row in REFUSED])
def test_refused_with_its_line(kernel: Any, words: str, line: str, hint: str):
    def program() -> None:
        grid = Grid((40,))
        more = {under_an_if: [1], until_small: [np.ones(1, np.int32)], pausing: [np.zeros((), np.int32)]}.get(
            kernel, []
        )
        kernel(grid.ndarray(qp.f32), grid.ndarray(qp.f32), *more)

    with pytest.raises((DistributedError, KernelSyntaxError), match=words) as caught:
        run_ranks(2, program)
    assert line in str(caught.value)
    assert hint in str(caught.value).partition("hint:")[2]


def test_python_does_not_run_them():
    qp.init(arch=qp.python)
    grid = Grid((8,))
    u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
    with pytest.raises(CodegenError, match=r"arch=qp\.python does not support") as caught:
        three(u, v, u)
    assert "qp.init(arch=qp.cpu)" in str(caught.value)


# ----------------------------------------------------------------------- far


@qp.kernel
def from_the_first(u: A1, v: A1):
    for i in v:
        v[i] = u[i] - u[0]


@qp.kernel
def other_way_round(u: A1, v: A1):
    for i in v:
        v[i] = u[u.shape[0] - 1 - i]


@pytest.mark.parametrize("kernel", [from_the_first, other_way_round])
def test_far_reads_are_right_and_warned_of(kernel: Any, capsys: pytest.CaptureFixture[str]):
    with pytest.warns(RuntimeWarning, match="cells beyond a block along axis 0, which has 40") as caught:
        same_on_ranks(kernel, (40,), qp.f32, qp.f32, ranks=(2,))
    assert [warning.filename for warning in caught] == [__file__]

    def program() -> None:
        grid = Grid((40,))
        qp.dist.explain(kernel, grid.ndarray(qp.f32), grid.ndarray(qp.f32))

    with pytest.warns(RuntimeWarning):
        run_ranks(2, program)
    assert "far: half of axis 0 or more" in capsys.readouterr().out
