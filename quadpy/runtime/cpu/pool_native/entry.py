"""The pool's module: its entry ``qp_pool_run``, ``qp_pool_size``, its own task ``qp_pool_fill``, and the other parts put together.

The entry splits a job into *units* (iterations, or whole chunks) and decides how many threads it is worth.
"""

from __future__ import annotations

from string import Template
from typing import Final

from quadpy.runtime.cpu.pool_native.caller import caller_ir
from quadpy.runtime.cpu.pool_native.hiring import hiring_ir
from quadpy.runtime.cpu.pool_native.hosts import HostTable
from quadpy.runtime.cpu.pool_native.interrupts import interrupts_ir
from quadpy.runtime.cpu.pool_native.waiting import waiting_ir
from quadpy.runtime.cpu.pool_native.worker import worker_ir

_VARIABLES: Final = """
@qp_pool_threads = global i32 1                            ; threads that a job may use, the caller included
@qp_pool_spin = global i64 0                               ; nanoseconds

; How many threads a job may use, the caller included.
define i64 @qp_pool_size() nounwind {
  %threads.32 = load atomic i32, ptr @qp_pool_threads monotonic, align 4
  %threads = zext i32 %threads.32 to i64
  ret i64 %threads
}
"""

_JOB: Final = """
%job = type { ptr, ptr, ptr, i64, i64, i64, i64, i64 }     ; task, args, scratch, n, chunk, units, least, regions

declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
"""

_TASKS: Final = """
; The task over units [begin, end), in pieces of which none takes long: after each it looks for signals.  1 if it broke off.
define internal i32 @run_units(ptr %job, i64 %begin, i64 %end) nounwind {
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
  %least.at = getelementptr %job, ptr %job, i32 0, i32 6
  %least = load i64, ptr %least.at
  %piece = shl i64 %least, 6
  br i1 %free, label %pieces, label %chunks
pieces:
  %at = phi i64 [ %begin, %0 ], [ %at.next, %pieces.more ]
  %at.left = sub i64 %end, %at
  %at.size = call i64 @llvm.umin.i64(i64 %at.left, i64 %piece)
  %at.next = add i64 %at, %at.size
  call void %task(ptr %args, ptr %scratch, i64 %at, i64 %at.next)
  %at.stop = call i32 @qp_pool_poll()
  %at.stopped = icmp ne i32 %at.stop, 0
  br i1 %at.stopped, label %out, label %pieces.more
pieces.more:
  %at.more = icmp ult i64 %at.next, %end
  br i1 %at.more, label %pieces, label %out
chunks:
  %k = phi i64 [ %begin, %0 ], [ %k.next, %chunks.more ]
  %due = phi i64 [ %piece, %0 ], [ %due.next, %chunks.more ]
  %from = mul i64 %k, %chunk
  %left = sub i64 %n, %from
  %size = call i64 @llvm.umin.i64(i64 %left, i64 %chunk)
  %to = add i64 %from, %size
  call void %task(ptr %args, ptr %scratch, i64 %from, i64 %to)
  %due.less = sub i64 %due, 1
  %k.due = icmp eq i64 %due.less, 0
  br i1 %k.due, label %chunks.look, label %chunks.more
chunks.look:
  %k.stop = call i32 @qp_pool_poll()
  %k.stopped = icmp ne i32 %k.stop, 0
  br i1 %k.stopped, label %out, label %chunks.more
chunks.more:
  %due.next = phi i64 [ %due.less, %chunks ], [ %piece, %chunks.look ]
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %end
  br i1 %more, label %chunks, label %out
out:
  %stop = phi i32 [ 0, %pieces.more ], [ 0, %chunks.more ], [ 1, %pieces ], [ 1, %chunks.look ]
  ret i32 %stop
}
"""

_ENTRY: Final = Template("""
define void @qp_pool_run(ptr %task, ptr %args, ptr %scratch, i64 %n, i64 %chunk, i64 %grain) nounwind {
  %modes = alloca i32
  %job = alloca %job
  %broken = call i32 @qp_pool_stopped()                    ; the rest of a kernel that a signal ends does nothing
  %ends = icmp ne i32 %broken, 0
  %none = icmp sle i64 %n, 0
  %empty = or i1 %none, %ends
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
  %shared = call i1 @$share(ptr %job)
  br i1 %shared, label %restore, label %serial
serial:
  %b = call i32 @run_units(ptr %job, i64 0, i64 %units)
  br label %restore
restore:
  $restore_modes
  br label %out
out:
  ret void
}
""")

_CALL: Final = """
; ``qp_pool_run`` for Python: 1 if a handler of a signal raised, so that ``qp_pool_raise`` is to be called.
define i32 @qp_pool_call(ptr %task, ptr %args, ptr %scratch, i64 %n, i64 %chunk, i64 %grain) nounwind {
  call void @qp_pool_run(ptr %task, ptr %args, ptr %scratch, i64 %n, i64 %chunk, i64 %grain)
  %stopped = call i32 @qp_pool_stopped()
  %ends = icmp ne i32 %stopped, 0
  br i1 %ends, label %resume, label %out
resume:
  call void @qp_pool_resume()
  br label %out
out:
  ret i32 %stopped
}
"""

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
    parts = (_VARIABLES, run_ir(host), _CALL, _FILL, interrupts_ir(threads=host is not None))
    return "\n".join((*parts, *(_shared_parts(host) if host else (_NOT_SHARED,))))


def run_ir(host: HostTable | None, share: str = "try_shared") -> str:
    """``qp_pool_run``, which calls ``share`` for what is worth several threads."""
    modes = {name: getattr(host, name, "") for name in ("save_modes", "set_modes", "restore_modes")}
    return "\n".join((host.declare if host else "", _JOB, _TASKS, _ENTRY.substitute(modes, share=share)))


def _shared_parts(host: HostTable) -> tuple[str, ...]:
    return waiting_ir(host), caller_ir(), hiring_ir(), worker_ir(host)
