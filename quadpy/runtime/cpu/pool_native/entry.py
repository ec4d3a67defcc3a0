"""The pool's module: its entry ``qp_pool_run``, ``qp_pool_size``, its own task ``qp_pool_fill``, and the other parts put together.

The entry splits a job into *units* (iterations, or whole chunks) and decides how many threads it is worth.
"""

from __future__ import annotations

from string import Template
from typing import Final

from quadpy.runtime.cpu.pool_native.caller import caller_ir
from quadpy.runtime.cpu.pool_native.hiring import HIRING_IR
from quadpy.runtime.cpu.pool_native.hosts import HostTable
from quadpy.runtime.cpu.pool_native.waiting import waiting_ir
from quadpy.runtime.cpu.pool_native.worker import worker_ir

__all__ = ["pool_ir"]

_STATE: Final = """
%job = type { ptr, ptr, ptr, i64, i64, i64, i64, i64 }     ; task, args, scratch, n, chunk, units, least, regions

@qp_pool_threads = global i32 1                            ; threads that a job may use, the caller included
@qp_pool_spin = global i64 0                               ; nanoseconds

declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
"""

_TASKS: Final = """
; The task over units [begin, end).
define internal void @run_units(ptr %job, i64 %begin, i64 %end) nounwind {
  %task = load ptr, ptr %job
  %args.at = getelementptr %job, ptr %job, i32 0, i32 1
  %args = load ptr, ptr %args.at
  %scratch.at = getelementptr %job, ptr %job, i32 0, i32 2
  %scratch = load ptr, ptr %scratch.at
  %n.at = getelementptr %job, ptr %job, i32 0, i32 3
  %n = load i64, ptr %n.at
  %chunk.at = getelementptr %job, ptr %job, i32 0, i32 4
  %chunk = load i64, ptr %chunk.at
  %free = icmp sle i64 %chunk, 0
  br i1 %free, label %whole, label %chunks
whole:
  call void %task(ptr %args, ptr %scratch, i64 %begin, i64 %end)
  ret void
chunks:
  %k = phi i64 [ %begin, %0 ], [ %k.next, %chunks ]
  %from = mul i64 %k, %chunk
  %left = sub i64 %n, %from
  %size = call i64 @llvm.umin.i64(i64 %left, i64 %chunk)
  %to = add i64 %from, %size
  call void %task(ptr %args, ptr %scratch, i64 %from, i64 %to)
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %end
  br i1 %more, label %chunks, label %out
out:
  ret void
}
"""

_ENTRY: Final = Template("""
; How many threads a job may use, the caller included.
define i64 @qp_pool_size() nounwind {
  %threads.32 = load atomic i32, ptr @qp_pool_threads monotonic, align 4
  %threads = zext i32 %threads.32 to i64
  ret i64 %threads
}

define void @qp_pool_run(ptr %task, ptr %args, ptr %scratch, i64 %n, i64 %chunk, i64 %grain) nounwind {
  %modes = alloca i32
  %job = alloca %job
  %empty = icmp sle i64 %n, 0
  br i1 %empty, label %out, label %plan
plan:
  %free = icmp sle i64 %chunk, 0
  %unit = select i1 %free, i64 1, i64 %chunk
  %n.less = sub i64 %n, 1
  %units.less = udiv i64 %n.less, %unit
  %units = add i64 %units.less, 1
  %positive = icmp sgt i64 %grain, 1
  %wanted = select i1 %positive, i64 %grain, i64 1
  %wanted.less = sub i64 %wanted, 1
  %least.less = udiv i64 %wanted.less, %unit
  %least = add i64 %least.less, 1
  %parts.less = udiv i64 %units.less, %least
  %parts = add i64 %parts.less, 1
  %threads = call i64 @qp_pool_size()
  %regions = call i64 @llvm.umin.i64(i64 %parts, i64 %threads)
  store ptr %task, ptr %job
  %job.1 = getelementptr %job, ptr %job, i32 0, i32 1
  store ptr %args, ptr %job.1
  %job.2 = getelementptr %job, ptr %job, i32 0, i32 2
  store ptr %scratch, ptr %job.2
  %job.3 = getelementptr %job, ptr %job, i32 0, i32 3
  store i64 %n, ptr %job.3
  %job.4 = getelementptr %job, ptr %job, i32 0, i32 4
  store i64 %chunk, ptr %job.4
  %job.5 = getelementptr %job, ptr %job, i32 0, i32 5
  store i64 %units, ptr %job.5
  %job.6 = getelementptr %job, ptr %job, i32 0, i32 6
  store i64 %least, ptr %job.6
  %job.7 = getelementptr %job, ptr %job, i32 0, i32 7
  store i64 %regions, ptr %job.7
  $save_modes
  $set_modes
  %alone = icmp ule i64 %regions, 1
  br i1 %alone, label %serial, label %share
share:
  %shared = call i1 @try_shared(ptr %job)
  br i1 %shared, label %restore, label %serial
serial:
  call void @run_units(ptr %job, i64 0, i64 %units)
  br label %restore
restore:
  $restore_modes
  br label %out
out:
  ret void
}
""")

_FILL: Final = """
declare ptr @memcpy(ptr, ptr, i64)

; A task: %args is { ptr memory, ptr pattern, i64 bytes }, and iteration k puts the pattern at memory + k * bytes.
define void @qp_pool_fill(ptr %args, ptr %scratch, i64 %begin, i64 %end) nounwind {
  %memory = load ptr, ptr %args
  %pattern.at = getelementptr i64, ptr %args, i64 1
  %pattern = load ptr, ptr %pattern.at
  %bytes.at = getelementptr i64, ptr %args, i64 2
  %bytes = load i64, ptr %bytes.at
  br label %next
next:
  %k = phi i64 [ %begin, %0 ], [ %k.next, %next ]
  %offset = mul i64 %k, %bytes
  %to = getelementptr i8, ptr %memory, i64 %offset
  %same = call ptr @memcpy(ptr %to, ptr %pattern, i64 %bytes)
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %end
  br i1 %more, label %next, label %out
out:
  ret void
}
"""

_NOT_SHARED: Final = """
define void @qp_pool_forget() nounwind {
  ret void
}

define internal i1 @try_shared(ptr %job) nounwind {
  ret i1 false
}
"""


def pool_ir(host: HostTable | None) -> str:
    """The module, without layout and triple; with no ``host``, callers do all work themselves."""
    modes = {name: getattr(host, name, "") for name in ("save_modes", "set_modes", "restore_modes")}
    parts = (
        host.declare if host else "",
        _STATE,
        _TASKS,
        _ENTRY.substitute(modes),
        _FILL,
        *(_shared_parts(host) if host else (_NOT_SHARED,)),
    )
    return "\n".join(parts)


def _shared_parts(host: HostTable) -> tuple[str, ...]:
    return waiting_ir(host), caller_ir(), HIRING_IR, worker_ir(host)
