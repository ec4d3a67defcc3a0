"""The workers' loop, and how threads divide a job.

The caller cuts the units into one contiguous *region* per thread.  A thread claims pieces from the front of its own
region, an eighth of what is left at a time, and then goes through the others' regions in the same way: sweeps over
the same arrays touch the same memory from the same thread, and uneven work ends together.
"""

from __future__ import annotations

from string import Template
from typing import Final

from quadpy.runtime.cpu.pool_native.hosts import HostTable

_WORKER: Final = Template("""
define internal ptr @worker(ptr %argument) nounwind {
  %self = ptrtoint ptr %argument to i64
  call void @say_worker(ptr %argument)
  br label %next
next:
  %last = phi i32 [ 1, %0 ], [ %number, %working ], [ %number, %tell ]   ; 1 is not the number of a job
  %number = call i32 @take_seat(i32 %last)
  $onward
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
  call void @sleep_while(ptr @gate, i32 %gate, ptr null)
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
  %stop = call i32 @run_units(ptr @job, i64 %next, i64 %to)
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %out, label %look
leave:
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %count
  br i1 %more, label %visit, label %out
out:
  ret void
}
""")


def worker_ir(host: HostTable, onward: str = "br label %working") -> str:
    """``worker``, a thread's body, and ``work``, which the caller of a job runs as well.

    ``onward`` is what a worker does with a seat: it goes on at ``%working``.
    """
    return _WORKER.substitute(set_modes=host.set_modes, onward=onward)
