"""The part of the thread pool's native code that shares a job between threads, as LLVM IR text.

``gate`` is the only word that workers watch: seats that are free in its low half, the job's number in its high
half.  A worker joins by taking a seat.  The caller works too, then closes the gate (no seats) and waits only for
those who joined: a worker that is slow to wake holds nobody up.  The job's fields change only while the gate is
closed and are read only behind a seat taken, so no worker sees half a job.

A thread that finds nothing spins for ``qp_pool_spin`` nanoseconds and then sleeps on a futex.  Sleeper and waker
each write their own word first and then read the other's, both sequentially consistent: one of the two always
sees the other, so no wake-up is lost.  Waking is a hint: a job is done even if no worker ever comes.
"""

from __future__ import annotations

from string import Template
from typing import Final

from quadpy.runtime.cpu.pool_host import HostTable

__all__ = ["MAX_THREADS", "shared_ir"]

MAX_THREADS: Final = 1024
"""Regions in the pool's memory, which is zeroed: what is not used costs nothing."""

_SYSTEM: Final = Template("""
declare i32 @clock_gettime(i32, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i64 @syscall(i64, ...)
declare i32 @llvm.umin.i32(i32, i32)
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
@regions = internal global [$threads x %region] zeroinitializer, align 64

; In a forked child, which has no workers: back to the state before the first job.
define void @qp_pool_forget() nounwind {
  store i32 0, ptr @workers
  store i32 0, ptr @sleepers
  store i32 0, ptr @gate
  store i32 0, ptr @busy
  ret void
}

define internal i64 @now() nounwind {
  %time = alloca [2 x i64]
  %rc = call i32 @clock_gettime(i32 1, ptr %time)          ; CLOCK_MONOTONIC
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %ns = add i64 %whole, %rest
  ret i64 %ns
}

define internal void @sleep_while(ptr %word, i32 %value) nounwind {
  %rc = call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 128, i32 %value, ptr null)
  ret void
}

define internal void @wake(ptr %word, i32 %count) nounwind {
  %rc = call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 129, i32 %count)
  ret void
}

; Spins until the word differs from %value or the time is up; what the word is then.
define internal i32 @spin_while(ptr %word, i32 %value) nounwind {
  %start = call i64 @now()
  %span = load atomic i64, ptr @qp_pool_spin monotonic, align 8
  %deadline = add i64 %start, %span
  br label %look
look:
  %i = phi i32 [ 1, %0 ], [ %i.next, %pause ], [ %i.next, %clock ]
  %now = load atomic i32, ptr %word acquire, align 4
  %same = icmp eq i32 %now, %value
  br i1 %same, label %pause, label %out
pause:
  $pause
  %i.next = add i32 %i, 1
  %low = and i32 %i, 31
  %many = icmp eq i32 %low, 0
  br i1 %many, label %clock, label %look
clock:
  %time = call i64 @now()
  %early = icmp slt i64 %time, %deadline
  br i1 %early, label %look, label %out
out:
  ret i32 %now
}
""")

_CALLER: Final = """
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
  call void @sleep_while(ptr @done, i32 %seen)
  br label %look
out:
  ret void
}

; Workers that exist, at most %count; starts what is missing.  Where the system refuses one, the pool stays smaller.
define internal i32 @hire(i32 %count) nounwind {
  %thread = alloca i64
  %mask = alloca [16 x i64]
  %there = load i32, ptr @workers
  %enough = icmp uge i32 %there, %count
  br i1 %enough, label %out, label %block
block:
  %b = call i32 @pthread_sigmask(i32 2, ptr @signals, ptr %mask)
  br label %start
start:
  %id = phi i32 [ %there, %block ], [ %id.next, %started ]
  %id.next = add i32 %id, 1
  %id.64 = zext i32 %id.next to i64
  %argument = inttoptr i64 %id.64 to ptr
  %rc = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %argument)
  %failed = icmp ne i32 %rc, 0
  br i1 %failed, label %refused, label %started
started:
  %handle = load i64, ptr %thread
  %d = call i32 @pthread_detach(i64 %handle)
  store i32 %id.next, ptr @workers
  %more = icmp ult i32 %id.next, %count
  br i1 %more, label %start, label %unblock
refused:
  store atomic i32 %id.next, ptr @qp_pool_threads monotonic, align 4
  br label %unblock
unblock:
  %u = call i32 @pthread_sigmask(i32 2, ptr %mask, ptr null)
  br label %out
out:
  %have = load i32, ptr @workers
  %least = call i32 @llvm.umin.i32(i32 %have, i32 %count)
  ret i32 %least
}

; All but those that a fault raises in the thread itself (ILL, TRAP, BUS, FPE, SEGV), so that handlers of faults run.
@signals = private constant [16 x i64] [i64 -1241, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1,
                                        i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1]
"""

_WORKER: Final = Template("""
define internal ptr @worker(ptr %argument) nounwind {
  %self = ptrtoint ptr %argument to i64
  br label %next
next:
  %last = phi i32 [ 1, %0 ], [ %number, %working ], [ %number, %tell ]   ; 1 is no job's number
  %number = call i32 @take_seat(i32 %last)
  br label %working
working:
  $set_modes
  call void @work(i64 %self)
  %d = atomicrmw add ptr @done, i32 1 seq_cst
  %asleep = load atomic i32, ptr @caller_sleeps seq_cst, align 4
  %sleeps = icmp ne i32 %asleep, 0
  br i1 %sleeps, label %tell, label %next
tell:
  call void @wake(ptr @done, i32 1)
  br label %next
}

; Waits for a seat of a job other than %last; that job's number.
define internal i32 @take_seat(i32 %last) nounwind {
  br label %look
look:
  %gate = load atomic i32, ptr @gate acquire, align 4
  %can = call i1 @has_seat(i32 %gate, i32 %last)
  br i1 %can, label %try, label %spin
try:
  %fewer = sub i32 %gate, 1
  %taken = cmpxchg ptr @gate, i32 %gate, i32 %fewer acquire monotonic
  %mine = extractvalue { i32, i1 } %taken, 1
  br i1 %mine, label %out, label %look
spin:
  %now = call i32 @spin_while(ptr @gate, i32 %gate)
  %still = icmp eq i32 %now, %gate
  br i1 %still, label %rest, label %look
rest:
  %s = atomicrmw add ptr @sleepers, i32 1 seq_cst
  call void @sleep_while(ptr @gate, i32 %gate)
  %w = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %look
out:
  %number = and i32 %gate, -65536
  ret i32 %number
}

define internal i1 @has_seat(i32 %gate, i32 %last) nounwind {
  %seats = and i32 %gate, 65535
  %number = and i32 %gate, -65536
  %free = icmp ne i32 %seats, 0
  %fresh = icmp ne i32 %number, %last
  %can = and i1 %free, %fresh
  ret i1 %can
}

; Claims and runs pieces of the own region, then of the others', until nothing is left to claim.
define internal void @work(i64 %self) nounwind {
  %least.at = getelementptr %job, ptr @job, i32 0, i32 6
  %least = load i64, ptr %least.at
  %count.at = getelementptr %job, ptr @job, i32 0, i32 7
  %count = load i64, ptr %count.at
  %first = urem i64 %self, %count
  br label %visit
visit:
  %k = phi i64 [ 0, %0 ], [ %k.next, %leave ]
  %r.free = add i64 %first, %k
  %r = urem i64 %r.free, %count
  %next.at = getelementptr %region, ptr @regions, i64 %r, i32 0
  %end.at = getelementptr %region, ptr @regions, i64 %r, i32 1
  %end = load i64, ptr %end.at
  br label %look
look:
  %next = load atomic i64, ptr %next.at monotonic, align 8
  %left = sub i64 %end, %next
  %over = icmp sle i64 %left, 0
  br i1 %over, label %leave, label %claim
claim:
  %eighth = lshr i64 %left, 3
  %long = icmp uge i64 %eighth, 512
  %round = and i64 %eighth, -64
  %good = select i1 %long, i64 %round, i64 %eighth
  %atleast = call i64 @llvm.umax.i64(i64 %good, i64 %least)
  %piece = call i64 @llvm.umin.i64(i64 %atleast, i64 %left)
  %to = add i64 %next, %piece
  %won = cmpxchg ptr %next.at, i64 %next, i64 %to monotonic monotonic
  %mine = extractvalue { i64, i1 } %won, 1
  br i1 %mine, label %run, label %look
run:
  call void @run_units(ptr @job, i64 %next, i64 %to)
  br label %look
leave:
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %count
  br i1 %more, label %visit, label %out
out:
  ret void
}
""")


def shared_ir(host: HostTable) -> str:
    """The functions behind ``try_shared``, for a Linux of ``host``'s kind."""
    system = _SYSTEM.substitute(futex=host.futex, pause=host.pause, threads=MAX_THREADS)
    return system + _CALLER + _WORKER.substitute(set_modes=host.set_modes)
