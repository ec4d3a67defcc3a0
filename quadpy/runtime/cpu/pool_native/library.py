"""The pool of a library that is used without Python: the same loops and threads; no signals, and an end.

Each library has a pool of its own.  A program may fork, and remove the library: in a child, the first job finds another
process than the workers' and forgets them; before the library is removed, its workers leave its code.
"""

from __future__ import annotations

from string import Template
from typing import Final

from quadpy.runtime.cpu.pool_native.caller import MAX_THREADS, caller_ir
from quadpy.runtime.cpu.pool_native.entry import run_ir
from quadpy.runtime.cpu.pool_native.hiring import hiring_ir
from quadpy.runtime.cpu.pool_native.hosts import HostTable
from quadpy.runtime.cpu.pool_native.interrupts import NO_INTERRUPTS
from quadpy.runtime.cpu.pool_native.waiting import SPIN_NS, waiting_ir
from quadpy.runtime.cpu.pool_native.worker import worker_ir

THREADS: Final = "qpg_threads"
"""``int32_t qpg_threads``: threads that a loop may use, the caller included; 0 for as many as the process has CPUs."""
END: Final = "qp_pool_end"
"""``void qp_pool_end()``, which runs before the library is removed."""

_SIZE: Final = Template("""
@qpg_threads = global i32 0
@qp_pool_threads = internal global i32 $most               ; fewer where the system refused one
@qp_pool_spin = internal global i64 $spin                  ; nanoseconds
@machine = internal global i64 0                           ; the process's CPUs

declare i32 @sched_getaffinity(i32, i64, ptr)
declare i64 @llvm.ctpop.i64(i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; How many threads a job may use, the caller included.
define i64 @qp_pool_size() nounwind {
  %asked = load atomic i32, ptr @qpg_threads monotonic, align 4
  %known = load atomic i64, ptr @machine monotonic, align 8
  %given = icmp sgt i32 %asked, 0
  %asked.64 = zext i32 %asked to i64
  %first = select i1 %given, i64 %asked.64, i64 %known
  %unknown = icmp eq i64 %first, 0
  br i1 %unknown, label %count, label %limit
count:
  %cpus = call i64 @count_cpus()
  store atomic i64 %cpus, ptr @machine monotonic, align 8
  br label %limit
limit:
  %wanted = phi i64 [ %first, %0 ], [ %cpus, %count ]
  %most.32 = load atomic i32, ptr @qp_pool_threads monotonic, align 4
  %most = zext i32 %most.32 to i64
  %threads = call i64 @llvm.umin.i64(i64 %wanted, i64 %most)
  ret i64 %threads
}

define internal i64 @count_cpus() nounwind noinline {
  %mask = alloca [128 x i64]
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 1024, i1 false)
  %rc = call i32 @sched_getaffinity(i32 0, i64 1024, ptr %mask)
  br label %next
next:
  %k = phi i64 [ 0, %0 ], [ %k.next, %next ]
  %sum = phi i64 [ 0, %0 ], [ %sum.next, %next ]
  %word.at = getelementptr i64, ptr %mask, i64 %k
  %word = load i64, ptr %word.at
  %bits = call i64 @llvm.ctpop.i64(i64 %word)
  %sum.next = add i64 %sum, %bits
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 128
  br i1 %more, label %next, label %out
out:
  %cpus = call i64 @llvm.umax.i64(i64 %sum.next, i64 1)
  ret i64 %cpus
}
""")

_OWNER: Final = Template("""
@owner = internal global i32 0                             ; the process of the workers; -1 while one thread forgets them
@ending = internal global i32 0
@handles = internal global [$most x i64] zeroinitializer

declare i32 @getpid()
declare i32 @pthread_join(i64, ptr)

define internal i1 @try_shared_here(ptr %mine) nounwind {
  %self = call i32 @getpid()
  %owner = load atomic i32, ptr @owner acquire, align 4
  %same = icmp eq i32 %self, %owner
  br i1 %same, label %share, label %other
other:
  %busy = icmp eq i32 %owner, -1
  br i1 %busy, label %no, label %claim
claim:
  %taken = cmpxchg ptr @owner, i32 %owner, i32 -1 acquire monotonic
  %won = extractvalue { i32, i1 } %taken, 1
  br i1 %won, label %forget, label %no
forget:
  call void @qp_pool_forget()
  store atomic i32 %self, ptr @owner release, align 4
  br label %share
share:
  %shared = call i1 @try_shared(ptr %mine)
  ret i1 %shared
no:
  ret i1 false
}

; Gives each worker a seat, with which it leaves, and waits for it.  While a job runs, as at a process's exit, all stays.
define void @qp_pool_end() nounwind {
  %self = call i32 @getpid()
  %owner = load atomic i32, ptr @owner acquire, align 4
  %same = icmp eq i32 %self, %owner
  br i1 %same, label %claim, label %out
claim:
  %taken = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %idle = extractvalue { i32, i1 } %taken, 1
  br i1 %idle, label %call, label %out
call:
  %count = load i32, ptr @workers
  store atomic i32 1, ptr @ending release, align 4
  %before = load atomic i32, ptr @gate monotonic, align 4
  %number = add i32 %before, 65536
  %open = or i32 %number, %count
  %o = atomicrmw xchg ptr @gate, i32 %open seq_cst
  call void @wake(ptr @gate, i32 %count)
  br label %look
look:
  %k = phi i32 [ 0, %call ], [ %k.next, %join ]
  %more = icmp ult i32 %k, %count
  br i1 %more, label %join, label %out
join:
  %handle.at = getelementptr i64, ptr @handles, i32 %k
  %handle = load i64, ptr %handle.at
  %rc = call i32 @pthread_join(i64 %handle, ptr null)
  %k.next = add i32 %k, 1
  br label %look
out:
  ret void
}
""")

_KEEP: Final = """%handle.kept = getelementptr i64, ptr @handles, i32 %id
  store i64 %handle, ptr %handle.kept"""

_ONWARD: Final = """%ending.now = load atomic i32, ptr @ending acquire, align 4
  %ends = icmp ne i32 %ending.now, 0
  br i1 %ends, label %leave, label %working
leave:
  ret ptr null"""


def library_ir(host: HostTable) -> str:
    """The module, without layout and triple."""
    return "\n".join((
        _SIZE.substitute(most=MAX_THREADS, spin=SPIN_NS), run_ir(host, "try_shared_here"), NO_INTERRUPTS,
        waiting_ir(host), caller_ir(), _OWNER.substitute(most=MAX_THREADS), hiring_ir(_KEEP), worker_ir(host, _ONWARD),
    ))  # fmt: skip
