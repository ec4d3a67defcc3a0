"""Arrays on faces and corners: the same bits on any number of ranks and, but for sums, in plain arrays."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.dist import Grid
from quadpy.errors import ArgumentError, DistributedError, KernelIndexError

A2 = qp.types.ndarray(qp.f32, ndim=2)
CELLS, ACROSS, ALONG, CORNERS = (False, False), (True, False), (False, True), (True, True)


@qp.kernel
def to_faces(p: A2, fx: A2, fy: A2, corner: A2):
    n, m = p.shape
    for i, j in fx:
        fx[i, j] = p[i, j] - p[i - 1, j] if 0 < i < n else 1.0
    for i, j in fy:
        fy[i, j] = p[i, j] if j < m else p[i, j - 1]
    for i, j in qp.ndrange(n + 1, m + 1):
        corner[i, j] = fx[i, qp.min(j, m - 1)] + fy[qp.min(i, n - 1), j]
    for i, j in qp.ndrange((1, n), (0, m)):
        fx[i, j] *= 0.5


@qp.kernel
def to_cells(p: A2, fx: A2, fy: A2, corner: A2) -> qp.f32:
    n, m = p.shape
    for i, j in p:
        p[i, j] += 0.1 * (fx[i + 1, j] - fx[i, j] + fy[i, j + 1] - fy[i, j]) + 0.01 * corner[i + 1, j + 1]
    for i, j in qp.ndrange(n + 1, m):
        change = fx[i, j]
        if i < n:
            p[i, j] -= change
    for j in range(m):
        fx[n, j] = fx[n - 1, j]
    greatest = 0.0
    for i, j in fx:
        qp.atomic_max(greatest, abs(fx[i, j]))
    return greatest


@qp.kernel
def total(u: A2) -> qp.f32:
    s = 0.0
    for i, j in u:
        s += u[i, j]
    return s


def plain(shape: tuple[int, int]) -> Callable[[Any], Any]:
    return lambda staggered: qp.ndarray(qp.f32, tuple(map(sum, zip(shape, staggered, strict=True))))


def advanced(make: Callable[[Any], Any], start: Any) -> tuple[list[Any], list[Any]]:
    arrays = [make(each) for each in (CELLS, ACROSS, ALONG, CORNERS)]
    arrays[0].from_numpy(start)
    greatest = []
    for _ in range(3):
        to_faces(*arrays)
        greatest.append(to_cells(*arrays))
    return [each.to_numpy().tobytes() for each in arrays] + greatest, [total(each) for each in arrays]


@pytest.mark.usefixtures("any_debug")
def test_faces_and_cells():
    same_everywhere((13, 9), (2, 3, 4))


def test_faces_in_tiles_of_their_own():
    """As there are 64 tiles along an axis, 64 cells have one each, and the last face has a tile that no cell has."""
    qp.init(arch=qp.cpu)
    same_everywhere((64, 3), (2, 3))


def same_everywhere(shape: tuple[int, int], sizes: tuple[int, ...]) -> None:
    start = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    wanted, _ = advanced(plain(shape), start)

    def program() -> Any:
        grid = Grid(shape)
        return advanced(lambda staggered: grid.ndarray(qp.f32, staggered=staggered), start)

    ((found, sums),) = run_ranks(1, program)
    assert found == wanted
    for ranks in sizes:
        assert run_ranks(ranks, program) == [(found, sums)] * ranks


def test_fields_and_captured_steps():
    def program() -> Any:
        grid = Grid((10, 6))
        face, cell = grid.field(qp.f32, staggered=(True, False)), grid.field(qp.f32, name="cell")

        @qp.kernel
        def step():
            for i, j in face:
                face[i, j] += cell[qp.max(i - 1, 0), j] + i
            for i, j in cell:
                cell[i, j] = face[i, j] + face[i + 1, j]

        qp.dist.capture(step).launch()
        return face.to_numpy().tolist(), cell.to_numpy().tolist()

    qp.init(arch=qp.cpu)
    (alone,) = run_ranks(1, program)
    face, cell = np.zeros((11, 6)), np.zeros((10, 6))
    for _ in range(2):
        face += cell[np.maximum(np.arange(11) - 1, 0)] + np.arange(11)[:, None]
        cell = face[:-1] + face[1:]
    assert alone == (face.tolist(), cell.tolist())
    assert run_ranks(4, program) == [alone] * 4


def test_the_host_reads_and_writes_faces():
    def program() -> Any:
        grid = Grid((4, 6), ranks=(2, 1))
        u, v = grid.ndarray(qp.f32, staggered=(True, False)), grid.ndarray(qp.f32, staggered=(True, False))
        u.from_numpy(np.arange(30, dtype=np.float32).reshape(5, 6))
        u[4, 5] = 100.0
        v.copy_from(u)
        with pytest.raises(ArgumentError, match="does not fit"):
            v.copy_from(grid.ndarray(qp.f32))
        owned = u.owned_to_numpy()
        u.owned_from_numpy(owned + 1)
        return owned.shape, v[4, 5], u.to_numpy()[4].tolist()

    qp.init(arch=qp.cpu)
    last = [25.0, 26.0, 27.0, 28.0, 29.0, 101.0]
    assert run_ranks(2, program) == [((2, 6), 100.0, last), ((3, 6), 100.0, last)]


def test_a_periodic_axis_has_no_more_faces_than_cells():
    grid = Grid((4, 6), periodic=(True, False))
    assert grid.ndarray(qp.f32, staggered=(False, True)).shape == (4, 7)
    with pytest.raises(ArgumentError, match="the last face along a periodic axis is the first one again") as caught:
        grid.ndarray(qp.f32, staggered=True)
    assert "face i below cell i" in str(caught.value)
    with pytest.raises(ArgumentError, match="3 values for 2 axes"):
        grid.field(qp.f32, staggered=(True, False, True))


@qp.kernel
def beyond_the_last_face(u: A2):
    for i, j in u:
        u[i + 1, j] = 1.0


@qp.kernel
def reads_beyond(u: A2, fx: A2):
    for i, j in u:
        u[i, j] = fx[i + 2, j]


@pytest.mark.usefixtures("debug")
def test_what_is_refused_names_the_line_and_the_global_index():
    def writes() -> None:
        beyond_the_last_face(Grid((8, 4), ranks=(2, 1)).ndarray(qp.f32, staggered=(True, False)))

    with pytest.raises(DistributedError, match="writes elements of other cells along axis 0") as caught:
        run_ranks(2, writes)
    assert "u[i + 1, j] = 1.0" in str(caught.value)

    def reads() -> None:
        grid = Grid((8, 4), ranks=(2, 1))
        reads_beyond(grid.ndarray(qp.f32), grid.ndarray(qp.f32, staggered=(True, False)))

    with pytest.raises(KernelIndexError, match=r"index 9 .* 9"):
        run_ranks(2, reads)


def test_explain_tells_the_faces(capsys: pytest.CaptureFixture[str]):
    def program() -> None:
        grid = Grid((8, 4), ranks=(2, 1))
        face, cell = grid.ndarray(qp.f32, staggered=(True, False)), grid.ndarray(qp.f32)
        if qp.dist.world().rank == 1:
            qp.dist.explain(over_faces, cell, face)

    qp.init(arch=qp.cpu)
    run_ranks(2, program)
    shown = capsys.readouterr().out
    assert "a loop over [4:9, 0:4]" in shown
    assert "reads cell up to 1 below and 0 above along axis 0" in shown


@qp.kernel
def over_faces(cell: A2, face: A2):
    for i, j in face:
        if 0 < i < cell.shape[0]:
            face[i, j] = cell[i, j] - cell[i - 1, j]


# ----------------------------------------------------------------------- at random


def index_text(rng: random.Random, name: str, axis: int, array: str, *, wraps: bool) -> tuple[str, str]:
    step, n = rng.randint(-2, 2), f"{array}.shape[{axis}]"
    plain = f"{name} + {step}" if step >= 0 else f"{name} - {-step}"
    if wraps:
        return f"({plain}) % {n}", ""
    if rng.random() < 0.5:
        return plain, f"0 <= {plain} < {n}"
    return f"qp.min(qp.max({plain}, 0), {n} - 1)", ""


def kernel_of(rng: random.Random, axes: int, periodic: tuple[bool, ...]) -> tuple[Any, str]:
    names = ["i", "j", "k"][:axes]
    array = f"qp.types.ndarray(qp.f32, ndim={axes})"
    lines = ["@qp.kernel", f"def made(a: {array}, b: {array}, c: {array}, out: qp.types.ndarray(qp.f32, ndim=1)):"]
    for number in range(rng.randint(1, 3)):
        target = "abc"[number]
        sources = [each for each in "abc" if each != target]
        ends = [f"{target}.shape[{axis}]" for axis in range(axes)]
        over = (
            target
            if rng.random() < 0.5
            else f"qp.ndrange({', '.join(f'({rng.randint(0, 1)}, {end} - {rng.randint(0, 1)})' for end in ends)})"
        )
        lines += [f"    for {', '.join(names)} in {over}:", f"        s = {target}[{', '.join(names)}]"]
        for _ in range(rng.randint(1, 3)):
            source = rng.choice(sources)
            found = [index_text(rng, name, axis, source, wraps=periodic[axis]) for axis, name in enumerate(names)]
            guard = " and ".join(condition for _, condition in found if condition)
            term = f"s += {rng.choice(['0.5', '-1.25'])} * {source}[{', '.join(index for index, _ in found)}]"
            lines += [f"        if {guard}:", f"            {term}"] if guard else [f"        {term}"]
        if rng.random() < 0.4:
            lines += ["        out[0] += s", "        qp.atomic_min(out[1], s)"]
        lines += [f"        {target}[{', '.join(names)}] = s"]
    text = "\n".join(lines) + "\n"
    file = f"<kernel {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"qp": qp}
    exec(compile(text, file, "exec"), scope)
    return scope["made"], text


def check(seed: int) -> None:
    rng = random.Random(seed)
    axes = rng.randint(1, 3)
    periodic = tuple(rng.random() < 0.3 for _ in range(axes))
    staggered = [tuple(not p and rng.random() < 0.5 for p in periodic) for _ in range(3)]
    kernel, text = kernel_of(rng, axes, periodic)
    shape = tuple(rng.randint(*[(8, 70), (5, 14), (4, 9)][axes - 1]) for _ in range(axes))

    def run(make: Callable[[Any], Any], *, captured: bool = False) -> tuple[list[bytes], bytes]:
        arrays, out = [make(each) for each in staggered], qp.ndarray(qp.f32, 2)
        for number, array in enumerate(arrays):
            array.from_numpy(np.random.default_rng(number).standard_normal(array.shape).astype(np.float32))
        if captured:
            qp.dist.capture(lambda: kernel(*arrays, out)).launch()
        else:
            kernel(*arrays, out)
            kernel(*arrays, out)
        return [array.to_numpy().tobytes() for array in arrays], out.to_numpy().tobytes()

    def program() -> Any:
        grid = Grid(shape, periodic=periodic)
        return run(lambda each: grid.ndarray(qp.f32, staggered=each), captured=seed % 2 == 0)

    wanted, _ = run(lambda each: qp.ndarray(qp.f32, tuple(map(sum, zip(shape, each, strict=True)))))
    (alone,) = run_ranks(1, program)
    assert alone[0] == wanted, f"seed {seed}\n{text}"
    ranks = rng.choice([2, 3, 4])
    assert run_ranks(ranks, program) == [alone] * ranks, f"seed {seed}, {ranks} ranks\n{text}"


@pytest.mark.parametrize("seed", range(8))
def test_random_kernels(seed: int):
    qp.init(arch=qp.cpu)
    check(seed)
