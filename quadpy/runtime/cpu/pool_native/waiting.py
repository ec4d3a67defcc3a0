"""How a thread of the pool waits: it spins for ``qp_pool_spin`` nanoseconds, then it sleeps on a futex.

Sleeper and waker each write their own word first and then read the other's, both sequentially consistent: one of
the two always sees the other, so no wake-up is lost.
"""

from __future__ import annotations

from string import Template
from typing import Final

from quadpy.runtime.cpu.pool_native.hosts import HostTable

SPIN_NS: Final = 50_000
"""Longer than the gap between consecutive launches, too short to notice."""

_WAITING: Final = Template("""
declare i32 @clock_gettime(i32, ptr)
declare i64 @syscall(i64, ...)

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

; %patience is null, or the time after which it returns all the same.
define internal void @sleep_while(ptr %word, i32 %value, ptr %patience) nounwind {
  %rc = call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 128, i32 %value, ptr %patience)
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


def waiting_ir(host: HostTable) -> str:
    """``now``, ``sleep_while``, ``wake`` and ``spin_while``, for a Linux of ``host``'s kind."""
    return _WAITING.substitute(futex=host.futex, pause=host.pause)
