"""Arrays of structs on a grid: the same bits on any number of ranks, and those of plain arrays."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.dist import Grid
from quadpy.errors import ArgumentError, DistributedError

vec2 = qp.types.vector(2, qp.f32)
inner = qp.types.struct(a=qp.u8, b=qp.f64)
State = qp.types.struct(density=qp.f32, velocity=vec2, kind=qp.i8, more=inner)
states = qp.types.ndarray(State, ndim=2)


@qp.kernel
def density(u: states) -> qp.f32:
    total = 0.0
    for i, j in u:
        total += u[i, j].density
    return total


@qp.kernel
def step(u: states, v: states, face: states):
    n, m = u.shape
    for i, j in u:
        s = u[i, j]
        if 0 < i < n - 1:
            s.density += 0.1 * (u[i - 1, j].density - 2 * u[i, j].density + u[i + 1, j].density)
            s.velocity = u[i + 1, j].velocity.yx
        s.more.b += u[i, (j + 1) % m].more.b + u[i, j].kind
        v[i, j] = s
    for i, j in face:
        face[i, j].velocity.x = v[qp.min(i, n - 1), j].density
        face[i, j].kind = qp.i8(i)
    for i, j in u:
        if i + 1 < n:
            v[i + 1, j].density += face[i + 1, j].velocity.x
            v[i + 1, j].more.a += qp.u8(1)


def run(make: Callable[[Any], Any], *, captured: bool = False) -> tuple[list[bytes], float]:
    u, v, face = make(False), make(False), make(True)
    values = np.zeros(u.shape, State.numpy_dtype)
    rng = np.random.default_rng(1)
    values["density"], values["velocity"] = rng.random(u.shape), rng.random((*u.shape, 2))
    values["kind"], values["more"]["b"] = rng.integers(-5, 5, u.shape), rng.random(u.shape)
    u.from_numpy(values)
    if captured:
        made = qp.dist.capture(lambda: step(u, v, face))
        for _ in range(2):
            made.launch()
    else:
        for _ in range(3):
            step(u, v, face)
    arrays = [each.to_numpy() for each in (u, v, face)]
    members = [each[name] for each in arrays for name in ("density", "velocity", "kind")]
    members += [each["more"][name] for each in arrays for name in ("a", "b")]
    return [np.ascontiguousarray(each).tobytes() for each in members], density(v)


@pytest.mark.usefixtures("any_debug")
def test_structs_have_the_bits_of_plain_arrays():
    shape = (13, 6)
    plain, _ = run(lambda across: qp.ndarray(State, (shape[0] + across, shape[1])))

    def program() -> Any:
        grid = Grid(shape, periodic=(False, True))
        return run(lambda across: grid.ndarray(State, staggered=(across, False)))

    (alone,) = run_ranks(1, program)
    assert alone[0] == plain
    for ranks in (2, 4):
        assert run_ranks(ranks, program) == [alone] * ranks


def test_captured_steps():
    def program(*, captured: bool) -> Any:
        grid = Grid((13, 6), periodic=(False, True))
        return run(lambda across: grid.ndarray(State, staggered=(across, False)), captured=captured)

    qp.init(arch=qp.cpu)
    (alone,) = run_ranks(1, lambda: program(captured=False))
    assert run_ranks(3, lambda: program(captured=True)) == [alone] * 3


def test_the_host_reads_and_writes_structs():
    def program() -> Any:
        grid = Grid((8,))
        u, v = grid.ndarray(State), grid.ndarray(State)
        u.fill({"density": 2.0, "velocity": (1.0, 2.0), "kind": 3, "more": {"a": 1, "b": 0.5}})
        u[6] = {"density": 5.0}
        u[7].density = 7.0
        u[7].more.b = 9.0
        v.copy_from(u)
        owned = v.owned_to_numpy()
        owned["kind"] += 1
        v.owned_from_numpy(owned)
        v.from_numpy({name: v.to_numpy()[name] for name in ("density", "velocity", "kind", "more")})
        with pytest.raises(ArgumentError, match=r"does not fit .*State|does not fit distributed ndarray"):
            v.from_numpy(np.zeros(9, State.numpy_dtype))
        with pytest.raises(ArgumentError, match="takes an array like it"):
            v.copy_from(grid.ndarray(qp.u8))
        copied = copy.copy(v).to_numpy()
        return (
            copied["density"].tolist(),
            copied["kind"].tolist(),
            float(copied["more"]["b"][7]),
            u[7].more.b,
            u[0].velocity[1],
        )

    qp.init(arch=qp.cpu)
    assert run_ranks(3, program) == [([2.0] * 6 + [5.0, 7.0], [4] * 8, 9.0, 9.0, 2.0)] * 3


@qp.kernel
def beside(u: qp.types.ndarray(State, ndim=1), v: qp.types.ndarray(State, ndim=1)):
    for i in u:
        if i + 1 < u.shape[0]:
            v[i + 1].density = u[i].density


def test_what_is_refused():
    qp.init(arch=qp.cpu)
    with pytest.raises(ArgumentError, match="a field of a grid cannot hold structs") as caught:
        Grid((8,)).field(State)
    assert "make an ndarray of the grid" in str(caught.value)

    grid = Grid((8,))
    with pytest.raises(ArgumentError, match="u is an array of structs") as caught:
        grid.save("never", u=grid.ndarray(State))
    assert "copy its members" in str(caught.value)

    def program() -> None:
        grid = Grid((8,))
        beside(grid.ndarray(State), grid.ndarray(State))

    with pytest.raises(DistributedError, match="writes elements of other cells") as refused:
        run_ranks(2, program)
    assert "v[i + 1].density = u[i].density" in str(refused.value)
    assert "distributed ndarray(" in repr(Grid((8,)).ndarray(State))


def test_explain_counts_whole_structs(capsys: pytest.CaptureFixture[str]):
    def program() -> None:
        grid = Grid((8, 6), periodic=(False, True), ranks=(2, 1))
        u, v, face = grid.ndarray(State), grid.ndarray(State), grid.ndarray(State, staggered=(True, False))
        if qp.dist.world().rank == 0:
            qp.dist.explain(step, u, v, face)

    qp.init(arch=qp.cpu)
    run_ranks(2, program)
    assert f"halo: {6 * State.numpy_dtype.itemsize} bytes, from rank 1" in capsys.readouterr().out
