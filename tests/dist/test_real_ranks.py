"""The examples on ranks that MPI starts, eight of them: the bits are those of a program that runs alone."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import quadpy as qp
from ranks import lines_of, run_program

PROGRAM = """
    import hashlib
    import quadpy as qp
    from quadpy.examples import cavity, heat, lattice_boltzmann, poisson

    qp.init(arch=qp.cpu)
    metal, channel = heat.Metal(20), lattice_boltzmann.Channel(24)
    for _ in range(4):
        metal.step()
        channel.step()
    box = cavity.Cavity(12, relaxations=3)
    box.step()
    found, count = poisson.solve(poisson.random_charges(40, 5), 10)
    arrays = metal.u.to_numpy(), channel.f.to_numpy(), channel.vorticity(), found, box.u.to_numpy(), box.p.to_numpy()
    print(*(hashlib.sha256(each.tobytes()).hexdigest()[:16] for each in arrays), heat.mean(metal.u), count, flush=True)
"""


def test_examples_have_the_bits_of_one_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    exec(compile(textwrap.dedent(PROGRAM), "alone", "exec"), {"__name__": "alone"})
    alone = capsys.readouterr().out.splitlines()
    assert len(alone) == 1
    done = run_program(tmp_path, PROGRAM, 8)
    assert done.returncode == 0, done.stderr
    for rank in range(8):
        assert lines_of(done.stdout, rank) == alone
    assert qp.dist.world().size == 1
