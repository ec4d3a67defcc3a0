"""Kernels over distributed arrays: any number of ranks gives the bits of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.dist import DistributedArray, Grid
from quadpy.errors import DistributedError, KernelSyntaxError

RANKS = (1, 2, 3, 8)
A1, A2, A3 = (qp.types.ndarray(ndim=n) for n in (1, 2, 3))


@pytest.fixture(autouse=True)
def _cpu():
    qp.init(arch=qp.cpu)


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def same_everywhere(steps: Callable[..., object], *arrays: np.ndarray[Any, Any], periodic: object = False) -> list[Any]:
    """What ``steps`` leaves in arrays on one device, after the same on ranks left the same bits."""
    plain = []
    for array in arrays:
        made = qp.ndarray(qp.f32 if array.ndim == 2 or array.shape[-1] > 3 else qp.math.vec2, array.shape[:2])
        made.from_numpy(array)
        plain.append(made)
    steps(*plain)
    expected = [each.to_numpy() for each in plain]

    def program() -> list[Any]:
        grid = Grid(plain[0].shape, periodic=periodic)
        own = [grid.ndarray(qp.math.vec2 if each.element_shape else qp.f32) for each in plain]
        for made, array in zip(own, arrays, strict=True):
            made.from_numpy(array)
        steps(*own)
        return [each.to_numpy() for each in own]

    for ranks in RANKS:
        for found in run_ranks(ranks, program):
            for got, want in zip(found, expected, strict=True):
                np.testing.assert_array_equal(got, want, err_msg=f"{ranks} ranks")
    return expected


@qp.kernel
def diffuse(u: A2, v: A2, k: qp.f32):
    for i, j in u:
        if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
            v[i, j] = u[i, j] + k * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])


@pytest.mark.parametrize("shape", [(37, 23), (9, 8), (300, 3)])
def test_a_stencil_with_a_fixed_rim(shape: tuple[int, int]):
    def steps(u: Any, v: Any) -> None:
        for _ in range(4):
            diffuse(u, v, 0.2)
            u, v = v, u

    same_everywhere(steps, numbers(shape), numbers(shape))


@qp.kernel
def wrapped(u: A2, v: A2):
    nx, ny = u.shape
    for i, j in v:
        v[i, j] = u[(i + 1) % nx, j] + 2 * u[(i - 1 + nx) % nx, (j + 1) % ny] - 3 * u[(i - 2) % nx, (j - 1) % ny]


@pytest.mark.parametrize("shape", [(37, 23), (9, 8), (6, 5), (130, 4)])
def test_a_stencil_that_wraps(shape: tuple[int, int]):
    def steps(u: Any, v: Any) -> None:
        for _ in range(3):
            wrapped(u, v)
            u, v = v, u

    same_everywhere(steps, numbers(shape), numbers(shape, 1), periodic=True)


@qp.kernel
def spread(u: qp.types.ndarray(qp.math.vec2, ndim=2), v: qp.types.ndarray(qp.math.vec2, ndim=2)):
    for I in qp.grouped(u):
        if I[0] >= 2 and I[1] < u.shape[1] - 3:
            v[I].x = u[I[0] - 2, I[1]].y + u[I[0], I[1] + 3].x
            v[I].y = u[I].x


def test_vectors_and_grouped_loops():
    def steps(u: Any, v: Any) -> None:
        spread(u, v)
        spread(v, u)

    same_everywhere(steps, numbers((20, 19, 2)), numbers((20, 19, 2), 1))


@qp.kernel
def rims(u: A2, value: qp.f32):
    for j in range(u.shape[1]):
        u[0, j] = value
    for j in range(u.shape[1]):
        u[u.shape[0] - 1, j] = u[u.shape[0] - 2, j]
    for i in range(1, u.shape[0], 2):
        u[i, 0] = u[i, 1] * value
    for j, i in qp.ndrange(u.shape[1], (2, 5)):
        u[i, j] += value


def test_loops_over_rims_and_parts():
    same_everywhere(lambda u: rims(u, 3.0), numbers((17, 13)))


@qp.kernel
def colours(u: A2, odd: qp.i32):
    for i, j in u:
        if (i + j) % 2 == odd and 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
            u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def test_red_and_black_in_place():
    def steps(u: Any) -> None:
        for _ in range(3):
            colours(u, 0)
            colours(u, 1)

    same_everywhere(steps, numbers((21, 18)))


@qp.kernel
def weighted(u: A2, v: A2, w: A1):
    for i, j in u:
        total = 0.0
        for d in range(-2, 3):
            if 0 <= i + d < u.shape[0]:
                total += w[d + 2] * u[i + d, j]
        v[i, j] = total


def test_an_inner_loop_and_an_array_that_every_rank_has():
    w = np.linspace(1, 2, 5, dtype=np.float32)
    same_everywhere(lambda u, v: weighted(u, v, w), numbers((22, 9)), numbers((22, 9)))


@qp.kernel
def smooth3(u: A3, v: A3):
    for i, j, k in u:
        if i > 0 and j > 0 and k + 1 < u.shape[2]:
            v[i, j, k] = u[i, j, k] + u[i - 1, j, k] * u[i, j - 1, k + 1]


def test_three_axes():
    start = numbers((12, 9, 10))

    def program() -> np.ndarray[Any, Any]:
        grid = Grid(start.shape)
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        u.from_numpy(start)
        smooth3(u, v)
        smooth3(v, u)
        return u.to_numpy()

    (one,) = run_ranks(1, program)
    for ranks in (2, 8):
        np.testing.assert_array_equal(run_ranks(ranks, program)[ranks - 1], one)


@qp.kernel
def sums(u: A2, v: A2, out: A1) -> (qp.f32, qp.f32):
    out[0] = 1.0
    out[2] = 1e9
    total = 0.0
    for i, j in u:
        if u[i, j] < -1.5:
            continue
        total += u[i, j] * v[i, j]
        out[0] -= u[i, j]
        qp.atomic_min(out[2], v[i, j])
    largest = -1e9
    for i, j in qp.ndrange((1, u.shape[0]), (2, u.shape[1])):
        qp.atomic_max(largest, u[i - 1, j - 2])
    return total, largest


@pytest.mark.parametrize("shape", [(70, 9), (200, 300)])
def test_reductions_have_the_same_bits_for_any_number_of_ranks(shape: tuple[int, int]):
    a, b = numbers(shape), numbers(shape, 1)

    def program() -> tuple[Any, ...]:
        grid = Grid(shape)
        u, v, out = grid.ndarray(qp.f32), grid.ndarray(qp.f32), qp.ndarray(qp.f32, 3)
        u.from_numpy(a)
        v.from_numpy(b)
        found = sums(u, v, out)
        return *found, *out.to_numpy().tolist()

    (one,) = run_ranks(1, program)
    kept = a >= -1.5
    assert one[0] == pytest.approx(float((a.astype(float) * b)[kept].sum()), rel=1e-3, abs=1e-2)
    assert one[1] == a[:-1, :-2].max()
    assert one[2] == pytest.approx(1 - float(a.astype(float)[kept].sum()), rel=1e-3, abs=1e-2)
    assert one[4] == b[kept].min()
    for ranks in RANKS[1:]:
        assert run_ranks(ranks, program) == [one] * ranks


def test_a_halo_is_exchanged_once_for_each_version():
    def program() -> list[int]:
        grid = Grid((64, 64))
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        transport, counts = grid.world.transport, list[int]()
        start = transport.start_exchange

        def counted(*arguments: Any) -> Any:
            counts[-1] += 1
            return start(*arguments)

        transport.start_exchange = counted  # type: ignore[method-assign]
        for kernel in (diffuse, diffuse, weighted):
            counts.append(0)
            kernel(u, v, 0.1 if kernel is diffuse else np.ones(5, np.float32))
        for change in (lambda: u.fill(1.0), lambda: u.__setitem__((3, 3), 2.0), lambda: rims(u, 1.0)):
            change()
            counts.append(0)
            diffuse(u, v, 0.1)
        return counts

    assert run_ranks(2, program) == [[1, 0, 1, 1, 1, 1]] * 2


def test_access_from_the_host():
    start = numbers((9, 7))

    def program() -> None:
        grid = Grid((9, 7))
        u = grid.ndarray(qp.f32)
        u.from_numpy(start)
        assert u[8, 6] == start[8, 6]
        assert u[-9, 0] == start[0, 0]
        u[4, 3] = 5.0
        whole = u.to_numpy()
        assert whole[4, 3] == 5.0
        low, high = grid.block
        np.testing.assert_array_equal(u.owned_to_numpy(), whole[tuple(map(slice, low, high))])
        with pytest.raises(qp.BoundsError, match="outside"):
            u[9, 0]
        with pytest.raises(qp.ArgumentError, match="takes \\(9, 7\\)"):
            u.from_numpy(start[:4])

    run_ranks(4, program)


def test_explain(capsys: pytest.CaptureFixture[str]):
    def program() -> None:
        grid = Grid((64, 32), ranks=(2, 1))
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        if grid.world.rank == 0:
            qp.dist.explain(diffuse, u, v, 0.1)
            qp.dist.explain(sums, u, v, qp.ndarray(qp.f32, 3))
            with pytest.raises(qp.ArgumentError, match="no argument is distributed"):
                qp.dist.explain(diffuse, qp.ndarray(qp.f32, (3, 3)), qp.ndarray(qp.f32, (3, 3)), 0.1)

    run_ranks(2, program)
    text = capsys.readouterr().out
    for words in (
        "diffuse on 2 x 1 ranks; rank 0 owns [0:32, 0:32]",
        "reads u up to 1 below and 1 above along axis 0 beyond the block",
        "halo: 128 bytes, from rank 1",
        "split: [0:31, 0:32] (97%) while halos are exchanged, then 1 slab",
        "every rank does the same",
        "combines one f32 of each cell by add, over 2048 tiles",
    ):
        assert words in text, text


# ----------------------------------------------------------------------- what is refused, with its line


@qp.kernel
def gather(u: A1, v: A1, at: A1):
    for i in u:
        v[i] = u[qp.i32(at[i])]


@qp.kernel
def all_of_it(u: A1, v: A1):
    for i in u:
        total = 0.0
        for k in range(u.shape[0]):
            total += u[k]
        v[i] = total


@qp.kernel
def scatter(u: A1, v: A1, at: A1):
    for i in u:
        if i + 1 < u.shape[0]:
            v[i + 1] = u[i]


@qp.kernel
def own_copy(u: A1, v: A1, at: A1):
    for i in u:
        at[i] = u[i]


@qp.kernel
def outside_of_loops(u: A1, v: A1, at: A1):
    u[3] = 1.0


@pytest.mark.parametrize(
    ("kernel", "words", "line"),
    [
        (gather, "at an index that data decide", "v[i] = u[qp.i32(at[i])]"),
        (all_of_it, "reads all of axis 0", "total += u[k]"),
        (scatter, "writes elements of other cells", "v[i + 1] = u[i]"),
        (own_copy, "each rank has its own at", "at[i] = u[i]"),
        (outside_of_loops, "not in a loop over the grid", "u[3] = 1.0"),
    ],
)
def test_what_ranks_cannot_do_together(kernel: Any, words: str, line: str):
    def program() -> None:
        grid = Grid((40,))
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        kernel(u, v, *([np.zeros(40, np.float32)] if kernel is not all_of_it else []))

    with pytest.raises((DistributedError, KernelSyntaxError), match=words) as caught:
        run_ranks(2, program)
    assert line in str(caught.value)
    assert "hint:" in str(caught.value)


@qp.kernel
def transposed(u: A2) -> qp.f32:
    s = 0.0
    for j, i in qp.ndrange(u.shape[1], u.shape[0]):
        s += u[i, j]
    return s


@pytest.mark.parametrize(("shape", "ranks"), [((4, 10), (4, 1)), ((6, 20), (2, 2))])
def test_a_loop_whose_axes_are_in_another_order(shape: tuple[int, int], ranks: tuple[int, int]):
    start = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)

    def program() -> float:
        grid = Grid(shape, ranks=ranks)
        u = grid.ndarray(qp.f32)
        u.from_numpy(start)
        return float(transposed(u))

    assert run_ranks(4, program) == [start.sum()] * 4


@qp.kernel
def every_twice(u: A1) -> qp.f32:
    s = 0.0
    for i in range(2 * u.shape[0]):
        s += u[i // 2]
    return s


@qp.kernel
def two_more(u: A1, v: A1):
    n = u.shape[0]
    for i in range(n + 2):
        if i < n:
            v[i] = u[i]


@qp.kernel
def from_below(u: A1, v: A1):
    for i in range(-1, u.shape[0]):
        if i >= 0:
            v[i] = u[i]


@pytest.mark.parametrize("kernel", [every_twice, two_more, from_below])
def test_iterations_without_a_cell_are_refused(kernel: Any):
    def program() -> None:
        grid = Grid((20,))
        kernel(*[grid.ndarray(qp.f32) for _ in range(1 if kernel is every_twice else 2)])

    for ranks in (1, 2, 4):
        with pytest.raises(DistributedError, match="iterations outside of the 20 cells") as caught:
            run_ranks(ranks, program)
        assert "for i in range(" in str(caught.value)


@qp.kernel
def several_times(u: A1, v: A1) -> qp.f32:
    s = 0.0
    for i, _k in qp.ndrange(u.shape[0], 3):
        v[i] += 1.0
        s += u[i]
    return s


def test_a_sum_of_several_iterations_a_cell_is_refused():
    def program() -> None:
        grid = Grid((20,))
        several_times(grid.ndarray(qp.f32), grid.ndarray(qp.f32))

    with pytest.raises(KernelSyntaxError, match="must run over all axes of the grid, and no others"):
        run_ranks(2, program)


@qp.kernel
def many_periods(u: A2, v: A2):
    n = u.shape[0]
    for i, j in v:
        v[i, j] = u[(i - 1 + 10 * n) % n, j] + u[(i + 1 - 5 * n) % n, j]


def test_indices_many_periods_away():
    same_everywhere(many_periods, numbers((20, 6)), numbers((20, 6)), periodic=(True, False))


def test_arrays_of_different_grids():
    def program() -> None:
        copy: Callable[[DistributedArray, DistributedArray], None] = lambda u, v: diffuse(u, v, 0.1)  # noqa: E731
        copy(Grid((8, 8)).ndarray(qp.f32), Grid((8, 9)).ndarray(qp.f32))

    with pytest.raises(DistributedError, match="u and v are of different grids"):
        run_ranks(2, program)


def test_arrays_of_two_grids_that_are_alike():
    with pytest.raises(DistributedError, match=r"u and v are of two grids that are alike: Grid\(\(8, 8\)") as caught:
        diffuse(Grid((8, 8)).ndarray(qp.f32), Grid((8, 8)).ndarray(qp.f32), 0.1)
    assert "qp.dist.Grid once" in caught.value.hint


@qp.data_oriented
class Ring:
    """A flow of fields round a ring, as users write it for one device."""

    def __init__(self, make: Callable[[Any], Any], start: np.ndarray[Any, Any]) -> None:
        self.u, self.v = make(qp.f32), make(qp.math.vec2)
        self.plain = qp.field(qp.f32, shape=3)
        self.plain.from_numpy(np.array([1, 2, 3], np.float32))
        self.u.from_numpy(start)

    @qp.kernel
    def turn(self):
        for i, j in self.u:
            n = self.u.shape[0]
            self.v[i, j] = qp.math.vec2(self.u[(i - 1) % n, j], self.plain[1])
        for i, j in self.v:
            self.u[i, j] = self.v[(i + 1) % self.v.shape[0], j].x + self.v[i, j].y * self.u[i, j]


def test_fields_by_name():
    start = numbers((19, 6))
    alone = Ring(
        lambda dtype: qp.field(dtype, shape=(19, 6)) if dtype is qp.f32 else qp.Vector.field(2, qp.f32, shape=(19, 6)),
        start,
    )

    def program() -> Any:
        grid = Grid((19, 6), periodic=(True, False))
        ring = Ring(grid.field, start)
        for _ in range(3):
            ring.turn()
        assert repr(ring.u) == "distributed field(f32, shape=(19, 6))"
        return ring.u.to_numpy()

    for _ in range(3):
        alone.turn()
    for ranks in (1, 3, 4):
        for found in run_ranks(ranks, program):
            np.testing.assert_array_equal(found, alone.u.to_numpy())


def test_a_captured_call_renews_its_halos_at_each_launch():
    """On one rank, whose transport can be captured; what an eager call believed of halos before is forgotten."""
    start = numbers((16, 12))

    def program() -> np.ndarray[Any, Any]:
        grid = Grid((16, 12), periodic=True)
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        u.from_numpy(start)
        for _ in range(2):
            wrapped(u, v)
            wrapped(v, u)
        with qp.graph.capture() as graph:
            wrapped(u, v)
            wrapped(v, u)
        made = graph.instantiate()
        for _ in range(3):
            made.launch()
        return u.to_numpy()

    def eager() -> np.ndarray[Any, Any]:
        grid = Grid((16, 12), periodic=True)
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        u.from_numpy(start)
        for _ in range(5):
            wrapped(u, v)
            wrapped(v, u)
        return u.to_numpy()

    np.testing.assert_array_equal(program(), eager())
    with pytest.raises(qp.CaptureError, match="exchange between ranks"):
        run_ranks(2, program)


@qp.kernel
def blend(u: A2, v: A2, out: A1):
    out[0] = 0.0
    for i, j in u:
        v[i, j] = u[(i + 1) % u.shape[0], j] + 0.5 * u[i, j]
        out[0] += u[i, j]
    for i, j in u:
        u[i, j] = v[i, j] / (1.0 + out[0] * out[0])


def test_a_captured_step_is_cut_at_messages():
    start = numbers((16, 12))

    def program() -> list[Any]:
        grid = Grid((16, 12), periodic=True)
        u, v, out = grid.ndarray(qp.f32), grid.ndarray(qp.f32), qp.ndarray(qp.f32, 3)

        def step() -> None:
            wrapped(u, v)
            blend(v, u, out)

        wrapped(v, u)  # reads further around v than the step
        v.fill(0.0)
        u.from_numpy(start)
        made = qp.dist.capture(step)
        for _ in range(3):
            made.launch()
        wrapped(v, u)
        captured = u.to_numpy(), v.to_numpy(), out[0]
        u.from_numpy(start)
        v.fill(0.0)
        for _ in range(4):
            step()
        wrapped(v, u)
        for one, other in zip(captured, (u.to_numpy(), v.to_numpy(), out[0]), strict=True):
            np.testing.assert_array_equal(one, other)
        assert made.graphs >= 1
        if grid.world.size > 1:
            with pytest.raises(qp.CaptureError, match="would move in memory"):
                sums(v, u, out)
        others = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        with pytest.raises(qp.CaptureError, match="returns"):
            qp.dist.capture(lambda: sums(*others, out))
        made.launch()  # the refused capture has left nothing open
        return [u.to_numpy().tolist(), made.graphs]

    (one,) = run_ranks(1, program)
    for found in run_ranks(4, program):
        assert found[0] == one[0]
        assert found[1] > one[1]
