"""One suite for every transport: see ``transport_cases``."""

import json

import pytest
from thread_ranks import run_ranks
from transport_cases import CASES

from quadpy.dist import world
from quadpy.dist.transport.gpu.nccl import load_nccl
from quadpy.dist.transport.gpu.rccl import load_rccl
from quadpy.errors import TransportError
from quadpy.runtime.device.probe import probe_cuda, probe_hip
from ranks import run_program

ALL_CASES = """
    import json, sys, traceback
    from pathlib import Path
    import quadpy as qp
    from quadpy.dist import world
    from transport_cases import CASES

    qp.init(arch=sys.argv[2], enable_fallback=False)
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


def run_cases(size, folder, arch, engine):
    """Run all cases on ``size`` real ranks of ``arch``, which ``engine`` must connect."""
    done = run_program(folder, ALL_CASES, size, folder, arch)
    assert done.returncode == 0, done.stderr
    found = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(size)]
    assert found == [{"size": size, "engine": engine, "done": list(CASES)[-1], "failures": {}}] * size


@pytest.mark.parametrize("size", [2, 8])
def test_mpi(size, tmp_path):
    run_cases(size, tmp_path, "cpu", "mpi")


def gpus():
    """The backend of this machine's GPUs, and how many there are."""
    probe = max(probe_hip(), probe_cuda(), key=lambda found: len(found.devices))
    return probe.backend, len(probe.devices)


def test_two_ranks_on_one_gpu(tmp_path):
    """NCCL and RCCL refuse to connect a GPU with itself: messages go through pinned memory."""
    arch, count = gpus()
    if not count:
        pytest.skip("needs a GPU")
    run_cases(2, tmp_path, f"{arch}:0", "mpi")


def test_ranks_with_a_gpu_each(tmp_path):
    arch, count = gpus()
    if count < 2:
        pytest.skip("needs two GPUs")
    load, engine = (load_nccl, "nccl") if arch == "cuda" else (load_rccl, "rccl")
    try:
        load()
    except TransportError as error:
        pytest.skip(str(error))
    run_cases(min(count, 4), tmp_path, arch, engine)
