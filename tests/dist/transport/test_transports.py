"""One suite for every transport: see ``transport_cases``."""

import json

import pytest
from ranks import run_program
from transport_cases import CASES

from quadpy.dist import world
from quadpy.dist.transport.threads import run_ranks

ALL_CASES = """
    import json, sys, traceback
    from pathlib import Path
    import quadpy as qp
    from quadpy.dist import world
    from transport_cases import CASES

    failures = {}
    for name, case in CASES.items():
        try:
            case(world())
        except Exception:
            failures[name] = traceback.format_exc()
            break  # the ranks may no longer be in step
    ranks = world()
    place = Path(sys.argv[1]) / f"{ranks.rank}.json"
    place.write_text(json.dumps({"size": ranks.size, "engine": ranks.transport.name, "done": name, "failures": failures}))
"""


@pytest.mark.parametrize("name", CASES)
def test_a_program_that_runs_alone(name):
    CASES[name](world())


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("name", CASES)
def test_ranks_that_are_threads(name, size):
    run_ranks(size, lambda: CASES[name](world()))


@pytest.mark.parametrize("size", [2, 4, 8])
def test_mpi(size, tmp_path):
    done = run_program(tmp_path, ALL_CASES, size, tmp_path)
    assert done.returncode == 0, done.stderr
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(size)]
    assert found == [{"size": size, "engine": "mpi", "done": list(CASES)[-1], "failures": {}}] * size
