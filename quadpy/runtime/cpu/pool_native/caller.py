"""The caller's side of a job that is shared: the pool's state, publishing a job, waiting for it.

``gate`` is the only word that workers watch: seats that are free in its low half, the job's number in its high
half.  A worker joins by taking a seat.  The caller works too, then closes the gate (no seats) and waits only for
those who joined: a worker that is slow to wake delays no one, and a job completes even if no worker ever joins.
The job's fields change only while the gate is closed, and a worker reads them only after it has taken a seat, so no
worker sees half a job.

``busy`` is held by the one caller that has the workers.  A second caller, and a task that calls back, find it
taken and do their work themselves.
"""

from __future__ import annotations

from string import Template
from typing import Final

MAX_THREADS: Final = 1024
"""Regions in the pool's memory, which is zeroed: unused parts cost nothing."""

_STATE: Final = Template("""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Words that different threads write lie in cache lines of their own.
%region = type { i64, i64, [6 x i64] }                     ; next unit, end
@gate = internal global i32 0, align 64
@done = internal global i32 0, align 64                    ; workers that joined the job and are through with it
@caller_sleeps = internal global i32 0
@sleepers = internal global i32 0, align 64                ; workers that sleep
@busy = internal global i32 0, align 64                    ; a caller has the workers
@workers = internal global i32 0                           ; that exist
@job = internal global %job zeroinitializer, align 64
@job.depth = internal global i32 0                         ; see ``interrupts``; 0 for a caller that no signal interrupts
@regions = internal global [$threads x %region] zeroinitializer, align 64

; In a forked child, which has no workers: back to the state before the first job.
define void @qp_pool_forget() nounwind {
  store i32 0, ptr @workers
  store i32 0, ptr @sleepers
  store i32 0, ptr @gate
  store i32 0, ptr @busy
  call void @forget_main()
  ret void
}
""")

_SHARE: Final = """
; True when the job has been done together with workers; false when the caller must do it alone.
define internal i1 @try_shared(ptr %mine) nounwind {
  %taken = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %owner = extractvalue { i32, i1 } %taken, 1
  br i1 %owner, label %hire, label %no
hire:
  %regions.at = getelementptr %job, ptr %mine, i32 0, i32 7
  %asked = load i64, ptr %regions.at
  %asked.32 = trunc i64 %asked to i32
  %helpers.asked = sub i32 %asked.32, 1
  %helpers = call i32 @hire(i32 %helpers.asked)
  %none = icmp eq i32 %helpers, 0
  br i1 %none, label %release, label %post
post:
  %helpers.64 = zext i32 %helpers to i64
  %regions = add i64 %helpers.64, 1
  store i64 %regions, ptr %regions.at
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 @job, ptr align 8 %mine, i64 64, i1 false)
  %depth = call i32 @own_depth()
  store i32 %depth, ptr @job.depth
  call void @cut(i64 %regions)
  store atomic i32 0, ptr @done monotonic, align 4
  store atomic i32 0, ptr @caller_sleeps monotonic, align 4
  %before = load atomic i32, ptr @gate monotonic, align 4
  %number = add i32 %before, 65536
  %open = or i32 %number, %helpers
  %o = atomicrmw xchg ptr @gate, i32 %open seq_cst
  call void @call_workers(i32 %helpers)
  call void @work(i64 0)
  %last = atomicrmw xchg ptr @gate, i32 %number seq_cst
  %seats = and i32 %last, 65535
  %joined = sub i32 %helpers, %seats
  %left = load i32, ptr @workers                           ; none in a child that a handler of signals forked meanwhile
  %forked = icmp eq i32 %left, 0
  br i1 %forked, label %release, label %wait
wait:
  call void @await(i32 %joined)
  br label %release
release:
  store atomic i32 0, ptr @busy release, align 4
  %shared = xor i1 %none, true
  ret i1 %shared
no:
  ret i1 false
}

; Writes the regions: contiguous, equal, and at multiples of 64 units where they are long.
define internal void @cut(i64 %count) nounwind {
  %units.at = getelementptr %job, ptr @job, i32 0, i32 5
  %units = load i64, ptr %units.at
  %units.less = sub i64 %units, 1
  %size.less = udiv i64 %units.less, %count
  %size.exact = add i64 %size.less, 1
  %size.more = add i64 %size.exact, 63
  %size.round = and i64 %size.more, -64
  %long = icmp uge i64 %size.exact, 4096
  %size = select i1 %long, i64 %size.round, i64 %size.exact
  br label %next
next:
  %r = phi i64 [ 0, %0 ], [ %r.next, %next ]
  %begin = phi i64 [ 0, %0 ], [ %end, %next ]
  %end.free = add i64 %begin, %size
  %end = call i64 @llvm.umin.i64(i64 %end.free, i64 %units)
  %begin.at = getelementptr %region, ptr @regions, i64 %r, i32 0
  store atomic i64 %begin, ptr %begin.at monotonic, align 8
  %end.at = getelementptr %region, ptr @regions, i64 %r, i32 1
  store i64 %end, ptr %end.at
  %r.next = add i64 %r, 1
  %more = icmp ult i64 %r.next, %count
  br i1 %more, label %next, label %out
out:
  ret void
}

; Wakes as many sleepers as the job has seats for, beyond the workers that are awake already.
define internal void @call_workers(i32 %seats) nounwind {
  %sleeping = load atomic i32, ptr @sleepers seq_cst, align 4
  %all = load i32, ptr @workers
  %awake = sub i32 %all, %sleeping
  %lacking = sub i32 %seats, %awake
  %some = icmp sgt i32 %lacking, 0
  br i1 %some, label %call, label %out
call:
  call void @wake(ptr @gate, i32 %lacking)
  br label %out
out:
  ret void
}

@patience = private constant [2 x i64] [i64 0, i64 50000000]

; Returns when all who joined are done.
define internal void @await(i32 %joined) nounwind {
  br label %look
look:
  %seen = load atomic i32, ptr @done acquire, align 4
  %all = icmp eq i32 %seen, %joined
  br i1 %all, label %out, label %spin
spin:
  %now = call i32 @spin_while(ptr @done, i32 %seen)
  %still = icmp eq i32 %now, %seen
  br i1 %still, label %sleep, label %look
sleep:
  %o = atomicrmw xchg ptr @caller_sleeps, i32 1 seq_cst
  call void @sleep_while(ptr @done, i32 %seen, ptr @patience)
  %p = call i32 @qp_pool_poll()                            ; workers see what it decides
  br label %look
out:
  ret void
}
"""


def caller_ir() -> str:
    """``try_shared`` and ``qp_pool_forget``; needs the functions of ``waiting``, ``hiring`` and ``worker``."""
    return _STATE.substitute(threads=MAX_THREADS) + _SHARE
