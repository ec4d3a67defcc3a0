"""Ranks that torchrun starts, where torch is installed: torch connects them, without MPI."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torchrun comes with torch, which is not installed")

SUPPORT = Path(__file__).parents[1] / "support"
ROOT = Path(__file__).parents[2]
LIMIT = 180
"""Seconds after which a program that hangs is ended: torch alone takes several to import."""


def environment(**more: str) -> dict[str, str]:
    paths = os.pathsep.join(filter(None, [str(ROOT), str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": paths, "QUADPY_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **more}


def torchrun(folder: Path, text: str, size: int, *arguments: str, module: str = "", **more: str) -> Any:
    program = folder / "program.py"
    program.write_text(textwrap.dedent(text), encoding="utf-8")
    started = [*(["-m", module] if module else []), str(program)]
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(size), *started, *arguments],
        capture_output=True, text=True, timeout=LIMIT, check=False, env=environment(**more),
    )  # fmt: skip


CASES = """
    import json, sys
    from pathlib import Path
    import numpy as np
    import torch.distributed
    import quadpy as qp
    from quadpy.dist import world
    from quadpy.examples import poisson
    from transport_cases import CASES

    qp.init(arch=qp.cpu)
    for case in CASES.values():
        case(world())
    torch.distributed.init_process_group("gloo")  # the program's own, beside quadpy's
    total = torch.tensor([world().rank + 1])
    torch.distributed.all_reduce(total)
    x, count = poisson.solve(poisson.random_charges(24, 5), 10)
    ranks = world()
    found = [ranks.size, ranks.local_rank, ranks.transport.name, int(total), x.tobytes().hex(), count]
    (Path(sys.argv[1]) / f"{ranks.rank}.json").write_text(json.dumps(found))
    torch.distributed.destroy_process_group()
"""


def test_every_case_and_an_example(tmp_path: Path):
    done = torchrun(tmp_path, CASES, 3, str(tmp_path))
    assert done.returncode == 0, done.stderr
    import quadpy as qp
    from quadpy.examples import poisson

    qp.init(arch=qp.cpu)
    x, count = poisson.solve(poisson.random_charges(24, 5), 10)
    for rank in range(3):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == [3, rank, "gloo", 6, x.tobytes().hex(), count]


FAILS = """
    import os, sys
    import quadpy as qp
    from quadpy.dist.transport.protocol import FlatPart, Receive, Send

    ranks = qp.dist.world()
    transport, array, every = ranks.transport, qp.ndarray(qp.f32, 6), qp.ndarray(qp.f32, 12)
    transport.share()
    if ranks.rank == 1 and sys.argv[1] == "raise":
        raise ValueError("no such file")
    if ranks.rank == 1 and sys.argv[1] == "other call":
        transport.share(b"x")
    if sys.argv[1] == "sizes":
        peer, count = 1 - ranks.rank, 4 + ranks.rank
        messages = [Send(peer, FlatPart(array, 0, count))], [Receive(peer, FlatPart(array, 0, count))]
        transport.start_exchange(*messages, qp.create_stream()).finish()
    transport.all_gather(FlatPart.whole(array), FlatPart.whole(every), qp.create_stream())
    transport.share()
"""


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raise", "RankLostError: rank 1 has failed: ValueError: no such file"),
        ("other call", "RanksDisagreeError: ranks wait for each other in different calls: rank 0 in all_gather of 24"),
        ("sizes", "rank 0 sends 16 bytes to rank 1, which expects 20"),
    ],
)  # fmt: skip
def test_failures(how: str, message: str, tmp_path: Path):
    done = torchrun(tmp_path, FAILS, 2, how, module="quadpy.dist.rank", QUADPY_RANK_TIMEOUT="5")
    assert done.returncode != 0
    if how != "raise":  # torchrun may end the other rank before it says what it misses
        assert message in done.stderr
    assert "[1] ValueError: no such file" in done.stderr or how != "raise"
    assert "terminate called" not in done.stderr


def test_slurm_without_an_mpi(tmp_path: Path):
    """Two processes with the variables of srun, and those of torch's ranks."""
    program = tmp_path / "program.py"
    program.write_text("import quadpy as qp\nranks = qp.dist.world()\nprint(ranks.transport.share(b'x'), ranks)\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    started = [
        subprocess.Popen(
            [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(
                SLURM_PROCID=str(rank), SLURM_LOCALID=str(rank), SLURM_STEP_ID="0", SLURM_STEP_NUM_TASKS="2",
                MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
            ),
        )
        for rank in range(2)
    ]  # fmt: skip
    for rank, process in enumerate(started):
        out, err = process.communicate(timeout=LIMIT)
        assert process.returncode == 0, err
        assert out == f"[b'x', b'x'] <rank {rank} of 2, number {rank} on its host>\n"
