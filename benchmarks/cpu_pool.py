"""What the thread pool costs and what it gives: handing over a job, and memory bandwidth.

    python benchmarks/cpu_pool.py

Prints medians.  *spinning*: the workers have just finished a job.  *asleep*: they sleep, and the caller pays for
waking them, but does not wait for them if it can do the work itself.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable

import numpy as np

from quadpy.codegen.host import compile_host, host_header
from quadpy.runtime.cpu import pool
from quadpy.runtime.cpu.loader import load_object

CODE = """
declare void @qp_pool_run(ptr, ptr, ptr, i64, i64, i64)

define void @empty(ptr %args, ptr %scratch, i64 %begin, i64 %end) noinline optnone {
  ret void
}

; args: float x[n], float y[n] behind it.  y += 2 x
define void @saxpy(ptr noalias %x, ptr noalias %y, i64 %begin, i64 %end) {
  br label %next
next:
  %i = phi i64 [ %begin, %0 ], [ %i.next, %next ]
  %x.at = getelementptr inbounds float, ptr %x, i64 %i
  %y.at = getelementptr inbounds float, ptr %y, i64 %i
  %a = load float, ptr %x.at
  %b = load float, ptr %y.at
  %m = fmul float %a, 2.0
  %s = fadd float %m, %b
  store float %s, ptr %y.at
  %i.next = add nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %end
  br i1 %more, label %next, label %out
out:
  ret void
}

; %count jobs of two chunks, one right after the other
define void @dispatch(i64 %count) {
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %i.next, %next ]
  call void @qp_pool_run(ptr @empty, ptr null, ptr null, i64 2, i64 1, i64 1)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %next, label %out
out:
  ret void
}
"""


def seconds(call: Callable[[], object], repeat: int, rest: float = 0.0) -> float:
    """The median over ``repeat`` calls, with ``rest`` seconds of sleep before each."""
    times = []
    for _ in range(repeat):
        time.sleep(rest)
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    start = time.perf_counter()
    pool.pool_address()
    print(f"pool ready                     {(time.perf_counter() - start) * 1e3:8.2f} ms")
    code = load_object(compile_host(host_header() + CODE))
    empty = code.address("empty")
    dispatch = ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("dispatch"))
    pool.set_threads(max(2, pool.default_threads()))
    pool.run(empty, 0, 0, 2, chunk=1)
    print(f"empty job, native, spinning    {seconds(lambda: dispatch(1000), 50) * 1e3:8.2f} us")
    print(f"empty job, ctypes, spinning    {seconds(lambda: pool.run(empty, 0, 0, 2, chunk=1), 5000) * 1e6:8.2f} us")
    print(
        f"empty job, ctypes, asleep      {seconds(lambda: pool.run(empty, 0, 0, 2, chunk=1), 300, 1e-3) * 1e6:8.2f} us"
    )

    n = 1 << 26
    x, y = np.ones(n, np.float32), np.ones(n, np.float32)
    for threads in (1, 2):
        pool.set_threads(threads)
        took = seconds(lambda: pool.run(code.address("saxpy"), x.ctypes.data, y.ctypes.data, n, grain=4096), 9)
        print(f"saxpy of 2^26, {threads} thread(s)     {took * 1e3:8.2f} ms {3 * x.nbytes / took / 1e9:8.1f} GB/s")


if __name__ == "__main__":
    main()
