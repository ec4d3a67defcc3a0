"""Sums into elements of other cells: the same bits on any number of ranks, and the sums of plain arrays."""

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
from quadpy.errors import DistributedError, KernelIndexError, KernelSyntaxError

A1, A2 = qp.types.ndarray(qp.f32, ndim=1), qp.types.ndarray(qp.f32, ndim=2)
vec2 = qp.types.vector(2, qp.f32)


@qp.kernel
def spread(u: A2, v: A2):
    n, m = u.shape
    for i, j in u:
        w = u[i, j]
        for di in qp.static(range(-1, 2)):
            for dj in qp.static(range(-1, 2)):
                a, b = i + di, j + dj
                if 0 <= a < n and 0 <= b < m:
                    v[a, b] += w * (1.0 + di * 0.3 + dj * 0.2)


@qp.kernel
def by_loops(u: A2, v: A2):
    n, m = u.shape
    for i, j in u:
        for di, dj in qp.ndrange((-2, 3), (-1, 2)):
            if 0 <= i + di < n and 0 <= j + dj < m:
                v[i + di, j + dj] += u[i, j] * di


@qp.kernel
def sums_and_changes(u: A2, v: A2) -> qp.f32:
    s = 0.0
    for i, j in u:
        if j > 0:
            qp.atomic_add(v[i, j - 1], u[i, j])
        if i > 0:
            qp.atomic_sub(v[i - 1, j], 0.5 * u[i, j])
        s += u[i, j]
        u[i, j] = u[i, j] * 2.0
    return s


@pytest.mark.usefixtures("any_debug")
@pytest.mark.parametrize("kernel", [spread, by_loops, sums_and_changes])
def test_neighbours_get_sums(kernel: Any):
    same_on_ranks(kernel, (13, 9), {"u": (qp.f32, False), "v": (qp.f32, False)})


@qp.kernel
def some_leave_early(u: A2, v: A2):
    for i, j in u:
        if u[i, j] > 5.0:
            continue
        s, k = 0.0, 0
        while k < 3 and s < 10.0:
            s += abs(u[i, j])
            k += 1
        if i + 1 < u.shape[0]:
            v[i + 1, j] += s
        if u[i, j] < -5.0:
            continue
        v[i, j] += 2 * u[i, j] + qp.random(qp.f32)
        if j > 0:
            v[i, j - 1] += qp.random(qp.f32)


def test_jumps_and_random_numbers():
    qp.init(arch=qp.cpu)  # which counts launches from 0
    arrays = {"u": (qp.f32, False), "v": (qp.f32, False)}
    same_on_ranks(some_leave_early, (13, 9), arrays)


@pytest.mark.parametrize("watch", [qp.hazards.check, qp.profile], ids=["hazards", "profile"])
def test_watched_steps(watch: Any):
    def program() -> Any:
        grid = Grid((13, 9))
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32, staggered=(False, True))
        u.from_numpy(np.arange(117, dtype=np.float32).reshape(13, 9))
        with watch():
            made = qp.dist.capture(lambda: spread(u, v))
            made.launch()
            spread(u, v)
        return v.to_numpy().tobytes()

    qp.init(arch=qp.cpu)
    (alone,) = run_ranks(1, program)
    assert run_ranks(2, program) == [alone] * 2


@qp.kernel
def wrapped(u: A1, v: A1):
    n = u.shape[0]
    for i in u:
        v[(i + 1) % n] += 0.5 * u[i]
        v[(i - 1) % n] -= 0.25 * u[(i + 2) % n]


def test_an_axis_that_wraps():
    qp.init(arch=qp.cpu)
    same_on_ranks(wrapped, (23,), {"u": (qp.f32, False), "v": (qp.f32, False)}, periodic=True)


@qp.kernel
def to_faces(cell: A2, face: A2):
    for i, j in cell:
        face[i + 1, j] += cell[i, j]
        face[i, j] -= cell[i, j]


def test_faces_get_sums_from_cells():
    qp.init(arch=qp.cpu)
    same_on_ranks(to_faces, (9, 6), {"cell": (qp.f32, False), "face": (qp.f32, (True, False))})


@qp.kernel
def mixed(a: qp.types.ndarray(vec2, ndim=1), b: qp.types.ndarray(qp.i32, ndim=1), c: qp.types.ndarray(qp.f16, ndim=1)):
    n = a.shape[0]
    for i in a:
        if i + 2 < n:
            a[i + 2] += vec2(b[i], 1.0)
        qp.atomic_max(c[3], qp.f16(b[i]))
    for i in range(1, n, 3):
        b[i - 1] += i
        c[i - 1] += qp.f16(0.125)


def test_vectors_integers_and_fields():
    qp.init(arch=qp.cpu)
    same_on_ranks(mixed, (17,), {"a": (vec2, False), "b": (qp.i32, False), "c": (qp.f16, False)})

    def program() -> Any:
        grid = Grid((12,))
        count = grid.field(qp.i32)

        @qp.kernel
        def step():
            for i in count:
                if i > 0:
                    count[i - 1] += i

        qp.dist.capture(step).launch()
        return count.to_numpy().tolist()

    for ranks in (1, 3):
        assert run_ranks(ranks, program) == [[2 * i for i in range(1, 12)] + [0]] * ranks


@qp.kernel
def by_data(u: A1, v: A1):
    for i in u:
        v[qp.i32(u[i])] += 1.0


@qp.kernel
def read_as_well(u: A1, v: A1):
    for i in u:
        if i > 0:
            v[i - 1] += u[i] * v[i]


@qp.kernel
def greatest(u: A1, v: A1):
    for i in u:
        if i > 0:
            qp.atomic_max(v[i - 1], u[i])


@pytest.mark.parametrize(
    ("kernel", "line"),
    [
        (by_data, "v[qp.i32(u[i])] += 1.0"),
        (read_as_well, "v[i - 1] += u[i] * v[i]"),
        (greatest, "qp.atomic_max(v[i - 1]"),
    ],
)
def test_what_is_no_sum_is_refused(kernel: Any, line: str):
    def program() -> None:
        grid = Grid((40,))
        kernel(grid.ndarray(qp.f32), grid.ndarray(qp.f32))

    qp.init(arch=qp.cpu)
    with pytest.raises(
        DistributedError, match=r"writes elements of other cells|at an index that data decide"
    ) as caught:
        run_ranks(2, program)
    assert line in str(caught.value)
    assert kernel is by_data or "an array that the loop only adds to" in str(caught.value).partition("hint:")[2]


@qp.kernel
def speaking(u: A1, v: A1):
    for i in u:
        if i > 0:
            print("cell", i)
            v[i - 1] += u[i]


@qp.kernel
def speaking_of_cells(u: A1, v: A1):
    for i in u:
        if i > 0:
            v[i - 1] += u[i]
        if u[i] > 0.5:
            print("cell", i)


def test_a_loop_prints_once_or_is_refused(capfd: pytest.CaptureFixture[str]):
    def program(kernel: Any) -> None:
        grid = Grid((8,))
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        u[3] = 1.0
        kernel(u, v)

    qp.init(arch=qp.cpu)
    run_ranks(2, lambda: program(speaking_of_cells))
    assert capfd.readouterr().out.splitlines() == ["cell 3"]
    with pytest.raises(KernelSyntaxError, match="not known which rank prints") as caught:
        run_ranks(2, lambda: program(speaking))
    assert 'print("cell", i)' in str(caught.value)


@qp.kernel
def beyond(u: A1, v: A1):
    for i in u:
        v[i + 1] += u[i]


@pytest.mark.usefixtures("debug")
def test_debug_finds_an_index_outside():
    def program() -> None:
        grid = Grid((8,))
        beyond(grid.ndarray(qp.f32), grid.ndarray(qp.f32))

    for ranks in (1, 2):
        with pytest.raises(KernelIndexError, match=r"index 8 .* 8") as caught:
            run_ranks(ranks, program)
        assert "v[i + 1] += u[i]" in str(caught.value)


def test_explain_tells_what_the_sums_read(capsys: pytest.CaptureFixture[str]):
    def program() -> None:
        grid = Grid((8,))
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        if qp.dist.world().rank == 0:
            qp.dist.explain(from_above, u, v)

    qp.init(arch=qp.cpu)
    run_ranks(2, program)
    shown = capsys.readouterr().out
    assert "reads u up to 0 below and 2 above along axis 0 beyond the block" in shown
    assert "writes v" in shown


@qp.kernel
def from_above(u: A1, v: A1):
    for i in u:
        if i > 1:
            v[i - 2] += u[i]


# ----------------------------------------------------------------------- at random


def same_on_ranks(
    kernel: Callable[..., object],
    shape: tuple[int, ...],
    arrays: dict[str, tuple[Any, Any]],
    *,
    periodic: object = False,
    ranks: tuple[int, ...] = (2, 3, 4),
    text: str = "",
    captured: bool = False,
) -> None:
    """The sums of plain arrays, to the bit for integers, and the bits of one rank on all others."""

    def run(make: Callable[[Any, Any], Any], *, captured: bool = False) -> list[Any]:
        made = {name: make(*each) for name, each in arrays.items()}
        for seed, array in enumerate(made.values()):
            values = np.random.default_rng(seed).integers(-50, 50, array.shape + array.element_shape)
            array.from_numpy((values if array.dtype == qp.i32 else values * 0.37).astype(array.to_numpy().dtype))
        if captured:
            qp.dist.capture(lambda: kernel(**made)).launch()
        else:
            kernel(**made)
            kernel(**made)
        return [array.to_numpy() for array in made.values()]

    def plain(dtype: Any, staggered: Any) -> Any:
        more = np.broadcast_to(staggered, len(shape))
        return qp.ndarray(dtype, tuple(n + int(each) for n, each in zip(shape, more, strict=True)))

    def program() -> list[Any]:
        grid = Grid(shape, periodic=periodic)
        return run(lambda dtype, staggered: grid.ndarray(dtype, staggered=staggered), captured=captured)

    (alone,) = run_ranks(1, program)
    for got, want in zip(alone, run(plain), strict=True):
        tolerance = 0 if got.dtype == np.int32 else 2e-2 if got.dtype == np.float16 else 1e-4
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=30 * tolerance, err_msg=text)
    for size in ranks:
        for found in run_ranks(size, program):
            assert [each.tobytes() for each in found] == [each.tobytes() for each in alone], f"{size} ranks\n{text}"


def index_text(rng: random.Random, name: str, n: str, *, wraps: bool) -> tuple[str, str]:
    step = rng.randint(-2, 2)
    plain = rng.choice([f"{name} + {step}" if step >= 0 else f"{name} - {-step}", f"{name} + d"])
    if wraps:
        return f"({plain}) % {n}", ""
    return (plain, f"0 <= {plain} < {n}") if rng.random() < 0.8 else (f"qp.min(qp.max({plain}, 0), {n} - 1)", "")


def kernel_of(rng: random.Random, axes: int, periodic: tuple[bool, ...]) -> tuple[Any, str]:
    names = ["i", "j", "k"][:axes]
    lines = [
        "@qp.kernel",
        f"def made(u: qp.types.ndarray(ndim={axes}), v: qp.types.ndarray(ndim={axes}), x: qp.types.ndarray(ndim={axes})):",
    ]
    ends = [f"u.shape[{axis}]" for axis in range(axes)]
    parts = [f"({rng.randint(0, 1)}, {end} - {rng.randint(0, 1)})" for end in ends]
    for target, source in [("v", "u"), ("u", "x")][: rng.randint(1, 2)]:
        lines += [
            f"    for {', '.join(names)} in {'u' if rng.random() < 0.5 else f'qp.ndrange({chr(44).join(parts)})'}:"
        ]
        lines += [
            f"        w = {source}[{', '.join(names)}]",
            *(["        if w > 9:", "            continue"] if rng.random() < 0.3 else []),
            "        for d in range(-1, 2):",
        ]
        for _ in range(rng.randint(1, 3)):
            found = [
                index_text(rng, name, f"{target}.shape[{axis}]", wraps=periodic[axis])
                for axis, name in enumerate(names)
            ]
            guard = " and ".join(condition for _, condition in found if condition) or "True"
            lines += [
                f"            if {guard}:",
                f"                {target}[{', '.join(index for index, _ in found)}] {rng.choice('+-')}= {rng.choice(['w', '2 * w', 'w * d'])}",
            ]
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
    kernel, text = kernel_of(rng, axes, periodic)
    shape = tuple(rng.randint(*[(8, 70), (5, 14), (4, 9)][axes - 1]) for _ in range(axes))
    dtype = rng.choice([qp.f32, qp.f64, qp.i32])
    staggered = tuple(not p and rng.random() < 0.4 for p in periodic)
    arrays = {"u": (dtype, False), "v": (dtype, staggered), "x": (dtype, False)}
    same_on_ranks(
        kernel,
        shape,
        arrays,
        periodic=periodic,
        ranks=(rng.choice([2, 3, 4]),),
        text=f"seed {seed}\n{text}",
        captured=seed % 2 == 0,
    )


@pytest.mark.parametrize("seed", range(8))
def test_random_kernels(seed: int):
    qp.init(arch=qp.cpu)
    check(seed)
