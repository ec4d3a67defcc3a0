"""The distributed examples: any number of ranks gives the bits of one, and a distributed form is little longer than a plain one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backends import backends
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.examples import cavity, heat, lattice_boltzmann, poisson


def flow_of_heat() -> tuple[Any, ...]:
    metal = heat.Metal(20)
    for _ in range(5):
        metal.step()
    return metal.u.to_numpy(), heat.mean(metal.u)


def vortices() -> tuple[Any, ...]:
    channel = lattice_boltzmann.Channel(24)
    for _ in range(4):
        channel.step()
    return channel.f.to_numpy(), channel.vorticity()


def potential() -> tuple[Any, ...]:
    return poisson.solve(poisson.random_charges(40, 5), 25)


def lid() -> tuple[Any, ...]:
    box = cavity.Cavity(20, relaxations=6)
    for _ in range(4):
        box.step()
    return box.u.to_numpy(), box.v.to_numpy(), box.p.to_numpy(), cavity.divergence(box.u, box.v)


@pytest.mark.parametrize(
    ("program", "numbers"),
    [
        (flow_of_heat, (1, 2, 4, 8)),
        (vortices, (2,)),
        (potential, (1, 2, 4, 8)),
        (lid, (1, 2, 4)),
    ],  # each rank compiles its own ``Channel``
)
@pytest.mark.parametrize("arch", backends())
def test_any_number_of_ranks_gives_the_bits_of_one(
    program: Callable[[], tuple[Any, ...]], numbers: tuple[int, ...], arch: str
):
    qp.init(arch=arch)
    one = program()  # without ranks: as a program runs that nothing started as one of several
    assert np.isfinite(one[0]).all()
    assert np.ptp(one[0]) > 0
    for ranks in numbers:
        for found in run_ranks(ranks, program):
            for got, want in zip(found, one, strict=True):
                np.testing.assert_array_equal(got, want, err_msg=f"{ranks} ranks")


@pytest.mark.parametrize(
    ("module", "program"),
    [(heat, flow_of_heat), (lattice_boltzmann, vortices), (poisson, potential), (cavity, lid)],
    ids=["heat", "lattice_boltzmann", "poisson", "cavity"],  # the text of a function differs from process to process
)
def test_command_lines_compute_the_bits_of_one_rank(
    module: Any, program: Callable[[], tuple[Any, ...]], tmp_path: Path
):
    """Whatever the layout on one device: they choose strict arithmetic."""
    assert module.main(["--steps", "1", "--size", "12", "--out", str(tmp_path / "picture.png")]) == 0
    one = program()
    for found in run_ranks(2, program):
        for got, want in zip(found, one, strict=True):
            np.testing.assert_array_equal(got, want)


def test_heat_flows_from_the_hot_face():
    qp.init(arch=qp.cpu)
    metal = heat.Metal(16)
    for _ in range(30):
        metal.step()
    u = metal.u.to_numpy()
    assert heat.mean(metal.u) == pytest.approx(u.astype(float).mean(), rel=1e-4)
    assert u.min() == -1
    assert u.max() == 1
    assert (u[8, 4, 1:5] > 0.1).all()


def test_the_solution_solves():
    qp.init(arch=qp.cpu)
    b = poisson.random_charges(40, 5)
    x, count = poisson.solve(b, 1000)
    assert 10 < count < 1000
    padded = np.pad(x.astype(float), 1)
    applied = 4 * x - padded[2:, 1:-1] - padded[:-2, 1:-1] - padded[1:-1, 2:] - padded[1:-1, :-2]
    assert np.abs(applied - b).max() < 1e-3 * np.abs(b).max()


def test_the_lid_turns_the_flow():
    """U. Ghia et al., "High-Re solutions for incompressible flow", 1982, Table I: the least u on the middle line at Re 100."""
    qp.init(arch=qp.cpu)
    box = cavity.Cavity(24, reynolds=100.0, relaxations=30)
    for _ in range(700):
        box.step()
    assert box.u.to_numpy()[12].min() == pytest.approx(-0.2109, rel=0.05)
    assert cavity.divergence(box.u, box.v) < 2e-3


@pytest.mark.parametrize("module", [heat, lattice_boltzmann, poisson, cavity])
def test_at_most_ten_lines_are_about_ranks(module: Any):
    lines = [
        line for line in inspect.getsource(module).splitlines() if "dist." in line or "grid" in line.partition("#")[0]
    ]
    assert 1 <= len(lines) <= 10
