"""What the thread pool costs and what it gives: handing over a job, and memory bandwidth.

*spinning*: the workers have just finished a job.  *asleep*: they sleep, and the caller pays for
waking them, but does not wait for them if it can do the work itself.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Sequence

import numpy as np

from harness.timing import Work, in_turns, seconds
from quadpy.codegen.host import compile_host, host_header
from quadpy.runtime.cpu import pool
from quadpy.runtime.cpu.loader import load_object

CODE = """
declare void @qp_pool_run(ptr, ptr, ptr, i64, i64, i64)

define void @empty(ptr %args, ptr %scratch, i64 %begin, i64 %end) noinline optnone {
  ret void
}

; args: float x[n], then float y[n].  y += 2 x
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


def main(words: Sequence[str]) -> int:
    """Prints medians."""
    parser = argparse.ArgumentParser(prog="run.py pool", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer samples, a smaller array")
    less, log2 = (10, 20) if parser.parse_args(words).quick else (1, 26)
    _show("pool ready", seconds(pool.pool_address))
    code = load_object(compile_host(host_header() + CODE))
    empty = code.address("empty")
    dispatch = ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("dispatch"))

    def job() -> None:
        pool.run(empty, 0, 0, 2, chunk=1)

    pool.set_threads(max(2, pool.default_threads()))
    job()
    _show("empty job, native, spinning", _median(lambda: dispatch(1000), 50 // less) / 1000)
    _show("empty job, ctypes, spinning", _median(job, 5000 // less))
    _show("empty job, ctypes, asleep", _median(job, 300 // less, rest=1e-3))
    n = 1 << log2
    x, y = np.ones(n, np.float32), np.ones(n, np.float32)
    for threads in (1, 2):
        pool.set_threads(threads)
        took = _median(lambda: pool.run(code.address("saxpy"), x.ctypes.data, y.ctypes.data, n, grain=4096), 9)
        _show(f"saxpy of 2^{log2}, {threads} thread(s)", took, f"{3 * x.nbytes / took / 1e9:8.1f} GB/s")
    return 0


def _median(call: Work, samples: int, rest: float = 0.0) -> float:
    """Seconds of a call; ``rest`` seconds of sleep come before each."""
    return statistics.median(in_turns({"": call}, samples, lambda: time.sleep(rest))[""])


def _show(title: str, took: float, more: str = "") -> None:
    print(f"{title:<30} {took * 1e6:12.2f} µs {more}".rstrip())
