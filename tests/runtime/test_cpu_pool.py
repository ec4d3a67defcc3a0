"""The thread pool: every iteration once, whatever the callers do; forks, signals and exits included."""

from __future__ import annotations

import ctypes
import functools
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from quadpy.codegen.host import compile_host, host_header
from quadpy.errors import ArgumentError
from quadpy.runtime.cpu import pool
from quadpy.runtime.cpu.libc import c_address
from quadpy.runtime.cpu.loader import LoadedObject, load_object
from quadpy.runtime.cpu.orc import assemble, link
from quadpy.runtime.cpu.pool_native.entry import pool_ir

TASKS = """
declare void @qp_pool_run(ptr, ptr, ptr, i64, i64, i64)
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

; counts[i] += 1
define void @mark(ptr %counts, ptr %scratch, i64 %begin, i64 %end) {
  br label %next
next:
  %i = phi i64 [ %begin, %0 ], [ %i.next, %next ]
  %at = getelementptr i32, ptr %counts, i64 %i
  %o = atomicrmw add ptr %at, i32 1 monotonic
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %end
  br i1 %more, label %next, label %out
out:
  ret void
}

; ends[begin] = end
define void @piece(ptr %ends, ptr %scratch, i64 %begin, i64 %end) {
  %at = getelementptr i64, ptr %ends, i64 %begin
  store i64 %end, ptr %at
  ret void
}

; scratch[begin] = the floating-point modes, without the sticky flags
define void @modes(ptr %args, ptr %scratch, i64 %begin, i64 %end) {
  %word = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %word)
  %all = load i32, ptr %word
  %kept = and i32 %all, 65472
  %at = getelementptr i32, ptr %scratch, i64 %begin
  store i32 %kept, ptr %at
  ret void
}

; Sets the modes to %value, runs @modes over 64 chunks, and returns the modes that the caller has then.
define i32 @run_under_modes(ptr %scratch, i32 %value) {
  %word = alloca i32
  %before = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %before)
  store i32 %value, ptr %word
  call void @llvm.x86.sse.ldmxcsr(ptr %word)
  call void @qp_pool_run(ptr @modes, ptr null, ptr %scratch, i64 64, i64 1, i64 1)
  call void @llvm.x86.sse.stmxcsr(ptr %word)
  call void @llvm.x86.sse.ldmxcsr(ptr %before)
  %after = load i32, ptr %word
  ret i32 %after
}

; A task that hands 100 iterations of @mark to the pool for each of its own.
define void @nested(ptr %counts, ptr %scratch, i64 %begin, i64 %end) {
  br label %next
next:
  %i = phi i64 [ %begin, %0 ], [ %i.next, %next ]
  %first = mul i64 %i, 100
  %at = getelementptr i32, ptr %counts, i64 %first
  call void @qp_pool_run(ptr @mark, ptr %at, ptr null, i64 100, i64 0, i64 1)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %end
  br i1 %more, label %next, label %out
out:
  ret void
}

; Raises *args and then waits until it is *scratch: proves that so many threads are inside at once.
define void @meet(ptr %args, ptr %scratch, i64 %begin, i64 %end) {
  %want = load i32, ptr %scratch
  %o = atomicrmw add ptr %args, i32 1 seq_cst
  br label %wait
wait:
  %now = load atomic i32, ptr %args seq_cst, align 4
  %all = icmp sge i32 %now, %want
  br i1 %all, label %out, label %wait
out:
  ret void
}
"""

WORD_MODES = 0x1F80  # round to nearest, subnormals kept, all exceptions masked
FLUSH_AND_ROUND_UP = 0x1F80 | 0x8040 | 0x4000


@functools.cache
def tasks() -> LoadedObject:
    """The tasks' code; ``four_threads`` asks for it before a test's own threads can race for it."""
    return load_object(compile_host(host_header() + TASKS, "x86-64"))


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    tasks()
    before = pool.get_threads()
    pool.set_threads(4)
    yield
    pool.set_threads(before)


def counts_after(n: int, chunk: int = 0, grain: int = 1) -> np.ndarray:
    counts = np.zeros(n + 2, np.int32)
    pool.run(tasks().address("mark"), counts.ctypes.data + 4, 0, n, chunk=chunk, grain=grain)
    return counts


def pieces_of(n: int, chunk: int, grain: int) -> list[tuple[int, int]]:
    ends = np.zeros(max(n, 1), np.int64)
    pool.run(tasks().address("piece"), ends.ctypes.data, 0, n, chunk=chunk, grain=grain)
    return [(int(begin), int(ends[begin])) for begin in np.flatnonzero(ends)]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 63, 64, 65, 1000, 4097, 100_003])
@pytest.mark.parametrize("chunk", [0, 1, 7, 4096])
@pytest.mark.parametrize("grain", [0, 1, 100])
def test_every_iteration_runs_once(n: int, chunk: int, grain: int) -> None:
    counts = counts_after(n, chunk, grain)
    assert counts[0] == counts[-1] == 0
    assert (counts[1:-1] == 1).all()


def test_a_negative_count_runs_nothing() -> None:
    ends = np.zeros(4, np.int64)
    pool.run(tasks().address("piece"), ends.ctypes.data, 0, -3)
    assert not ends.any()


@pytest.mark.parametrize("threads", [1, 2, 4, 9])
@pytest.mark.parametrize(("n", "chunk"), [(10, 3), (9, 3), (1, 8), (100_000, 1024), (5, 1 << 62)])
def test_chunks_have_their_shape_whatever_the_threads(threads: int, n: int, chunk: int) -> None:
    pool.set_threads(threads)
    assert pieces_of(n, chunk, 1) == [(k, min(k + chunk, n)) for k in range(0, n, chunk)]


@pytest.mark.parametrize("n", [1000, 5000, 1_000_000])
def test_free_pieces_tile_the_range_and_respect_the_grain(n: int) -> None:
    pieces = pieces_of(n, 0, 300)
    assert [begin for begin, _ in pieces[1:]] == [end for _, end in pieces[:-1]]
    assert (pieces[0][0], pieces[-1][1]) == (0, n)
    short = [p for p in pieces if p[1] - p[0] < 300]
    assert len(short) <= 4  # the last of each region


def test_no_more_than_the_grain_is_one_piece() -> None:
    assert pieces_of(500, 0, 500) == [(0, 500)]
    assert len(pieces_of(501, 0, 500)) == 2


def test_one_thread_gets_all_of_it_in_order_and_looks_for_signals_every_64_grains() -> None:
    pool.set_threads(1)
    assert pieces_of(1_000_000, 0, 1000) == [(k, min(k + 64_000, 1_000_000)) for k in range(0, 1_000_000, 64_000)]
    assert pieces_of(64_000, 0, 1000) == [(0, 64_000)]


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_all_threads_work_at_the_same_time(threads: int) -> None:
    """Each of the tasks waits for all the others: the job ends only if every thread has joined."""
    pool.set_threads(threads)
    arrived, want = ctypes.c_int32(), ctypes.c_int32(threads)
    pool.run(tasks().address("meet"), ctypes.addressof(arrived), ctypes.addressof(want), threads, chunk=1)
    assert arrived.value == threads


@pytest.mark.parametrize("spin", [0, 1_000_000])
def test_jobs_right_after_each_other_and_after_rest(spin: int) -> None:
    pool.set_spin(spin)
    try:
        for k in range(600):
            assert (counts_after(37, 0, 1)[1:-1] == 1).all()
            if k % 60 == 0:
                time.sleep(0.003)
    finally:
        pool.set_spin(pool.SPIN_NS)


def test_random_shapes() -> None:
    rng = random.Random(20)
    for _ in range(500):
        pool.set_threads(rng.randint(1, 6))
        n = int(10 ** rng.uniform(0, 4.5))
        chunk = rng.choice([0, 0, rng.randint(1, 2 * n)])
        counts = counts_after(n, chunk, rng.randint(0, 50))
        assert (counts[1:-1] == 1).all()


def test_many_python_threads_call_at_once() -> None:
    def work(seed: int) -> bool:
        rng = random.Random(seed)
        return all((counts_after(rng.randint(1, 5000))[1:-1] == 1).all() for _ in range(200))

    with ThreadPoolExecutor(6) as callers:
        assert all(callers.map(work, range(6)))


def test_a_task_may_call_the_pool() -> None:
    counts = np.zeros(100 * 200, np.int32)
    pool.run(tasks().address("nested"), counts.ctypes.data, 0, 200)
    assert (counts == 1).all()


@pytest.mark.parametrize("threads", [1, 4])
def test_tasks_have_default_modes_and_the_caller_keeps_its_own(threads: int) -> None:
    pool.set_threads(threads)
    run = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)(tasks().address("run_under_modes"))
    seen = np.zeros(64, np.uint32)
    after = run(seen.ctypes.data, FLUSH_AND_ROUND_UP)
    assert (seen == WORD_MODES).all()
    assert after & ~0x3F == FLUSH_AND_ROUND_UP


@pytest.mark.parametrize("count", [0, -1, 1025])
def test_a_thread_count_out_of_range_is_refused(count: int) -> None:
    with pytest.raises(ArgumentError, match="threads"):
        pool.set_threads(count)


def test_a_negative_spin_is_refused() -> None:
    with pytest.raises(ValueError, match="spin"):
        pool.set_spin(-1)


def test_without_a_row_for_the_host_the_caller_does_it_all() -> None:
    code = link(assemble(pool_ir(None)), {"memcpy": c_address("memcpy")})
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)(code.address(pool.ENTRY))
    counts = np.zeros(1000, np.int32)
    ctypes.c_int32.from_address(code.address("qp_pool_threads")).value = 8
    run(tasks().address("mark"), counts.ctypes.data, 0, 1000, 0, 1)
    run(tasks().address("mark"), counts.ctypes.data, 0, 1000, 10, 1)
    assert (counts == 2).all()


@pytest.mark.parametrize(("nbytes", "count"), [(16, 1), (64, 1000), (1 << 14, 300)])
def test_a_pattern_is_repeated(nbytes: int, count: int) -> None:
    pattern = np.arange(nbytes // 2, dtype=np.uint16)
    memory = np.zeros(nbytes // 2 * (count + 2), np.uint16)
    pool.fill(memory.ctypes.data + nbytes, pattern.ctypes.data, nbytes, count)
    rows = memory.reshape(count + 2, -1)
    assert (rows[1:-1] == pattern).all()
    assert not rows[0].any()
    assert not rows[-1].any()


def test_a_forked_child_gets_threads_of_its_own() -> None:
    test_all_threads_work_at_the_same_time(4)
    child = os.fork()
    if child == 0:  # a hang ends with the alarm's default action, which is a failure, too
        signal.alarm(20)
        test_all_threads_work_at_the_same_time(4)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    test_all_threads_work_at_the_same_time(4)


def test_children_forked_in_the_middle_of_jobs() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            counts_after(20_000)

    caller = threading.Thread(target=work)
    caller.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                test_all_threads_work_at_the_same_time(4)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        caller.join()


PREAMBLE = """
import ctypes, os, signal, threading, time
from pathlib import Path
from quadpy.codegen.host import compile_host, host_header
from quadpy.runtime.cpu import pool
from quadpy.runtime.cpu.loader import load_object
code = load_object(compile_host(host_header() + '''
define void @turn(ptr %counter, ptr %scratch, i64 %begin, i64 %end) {
  br label %next
next:
  %i = phi i64 [ %begin, %0 ], [ %i.next, %next ]
  %v = load volatile i64, ptr %counter
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %end
  br i1 %more, label %next, label %out
out:
  ret void
}'''))
pool.set_threads(4)
word = ctypes.c_int64()
def turn(n):
    pool.run(code.address("turn"), ctypes.addressof(word), 0, n)
def threads():
    return set(os.listdir("/proc/self/task"))
others = threads()  # this one, and those of NumPy's linear algebra
"""


def run_script(body: str) -> subprocess.CompletedProcess[str]:
    script = PREAMBLE + textwrap.dedent(body)
    return subprocess.run([sys.executable, "-c", script], timeout=60, env=os.environ, check=False,
                          capture_output=True, text=True)  # fmt: skip


@pytest.mark.parametrize("body", [
    pytest.param("turn(10**6)", id="workers spin"),
    pytest.param("turn(10**6); time.sleep(0.05)", id="workers sleep"),
    pytest.param("threading.Thread(target=turn, args=(10**15,), daemon=True).start(); time.sleep(0.1)", id="at work"),
    pytest.param("del code; import gc; gc.collect()", id="never used"),
])  # fmt: skip
def test_the_interpreter_exits_quietly(body: str) -> None:
    done = run_script(body)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_reaches_python_when_the_job_ends() -> None:
    """The signal comes while all threads are at work; workers must not take it, nor break off."""
    done = run_script("""
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        for _ in range(10**6):
            turn(10**7)
    except KeyboardInterrupt:
        turn(10**6)
        print("interrupted and usable")
    """)
    assert (done.returncode, done.stdout) == (0, "interrupted and usable\n")


def test_workers_take_no_signals() -> None:
    done = run_script("""
    turn(10**6)
    workers = threads() - others
    assert len(workers) == 3, workers
    for t in workers:
        blocked = next(l for l in Path(f"/proc/self/task/{t}/status").read_text().splitlines() if l.startswith("SigBlk"))
        assert int(blocked.split()[1], 16) >> (signal.SIGINT - 1) & 1, blocked
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_start_only_when_work_is_shared() -> None:
    done = run_script("""
    turn(1)
    assert threads() == others
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_system_that_refuses_threads_gets_its_work_done() -> None:
    """An address space with no room for another stack makes pthread_create fail."""
    done = run_script("""
    import resource
    turn(1)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, used + 2**20))
    turn(10**6)
    print(pool.get_threads(), len(threads() - others))
    """)
    assert (done.returncode, done.stdout) == (0, "1 0\n"), done.stderr


def test_the_object_comes_from_the_cache(tmp_path: Path) -> None:
    """Two processes: the second must find the first one's object and never build."""
    script = """
    from quadpy.runtime.cpu import orc, pool
    build = orc._assembled
    orc._assembled = lambda *given: print("built") or build(*given)
    assert pool.pool_address() == pool.pool_address()
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    environment = {**os.environ, "QUADPY_CACHE_DIR": str(tmp_path), "QUADPY_CACHE": "1"}
    outputs = [
        subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout for _ in range(2)
    ]
    assert outputs == ["built\n", ""]
