"""``quadpy run --restarts``: after a rank is lost, the program goes on from its last checkpoint, with the same bits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ranks import LIMIT, lines_of, run_program

STEPS = """
    import hashlib, os, signal, sys, time
    from pathlib import Path
    import numpy as np
    import quadpy as qp

    cells = qp.types.ndarray(qp.f32, ndim=2)

    @qp.kernel
    def smooth(u: cells, v: cells):
        for i, j in u:
            v[i, j] = 0.3 * u[(i + 1) % u.shape[0], j] + 0.7 * u[i, (j + 3) % u.shape[1]]

    def fail(how):
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if how == "raise":
            raise ValueError("no such file")
        if how == "disagree":
            smooth(v, v)

    path, how, failures = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    grid = qp.dist.Grid((24, 10), periodic=True)
    u, v, step, starts = grid.ndarray(qp.f32), grid.ndarray(qp.f32), 0, 1
    if state := grid.load(path, missing_ok=True):
        u, step, starts = state["u"], state["step"], state["starts"] + 1
    else:
        u.from_numpy(np.random.default_rng(1).random((24, 10), np.float32))
    while step < 9:
        if step == 3 * starts and starts <= failures and grid.world.rank == 1:
            fail(how)
        smooth(u, v)
        u, v, step = v, u, step + 1
        if step % 3 == 0:
            grid.save(path, u=u, step=step, starts=starts).wait()
    print(starts, hashlib.sha256(u.to_numpy().tobytes()).hexdigest())
"""


def program(folder: Path, how: str, failures: int, restarts: int, size: int = 2) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("h5py", reason="checkpoints need h5py, which is not installed")
    options = ["--restarts", str(restarts)] if restarts else []
    return run_program(folder, STEPS, size, folder / "state", how, failures, options=options, QUADPY_RANK_TIMEOUT="2")


NAMED = {
    "kill": "RankLostError: rank 1 has failed: its process was killed, or has crashed",
    "stop": "RankLostError: rank 1 does not answer: nothing came from it within 2 s",
    "raise": "RankLostError: rank 1 has failed: ValueError: no such file",
    "disagree": r"RanksDisagreeError: ranks have made different calls with distributed arrays: call 4 was smooth\(array",
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The checksum of a run without failures."""
    done = program(tmp_path_factory.mktemp("alone"), "none", 0, 0, 1)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


@pytest.mark.parametrize("how", NAMED)
def test_the_program_goes_on_from_its_last_checkpoint(how: str, tmp_path: Path, alone: str):
    done = program(tmp_path, how, 1, 2)
    assert done.returncode == 0, done.stderr
    assert lines_of(done.stdout, 0) == lines_of(done.stdout, 1) == [f"2 {alone}"]
    assert re.search(NAMED[how], "\n".join(lines_of(done.stderr, 0)))
    (told,) = (line for line in done.stderr.splitlines() if "starts again" in line)
    assert re.fullmatch(r"quadpy: the program has failed, with exit status \d+, and starts again \(1 of 2\)", told)


def test_it_ends_after_that_many_failures(tmp_path: Path):
    done = program(tmp_path, "kill", 9, 1, 3)
    assert done.returncode == 128 + signal.SIGKILL
    assert done.stderr.count("starts again (1 of 1)") == 1
    assert done.stdout == ""
    for rank in (0, 2):
        assert lines_of(done.stderr, rank).count("quadpy.errors." + NAMED["kill"]) == 2


@pytest.mark.parametrize("size", [1, 2])
def test_ctrl_c_ends_it(size: int, tmp_path: Path):
    file = tmp_path / "program.py"
    file.write_text("import time\nfrom quadpy.dist import world\nworld()\nprint('ready', flush=True)\ntime.sleep(60)\n")
    started = subprocess.Popen(
        [sys.executable, "-m", "quadpy", "run", "-n", str(size), "--restarts", "3", str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        for _ in range(size):
            assert started.stdout is not None
            assert started.stdout.readline().endswith("ready\n")
        os.killpg(started.pid, signal.SIGINT)  # as a terminal does
        _, err = started.communicate(timeout=LIMIT)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 128 + signal.SIGINT
    assert "starts again" not in err
