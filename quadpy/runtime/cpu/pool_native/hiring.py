"""Starting the pool's workers: ordinary threads of the C library, which take no signals."""

from __future__ import annotations

from string import Template
from typing import Final

_HIRING: Final = Template("""
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @llvm.umin.i32(i32, i32)

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
  $keep
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
""")


def hiring_ir(keep: str = "%d = call i32 @pthread_detach(i64 %handle)") -> str:
    """``hire``; ``keep`` is what becomes of a new worker's ``%handle``, by its number ``%id``."""
    return _HIRING.substitute(keep=keep)
