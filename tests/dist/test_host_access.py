"""What the host does with distributed arrays: all ranks do it together, and graphs of it renew halos."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.dist import Grid
from quadpy.errors import ArgumentError, RankLostError, RanksDisagreeError

A1 = qp.types.ndarray(ndim=1)
START, OTHER = np.arange(12, dtype=np.float32), np.linspace(5, 6, 12, dtype=np.float32)


@pytest.fixture(autouse=True)
def _cpu():
    qp.init(arch=qp.cpu)


@qp.kernel
def with_left(u: A1, v: A1):
    for i in u:
        v[i] = u[i]
        if i > 0:
            v[i] = u[i] + u[i - 1]


def both_ways(u: Any, v: Any) -> None:
    with_left(u, v)
    with_left(v, u)


WRITES: list[Callable[[Any], None]] = [
    lambda u: u.fill(2.0),
    lambda u: u.from_numpy(OTHER),
    lambda u: u.__setitem__(7, 3.0),
]


@pytest.mark.parametrize("write", WRITES, ids=["fill", "from_numpy", "setitem"])
def test_a_graph_that_writes_alone_makes_halos_stale(write: Callable[[Any], None]):
    """The graph runs after calls that have renewed the halo: what they knew of it is forgotten."""

    def run(u: Any, v: Any, step: Callable[[], object] | None = None) -> np.ndarray[Any, Any]:
        u.from_numpy(START)
        both_ways(u, v)
        launch = qp.dist.capture(lambda: write(u)).launch if step is None else lambda: write(u)
        if step is not None:
            write(u)
        for _ in range(2):
            both_ways(u, v)
            launch()
            both_ways(u, v)
        found: np.ndarray[Any, Any] = u.to_numpy()
        return found

    expected = run(qp.ndarray(qp.f32, 12), qp.ndarray(qp.f32, 12), step=lambda: None)

    def program() -> np.ndarray[Any, Any]:
        grid = Grid((12,))
        return run(grid.ndarray(qp.f32), grid.ndarray(qp.f32))

    for ranks in (1, 3):
        for found in run_ranks(ranks, program):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("write", WRITES, ids=["fill", "from_numpy", "setitem"])
def test_a_graph_keeps_the_memory_that_it_writes(write: Callable[[Any], None]):
    def program() -> None:
        grid = Grid((12,))
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        made = qp.dist.capture(lambda: write(u))
        with pytest.raises(qp.CaptureError, match="would move in memory, but a graph uses it"):
            with_left(u, v)
        made.launch()

    run_ranks(2, program)


@pytest.mark.parametrize("read", [lambda u: u[3], lambda u: u.to_numpy()], ids=["getitem", "to_numpy"])
def test_a_capture_refuses_to_read_on_every_rank(read: Callable[[Any], object]):
    def program() -> None:
        u = Grid((12,)).ndarray(qp.f32)
        for _ in range(2):
            with pytest.raises(qp.CaptureError, match="cannot record reading an array"):
                qp.dist.capture(lambda: read(u) if qp.dist.world().rank >= 0 else None)
        assert u[3] == 0.0

    run_ranks(3, program)


@qp.kernel
def sum_of_left(u: A1, v: A1, w: A1):
    for i in u:
        if i > 0:
            w[i] = u[i - 1] + v[i - 1]


def test_a_capture_makes_the_halos_that_the_run_before_it_did_not_need():
    """The step runs once before it is captured; then one halo is current, and where a graph begins none is."""

    def program() -> None:
        grid = Grid((12,))
        u, v, w = (grid.ndarray(qp.f32) for _ in range(3))
        both_ways(u, v)
        with_left(u, w)  # the halo of u is current, that of v is not
        made = qp.dist.capture(lambda: sum_of_left(u, v, w))
        for value in (1.0, 3.0):
            u.fill(value)
            v.fill(2.0)
            made.launch()
            assert w.to_numpy().tolist()[1:] == [value + 2.0] * 11

    run_ranks(3, program)


CALLS: dict[str, Callable[[Any], object]] = {
    "owned_from_numpy": lambda u: u.owned_from_numpy(np.ones(u.grid.block.shape, np.float32)),
    "from_numpy": lambda u: u.from_numpy(START),
    "fill": lambda u: u.fill(1.0),
    "setting element (3,)": lambda u: u.__setitem__(3, 1.0),
    "reading element (3,)": lambda u: u[3],
    "to_numpy": lambda u: u.to_numpy(),
}


def test_a_rank_takes_a_copy_of_its_own_elements():
    u = Grid((12, 3)).ndarray(qp.f32)
    own = u.owned_to_numpy()
    u.fill(3)
    assert type(own) is np.ndarray
    assert not own.any()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_one_rank_alone_is_an_error_on_all(name: str):
    """Beside another call of the others, and beside a kernel, whose halos it would have made stale on one rank only."""

    def beside_another_call() -> None:
        grid = Grid((12,))
        u = grid.ndarray(qp.f32)
        other = "fill" if name != "fill" else "to_numpy"
        CALLS[name if grid.world.rank == 1 else other](u)

    with pytest.raises(RanksDisagreeError, match="ranks disagree about the next call") as caught:
        run_ranks(3, beside_another_call)
    assert f"{name} of distributed ndarray(f32, shape=(12,)) on rank 1" in str(caught.value)

    def beside_a_kernel() -> None:
        grid = Grid((12,))
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        both_ways(u, v)
        if grid.world.rank == 1:
            CALLS[name](u)
        both_ways(u, v)

    with pytest.raises(RankLostError):
        run_ranks(2, beside_a_kernel, timeout=0.3)


def test_grids_of_fewer_cells_than_ranks():
    def program() -> None:
        with pytest.raises(qp.ArgumentError, match="cannot be divided among 4 ranks") as caught:
            Grid((3,))
        assert "start fewer ranks" in str(caught.value)
        with pytest.raises(qp.ArgumentError, match="has at most \\(2, 8\\) blocks"):
            Grid((2, 8), ranks=(4, 1))
        assert Grid((2, 8)).ranks in ((1, 4), (2, 2))

    run_ranks(4, program)


@pytest.mark.parametrize("size", [1, 3])
def test_copies_between_arrays_of_a_grid(size):
    """Halos are those of the copy afterwards, whatever they were, also where the graph of a step has the copy."""

    def program() -> list[np.ndarray]:
        grid = Grid(12)
        u, v, w = (grid.ndarray(qp.f32) for _ in range(3))
        f = grid.field(qp.f64)
        u.from_numpy(START)
        f.copy_from(u)  # of another type
        both_ways(u, v)
        w.copy_from(f)  # which has no halo
        with_left(w, v)
        first = v.to_numpy()
        step = qp.dist.capture(lambda: (w.copy_from(u), with_left(w, v)))
        step.launch()
        u.from_numpy(OTHER)
        step.launch()
        return [first, w.to_numpy(), v.to_numpy()]

    for first, w, v in run_ranks(size, program):
        left = np.r_[0, START[:-1]]
        np.testing.assert_array_equal(first, START + left)
        np.testing.assert_array_equal(w, OTHER)
        np.testing.assert_array_equal(v, OTHER + np.r_[np.float32(0), OTHER[:-1]])


def test_copies_of_what_is_not_of_the_grid():
    grid = Grid(12)
    u = grid.ndarray(qp.f32)
    for other in (qp.ndarray(qp.f32, 12), START, Grid(12).ndarray(qp.f32)):
        with pytest.raises(qp.ArgumentError, match="takes an array of the same grid") as caught:
            u.copy_from(other)
        assert "from_numpy" in caught.value.hint
    with pytest.raises(qp.ArgumentError, match="does not fit"):
        u.copy_from(grid.ndarray(qp.math.vec2))


def test_names_that_distributed_arrays_do_not_have():
    with pytest.raises(AttributeError, match=r"a distributed ndarray has no attribute 'to_nump'.*to_numpy"):
        Grid(4).ndarray(qp.f32).to_nump  # noqa: B018 - must raise


class Plain:
    """Makes arrays as a grid does."""

    def ndarray(self, dtype: Any) -> Any:
        return qp.ndarray(dtype, 12)

    def field(self, dtype: Any) -> Any:
        return qp.field(dtype, 12)


def component(u: Any, _: Any) -> None:
    u[2][1] = 4.0


def name(u: Any, _: Any) -> None:
    u[3].z = 5.0
    u[-1].xy = [1, 2]


def update(u: Any, _: Any) -> None:
    u[3] += 1.0
    u[4][0] += 2.0
    u[4].y -= 3.0


def slices(u: Any, _: Any) -> None:
    u[5][1:] = [7, 8]
    u[6][-1] = 9


def read_before(u: Any, _: Any) -> None:
    v = u[9]
    u[9] = [1.0, 2.0, 3.0]
    v.x = 6.0


def matrix(_: Any, m: Any) -> None:
    m[1][0, 1] = 5
    m[8][1, :] = [3, 4]
    m[8] += 1


@pytest.mark.parametrize(
    "write", [component, name, update, slices, read_before, matrix], ids=lambda each: each.__name__
)
@pytest.mark.parametrize("kind", ["ndarray", "field"])
@pytest.mark.usefixtures("any_debug")
def test_a_part_of_an_element_writes_through(write: Callable[[Any, Any], None], kind: str):
    def program(grid: Any) -> list[Any]:
        u, m = (getattr(grid, kind)(dtype) for dtype in (qp.math.vec3, qp.types.matrix(2, 2, qp.i32)))
        write(u, m)
        return [u.to_numpy(), m.to_numpy(), u[2], m[1]]

    expected = program(Plain())
    for ranks in (1, 2, 3, 4):
        for found in run_ranks(ranks, lambda: program(Grid((12,)))):
            for got, want in zip(found, expected, strict=True):
                assert type(got) is type(want)
                np.testing.assert_array_equal(got, want, err_msg=f"{ranks} ranks")


def test_a_part_of_an_element_makes_halos_stale():
    @qp.kernel
    def left(u: A1, v: A1):
        for i in u:
            if i > 0:
                v[i] = u[i - 1]

    def program() -> Any:
        grid = Grid((12,))
        u, v = grid.ndarray(qp.math.vec2), grid.ndarray(qp.math.vec2)
        for n in range(12):
            left(u, v)
            u[n].y = n
        left(u, v)
        return v.to_numpy()[:, 1]

    for found in run_ranks(4, program):
        np.testing.assert_array_equal(found, [0, *range(11)])


def test_a_rank_that_sets_a_part_alone():
    def program() -> None:
        u = Grid((12,)).ndarray(qp.math.vec2)
        v = u[3]
        if qp.dist.world().rank == 1:
            v.x = 1.0
        u.to_numpy()

    with pytest.raises(RanksDisagreeError, match=r"setting a part of element \(3,\) of"):
        run_ranks(2, program, timeout=20)


def test_slices_are_refused():
    u = Grid((12,)).ndarray(qp.math.vec2)
    for use in (lambda: u[1:3], lambda: u.__setitem__(slice(1, 3), 1.0)):
        with pytest.raises(
            ArgumentError, match=r"(?s)is not a cell of.*to_numpy\(\) has all elements, from_numpy sets"
        ):
            use()
