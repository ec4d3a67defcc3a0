"""``debug=True`` on ranks: it refuses nothing that runs without it, and errors have global indices."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.errors import KernelAssertionError, KernelIndexError, KernelOverflowError, KernelRaceError
from ranks import lines_of, run_program

A2 = qp.types.ndarray(ndim=2)
SHAPE = (12, 6)

pytestmark = pytest.mark.usefixtures("debug")


@qp.kernel
def relax(u: A2, colour: qp.i32):
    """Red and black cells in turn: free of races for one colour."""
    for i, j in u:
        if (i + j) % 2 == colour:
            above = u[i, j + 1] if j + 1 < u.shape[1] else u[i, j]
            u[i, j] = 0.25 * (u[(i + 1) % u.shape[0], j] + u[(i - 1) % u.shape[0], j] + above)


@qp.kernel
def flow(u: A2, after: A2, solid: A2):
    for i, j in u:
        inside = 0 < i < u.shape[0] - 1
        change = u[i, j] * 0.0
        if inside and solid[i, j].x == 0.0:
            change = u[i - 1, j] + u[i + 1, j] - 2.0 * u[i, j]
        after[i, j] = u[i, j] + 0.1 * change


@qp.kernel
def count(u: A2) -> qp.i32:
    found = 0
    for i, j in u:
        if u[i, j].x > 0.0:
            found += 1
    return found


class Plain:
    """Makes arrays as a grid does, for programs without ranks."""

    def ndarray(self, dtype: Any) -> Any:
        return qp.ndarray(dtype, SHAPE)

    def field(self, dtype: Any) -> Any:
        return qp.field(dtype, SHAPE)


def noise(seed: int, *element: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random((*SHAPE, *element), np.float32) - 0.5


def relaxed(grid: Any) -> list[Any]:
    u = grid.ndarray(qp.f32)
    u.from_numpy(noise(1))
    for n in range(6):
        relax(u, n % 2)
    return [u.to_numpy()]


def flowed(grid: Any) -> list[Any]:
    u, after, solid = grid.ndarray(qp.math.vec3), grid.ndarray(qp.math.vec3), grid.ndarray(qp.math.vec2)
    u.from_numpy(noise(2, 3))
    for _ in range(3):
        flow(u, after, solid)
        flow(after, u, solid)
    return [u.to_numpy(), count(u)]


def relaxed_in_a_field(grid: Any) -> list[Any]:
    u = grid.field(qp.f32)
    u.from_numpy(noise(3))

    @qp.kernel
    def half(colour: qp.i32):
        for i, j in u:
            if i % 2 == colour:
                u[i, j] = 0.5 * (u[i, j] + u[(i + 1) % u.shape[0], j])

    half(0)
    half(1)
    return [u.to_numpy()]


def replayed(grid: Any) -> list[Any]:
    u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
    u.from_numpy(noise(4))

    def step() -> None:
        relax(u, 0)
        relax(u, 1)
        v.copy_from(u)

    if isinstance(grid, Plain):
        step()
        step()
    else:
        qp.dist.capture(step).launch()
    return [v.to_numpy()]


@pytest.mark.parametrize("program", [relaxed, flowed, relaxed_in_a_field, replayed], ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    "watch", [contextlib.nullcontext, qp.hazards.check, qp.profile], ids=["alone", "hazards", "profile"]
)
def test_any_number_of_ranks_gives_the_bits_of_plain_arrays(program: Callable[[Any], list[Any]], watch: Any):
    plain = program(Plain())
    assert np.ptp(plain[0]) > 0
    for n in (1, 2, 3, 4):
        with watch():
            every = run_ranks(n, lambda: program(qp.dist.Grid(SHAPE, periodic=True)))
        for found in every:
            for got, want in zip(found, plain, strict=True):
                np.testing.assert_array_equal(got, want, err_msg=f"{n} ranks")


@qp.kernel
def collide(u: A2, at: qp.i32, by: qp.i32):
    """Row ``at`` reads another, which its own iterations write."""
    for i, j in u:
        if i == at:
            u[i, j] = u[i + by, j]
        elif i == at + by:
            u[i, j] = 2.0


@qp.kernel
def above(u: A2, v: A2, by: qp.i32):
    for i, j in u:
        v[i, j] = u[i, j + by]


@qp.kernel
def add(u: A2, x: qp.i32):
    for i, j in u:
        u[i, j] = u[i, j] + x


@qp.kernel
def positive(u: A2):
    for i, j in u:
        assert u[i, j] >= 0, f"cell {i}, {j}"
        u[i, j] += 1


def racing(grid: Any) -> None:
    collide(grid.ndarray(qp.f32), 8, 1)


def leaving(grid: Any) -> None:
    above(grid.ndarray(qp.f32), grid.ndarray(qp.f32), 1)


def overflowing(grid: Any) -> None:
    u = grid.ndarray(qp.i32)
    u[9, 3] = 2**31 - 1
    add(u, 1)


def failing(grid: Any) -> None:
    u = grid.ndarray(qp.f32)
    u[9, 3] = -1.0
    positive(u)


FAULTS = {
    racing: (KernelRaceError, r"iteration i=[89], j=\d \w+ u\[9, (\d)\], and iteration i=[89], j=\1 \w+ it"),
    leaving: (KernelIndexError, r"u\[\d+, 6\] is out of range: index 6 of axis 1, which has extent 6"),
    overflowing: (KernelOverflowError, r"at i = 9, j = 3"),
    failing: (KernelAssertionError, r"cell 9, 3(?s:.)*at i = 9, j = 3"),
}


@pytest.mark.parametrize("program", FAULTS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("ranks", [(1, 1), (2, 1), (3, 1), (2, 2)], ids=str)
@pytest.mark.parametrize("periodic", [True, False])
def test_errors_have_global_indices(program: Callable[[Any], None], ranks: tuple[int, int], periodic: bool):
    error, message = FAULTS[program]
    with pytest.raises(error, match=message):
        run_ranks(ranks[0] * ranks[1], lambda: program(qp.dist.Grid(SHAPE, periodic=periodic, ranks=ranks)))


EXAMPLES = """
    import hashlib
    import quadpy as qp
    from quadpy.examples import cavity, heat, lattice_boltzmann, poisson

    qp.init(arch=qp.cpu, debug=DEBUG)
    metal, channel = heat.Metal(16), lattice_boltzmann.Channel(12)
    for _ in range(2):
        metal.step()
        channel.step()
    box = cavity.Cavity(12, relaxations=3)
    box.step()
    found, count = poisson.solve(poisson.random_charges(20, 5), 5)
    arrays = metal.u.to_numpy(), channel.f.to_numpy(), channel.vorticity(), found, box.u.to_numpy(), box.p.to_numpy()
    print(*(hashlib.sha256(each.tobytes()).hexdigest()[:16] for each in arrays), heat.mean(metal.u), count, flush=True)
"""


def test_the_examples_have_the_bits_of_a_run_without_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Over MPI; ranks that are threads run them, too."""

    def run(debug: bool) -> None:
        text = textwrap.dedent(EXAMPLES).replace("DEBUG", str(debug))
        exec(compile(text, "alone", "exec"), {"__name__": "alone"})

    run(False)
    (alone,) = capsys.readouterr().out.splitlines()
    for n in (1, 2, 4):
        run_ranks(n, lambda: run(True))
        assert capsys.readouterr().out.splitlines() == [alone] * n
    done = run_program(tmp_path, EXAMPLES.replace("DEBUG", "True"), 4)  # other numbers over MPI: test_real_ranks
    assert done.returncode == 0, done.stderr
    for rank in range(4):
        assert lines_of(done.stdout, rank) == [alone]


@qp.kernel
def to_the_right(u: A2, after: A2):
    for i, j in u:
        after[i, j] = u[i - 1, j] if i > 0 else u[i, j] + 1.0


def test_captured_steps_run_again():
    """The launches of a captured step have the same arguments each time, those for checks included."""

    def program() -> Any:
        grid = qp.dist.Grid(SHAPE)
        u, after = grid.ndarray(qp.f32), grid.ndarray(qp.f32)

        def both() -> None:
            to_the_right(u, after)
            to_the_right(after, u)

        made = qp.dist.capture(both)
        for _ in range(2):
            made.launch()
        return u.to_numpy()[:, 0].tolist()

    assert run_ranks(2, program) == [[6.0, 5.0, 4.0, 3.0, 2.0, 1.0, *[0.0] * 6]] * 2
