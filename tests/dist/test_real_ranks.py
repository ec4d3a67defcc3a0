"""The examples on ranks that MPI starts: the bits are those of a program that runs alone."""

from __future__ import annotations

import pytest

from ranks import lines_of, run_program

PROGRAM = """
    import hashlib
    import quadpy as qp
    from quadpy.examples import heat, poisson

    qp.init(arch=qp.cpu)
    metal = heat.Metal(20)
    for _ in range(4):
        metal.step()
    found, count = poisson.solve(poisson.random_charges(40, 5), 10)
    digests = [hashlib.sha256(each.tobytes()).hexdigest()[:16] for each in (metal.u.to_numpy(), found)]
    print(*digests, heat.mean(metal.u), count, flush=True)
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    done = run_program(tmp_path_factory.mktemp("alone"), PROGRAM, 1)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].removeprefix("[0] ")


def test_examples_have_the_bits_of_one_rank(alone: str, tmp_path):
    size = 4
    done = run_program(tmp_path, PROGRAM, size)
    assert done.returncode == 0, done.stderr
    for rank in range(size):
        assert lines_of(done.stdout, rank) == [alone]
