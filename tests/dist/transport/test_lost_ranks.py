"""Ranks that fail, vanish or disagree: a named error on every other rank, soon, and the exit status of the first."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from ranks import lines_of, run_program

PROGRAM = """
    import os, sys, time
    import quadpy as qp
    from quadpy.dist import world
    from quadpy.dist.transport.agreement import agree
    from quadpy.dist.transport.protocol import FlatPart, Receive, Send

    ranks = world()
    how = sys.argv[1]
    transport = ranks.transport
    transport.share()
    if ranks.rank == 1:
        if how == "raise":
            raise ValueError("no such file")
        if how == "kill":
            os.kill(os.getpid(), 9)
        if how == "exit":
            sys.exit(5)
        if how == "silent":
            time.sleep(4)
        if how == "other call":
            transport.share(b"x")
    array, every = qp.ndarray(qp.f32, 6), qp.ndarray(qp.f32, 6 * ranks.size)
    if how == "exchange":
        peer, count = 1 - ranks.rank, 4 + ranks.rank
        sends, receives = [Send(peer, FlatPart(array, 0, count))], [Receive(peer, FlatPart(array, 0, count))]
        transport.start_exchange(sends, receives, qp.create_stream()).finish()
    if how == "grid":
        agree(transport, "the shape of the grid", "8 x 8" if ranks.rank else "8 x 9")
    transport.all_gather(FlatPart.whole(array), FlatPart.whole(every), qp.create_stream())
    transport.share()
"""


def test_an_exception_is_told_to_the_others(tmp_path):
    done = run_program(tmp_path, PROGRAM, 3, "raise")
    assert done.returncode == 1
    assert "ValueError: no such file" in lines_of(done.stderr, 1)
    for rank in (0, 2):
        told = lines_of(done.stderr, rank)
        assert "quadpy.errors.RankLostError: rank 1 has failed: ValueError: no such file" in told
        assert not [line for line in told if "quadpy/dist" in line]  # the program's own lines only


def test_a_killed_rank(tmp_path):
    start = time.monotonic()
    done = run_program(tmp_path, PROGRAM, 3, "kill")
    assert time.monotonic() - start < 60  # far below the time limit of 300 s
    assert done.returncode == 128 + signal.SIGKILL
    assert "quadpy: SIGKILL ended this rank" in lines_of(done.stderr, 1)
    for rank in (0, 2):
        message = "quadpy.errors.RankLostError: rank 1 has failed: its process was killed, or has crashed"
        assert message in lines_of(done.stderr, rank)


def test_a_rank_that_ends_early(tmp_path):
    done = run_program(tmp_path, PROGRAM, 2, "exit")
    assert done.returncode == 5
    expected = "quadpy.errors.RankLostError: rank 1 has ended, while this rank waits for it"
    assert expected in lines_of(done.stderr, 0)


def test_a_silent_rank(tmp_path):
    done = run_program(tmp_path, PROGRAM, 2, "silent", QUADPY_RANK_TIMEOUT="1")
    assert done.returncode == 1
    expected = "quadpy.errors.RankLostError: rank 1 does not answer: nothing came from it within 1 s"
    assert expected in lines_of(done.stderr, 0)
    assert any("the other ranks have given up this rank, 1" in line for line in lines_of(done.stderr, 1))


STEPS = """
    import os, signal, sys, time
    import quadpy as qp

    qp.init(arch=qp.cpu, debug=sys.argv[2] == "debug")
    cells = qp.types.ndarray(qp.f32, ndim=2)

    @qp.kernel
    def step(u: cells, v: cells, d: qp.i32):
        for i, j in u:
            v[i, j] = u[(i + d) % u.shape[0], j]

    @qp.kernel
    def point(u: cells, v: cells):
        for i, j in u:
            v[i, j] = u[i, j] + 1.0

    how, rank = sys.argv[1], qp.dist.world().rank
    grid = qp.dist.Grid((24, 10), periodic=True)
    u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
    for n in range(8):
        if n == 4 and rank == 1:
            if how == "slow":
                time.sleep(5)
            if how == "stopped":
                os.kill(os.getpid(), signal.SIGSTOP)
            while how == "endless":
                pass
            if how == "order":
                point(v, u)
        elif n == 4 and how == "order":
            point(u, v)
        step(u, v, 1 + rank if how == "numbers" and n == 4 else 1)
        u, v = v, u
    print(u.to_numpy().sum())
"""
STORIES = {
    "slow": r"RankLostError: rank 1 does not answer: nothing came from it within 2 s",
    "stopped": r"RankLostError: rank 1 does not answer: nothing came from it within 2 s",
    "endless": r"RankLostError: rank 1 does not answer: nothing came from it within 2 s",
    "order": r"RanksDisagreeError: ranks have made different calls with distributed arrays: call 5 was "
    r"point\(array 1, array 2\) at program.py:32 on ranks 0, 2; point\(array 2, array 1\) at program.py:30 on rank 1",
    "numbers": r"RanksDisagreeError: ranks disagree about an exchange for call 5, step\(array 1, array 2\), line \d+: "
    r"rank 0 sends 40 bytes to rank 2, which expects 120 \(tag \d\); rank 1 sends 80 bytes to rank 0, which expects 40 ",
}


@pytest.mark.parametrize("how", STORIES)
def test_every_rank_tells_the_same_story(tmp_path, how):
    start = time.monotonic()
    done = run_program(tmp_path, STEPS, 3, how, "plain", QUADPY_RANK_TIMEOUT="2")
    assert time.monotonic() - start < 60
    assert done.returncode != 0
    for rank in (0, 2):
        assert re.search(STORIES[how], "\n".join(lines_of(done.stderr, rank)))
    last = "\n".join(lines_of(done.stderr, 1))
    if how == "slow":
        assert "the other ranks have given up this rank, 1: nothing came from it within 2 s" in last
    elif how == "stopped":
        assert "quadpy: this rank was stopped for 2 s, and is ended" in last
    elif how == "endless":
        assert "quadpy: SIGKILL ended this rank" in last
    else:
        assert re.search(STORIES[how], last)


@pytest.mark.parametrize("how", ["order", "numbers"])
def test_debug_finds_disagreement_before_messages_are_sent(tmp_path, how):
    done = run_program(tmp_path, STEPS, 3, how, "debug", QUADPY_RANK_TIMEOUT="10")
    assert done.returncode != 0
    for rank in range(3):
        assert "RanksDisagreeError: ranks disagree about " in "\n".join(lines_of(done.stderr, rank))


def test_a_rank_that_goes_on_in_time(tmp_path):
    """A rank that was stopped for less than the limit is not ended."""
    text = STEPS.replace(
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "os.system(f'(sleep 2; kill -CONT {os.getpid()}) & kill -STOP {os.getpid()}')",
    )
    done = run_program(tmp_path, text, 2, "stopped", "plain", QUADPY_RANK_TIMEOUT="20")
    assert done.returncode == 0, done.stderr


def test_ranks_in_different_calls(tmp_path):
    done = run_program(tmp_path, PROGRAM, 2, "other call", QUADPY_RANK_TIMEOUT="2")
    assert done.returncode == 1
    for rank in (0, 1):
        assert any(
            "RanksDisagreeError: ranks wait for each other in different calls: rank 0 in all_gather" in line
            and "rank 1 in share" in line
            for line in lines_of(done.stderr, rank)
        )


def test_messages_of_different_sizes(tmp_path):
    done = run_program(tmp_path, PROGRAM, 2, "exchange")
    assert done.returncode == 1
    for rank in (0, 1):
        text = "\n".join(lines_of(done.stderr, rank))
        assert "quadpy.errors.RanksDisagreeError: ranks disagree about an exchange: " in text
        assert "rank 0 sends 16 bytes to rank 1, which expects 20 (tag 0)" in text
        assert "rank 1 sends 20 bytes to rank 0, which expects 16 (tag 0)" in text


def test_a_mismatched_grid(tmp_path):
    done = run_program(tmp_path, PROGRAM, 2, "grid")
    assert done.returncode == 1
    for rank in (0, 1):
        text = "\n".join(lines_of(done.stderr, rank))
        assert (
            "RanksDisagreeError: ranks disagree about the shape of the grid: 8 x 9 on rank 0; 8 x 8 on rank 1" in text
        )


INTERRUPTED = """
    import time
    from quadpy.dist import world
    world().transport.share()
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted")
        raise
"""


def test_ctrl_c_reaches_every_rank(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("\n".join(line[4:] for line in INTERRUPTED.splitlines()))
    command = [sys.executable, "-m", "quadpy", "run", "-n", "2", str(program)]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "QUADPY_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        ready = [started.stdout.readline(), started.stdout.readline()]
        assert sorted(ready) == ["[0] ready\n", "[1] ready\n"]
        os.killpg(started.pid, signal.SIGINT)  # as a terminal does
        out, err = started.communicate(timeout=60)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 128 + signal.SIGINT
    assert sorted(line for line in out.splitlines() if "interrupted" in line) == ["[0] interrupted", "[1] interrupted"]
    assert "KeyboardInterrupt" in lines_of(err, 0)


FORKS = """
    import os, sys
    import quadpy as qp
    from quadpy.dist import world
    from quadpy.dist.transport.protocol import FlatPart

    transport = world().transport
    transport.share()
    for how in ("calls", "exits"):
        child = os.fork()
        if child == 0:
            if how == "calls":
                transport.share()
            sys.exit(3)
        print(how, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    array, every = qp.ndarray(qp.f32, 6), qp.ndarray(qp.f32, 12)
    transport.all_gather(FlatPart.whole(array), FlatPart.whole(every), qp.create_stream())
    print("ends well")
"""


def test_a_fork_is_no_rank(tmp_path):
    """Its calls are refused, and its end says nothing of the rank's."""
    done = run_program(tmp_path, FORKS, 2)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        assert lines_of(done.stdout, rank) == ["calls 1", "exits 3", "ends well"]
        message = f"quadpy.errors.TransportError: this process is a fork of rank {rank}, and not connected to the other"
        assert any(message in line for line in lines_of(done.stderr, rank))
