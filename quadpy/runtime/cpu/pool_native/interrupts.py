"""Signals during a kernel: the main thread lets Python run its handlers, and ends the kernel if one of them raises.

Python runs handlers of signals in its main thread only, and between two of its own instructions: never while that thread
is in machine code.  Therefore, machine code that may run for long calls ``qp_pool_poll`` every few thousand turns, and the
pool after each piece of a loop.  Some twenty times a second, a call from the main thread takes Python's lock and asks for
signals.  If a handler raises, the exception is kept, all threads of the job leave their loops, the entry function of the
kernel calls ``qp_pool_resume`` and returns, and ``qp_pool_raise`` raises the exception.  If no handler raises, the kernel goes on.

A handler may itself launch kernels.  So there is a *depth*: 1, and one more inside each handler.  Only what runs at the
depth ``stopping`` ends.
"""

from __future__ import annotations

from string import Template
from typing import Final

PYTHON_FUNCTIONS: Final = (
    "PyErr_CheckSignals", "PyErr_Fetch", "PyErr_Restore", "PyGILState_Ensure", "PyGILState_Release",
)  # fmt: skip
"""All of Python's stable ABI."""

_EVERY: Final = 50_000_000
"""Nanoseconds between two questions of the main thread."""
_SHARE: Final = 25
"""The next question comes so many times as long after this one as it took: other threads may hold Python's lock …"""
_LONGEST: Final = 150_000_000
"""… but no later than this."""

_STATE: Final = """
@qp_pool_main = global i64 0                               ; the main thread, as pthread_self gives it; 0: none is asked
@stopping = internal global i32 0                          ; the depth of the kernel that ends; 0 for none
@qp_pool_errors = global [3 x ptr] zeroinitializer         ; the exception: type, value, traceback
"""

_ALONE: Final = """
define i32 @qp_pool_poll() nounwind {
  ret i32 0
}

define i32 @qp_pool_stopped() nounwind {
  ret i32 0
}

define void @qp_pool_resume() nounwind {
  ret void
}

define void @qp_pool_raise() nounwind {
  ret void
}
"""

NO_INTERRUPTS: Final = (
    _ALONE
    + """
define internal void @say_worker(ptr %id) nounwind {
  ret void
}

define internal i32 @own_depth() nounwind {
  ret i32 0
}

define internal void @forget_main() nounwind {
  ret void
}
"""
)
"""The same functions for threads that no Python interrupts."""

_POLL: Final = Template("""
@qp_pool_key = global i32 0                                ; of what is not null in workers
@depth = internal global i32 1                             ; of the main thread
@next_look = internal global i64 0                         ; nanoseconds

declare i64 @pthread_self()
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)

define internal void @say_worker(ptr %id) nounwind {
  %key = load i32, ptr @qp_pool_key
  %rc = call i32 @pthread_setspecific(i32 %key, ptr %id)
  ret void
}

define internal i1 @is_main() nounwind {
  %self = call i64 @pthread_self()
  %main = load i64, ptr @qp_pool_main
  %same = icmp eq i64 %self, %main
  ret i1 %same
}

; The depth at which the calling thread launches kernels; 0 if it is not the main thread.
define internal i32 @own_depth() nounwind {
  %main = call i1 @is_main()
  %depth = load i32, ptr @depth
  %own = select i1 %main, i32 %depth, i32 0
  ret i32 %own
}

; In a forked child, whose main thread is the one that forked.
define internal void @forget_main() nounwind {
  %same = call i1 @is_main()
  br i1 %same, label %out, label %begin
begin:
  %self = call i64 @pthread_self()
  store i64 %self, ptr @qp_pool_main
  store i32 1, ptr @depth
  store i32 0, ptr @stopping
  br label %out
out:
  ret void
}

; 1 if what the calling thread runs is to end.
define i32 @qp_pool_stopped() nounwind {
  %which = load atomic i32, ptr @stopping monotonic, align 4
  %none = icmp eq i32 %which, 0
  br i1 %none, label %no, label %some
some:
  %key = load i32, ptr @qp_pool_key
  %worker = call ptr @pthread_getspecific(i32 %key)
  %is.worker = icmp ne ptr %worker, null
  %job = load i32, ptr @job.depth
  %own = call i32 @own_depth()
  %mine = select i1 %is.worker, i32 %job, i32 %own
  %ends = icmp eq i32 %mine, %which
  %answer = zext i1 %ends to i32
  ret i32 %answer
no:
  ret i32 0
}

; The same; on the main thread, handlers of signals run first if it is time.
define i32 @qp_pool_poll() nounwind {
  %ended = call i32 @qp_pool_stopped()
  %goes.on = icmp eq i32 %ended, 0
  br i1 %goes.on, label %who, label %out
who:
  %main = call i1 @is_main()
  br i1 %main, label %clock, label %out
clock:
  %now = call i64 @now()
  %next = load i64, ptr @next_look
  %early = icmp slt i64 %now, %next
  br i1 %early, label %out, label %ask
ask:
  %raised = call i32 @ask_python(i64 %now)
  ret i32 %raised
out:
  ret i32 %ended
}

define internal i32 @ask_python(i64 %began) nounwind noinline {
  %depth = load i32, ptr @depth
  %deeper = add i32 %depth, 1
  store i32 %deeper, ptr @depth
  %lock = call i32 @PyGILState_Ensure()
  %locked = call i64 @now()
  %failed = call i32 @PyErr_CheckSignals()
  %raised = icmp ne i32 %failed, 0
  br i1 %raised, label %keep, label %release
keep:
  $places
  call void @PyErr_Fetch(ptr %type.at, ptr %value.at, ptr %trace.at)
  br label %release
release:
  call void @PyGILState_Release(i32 %lock)
  store i32 %depth, ptr @depth
  %ended = call i64 @now()
  %waited = sub i64 %locked, %began
  %pause.long = mul i64 %waited, $share
  %pause.more = call i64 @llvm.umax.i64(i64 %pause.long, i64 $every)
  %pause = call i64 @llvm.umin.i64(i64 %pause.more, i64 $longest)
  %next = add i64 %ended, %pause
  store i64 %next, ptr @next_look
  br i1 %raised, label %stop, label %out
stop:
  store atomic i32 %depth, ptr @stopping monotonic, align 4
  ret i32 1
out:
  ret i32 0
}

; The main thread has left the kernel, and no worker is in it.
define void @qp_pool_resume() nounwind {
  store atomic i32 0, ptr @stopping monotonic, align 4
  ret void
}

; Raises the exception that was kept; the caller holds Python's lock.
define void @qp_pool_raise() nounwind {
  $places
  %type = load ptr, ptr %type.at
  %value = load ptr, ptr %value.at
  %trace = load ptr, ptr %trace.at
  store ptr null, ptr %type.at
  store ptr null, ptr %value.at
  store ptr null, ptr %trace.at
  call void @PyErr_Restore(ptr %type, ptr %value, ptr %trace)
  ret void
}
""")

_PLACES: Final = """%type.at = getelementptr ptr, ptr @qp_pool_errors, i64 0
  %value.at = getelementptr ptr, ptr @qp_pool_errors, i64 1
  %trace.at = getelementptr ptr, ptr @qp_pool_errors, i64 2"""


def interrupts_ir(*, threads: bool) -> str:
    """``qp_pool_poll`` and what belongs to it; without ``threads`` nothing is ever asked."""
    if not threads:
        return _ALONE
    return _STATE + _POLL.substitute(places=_PLACES, every=_EVERY, share=_SHARE, longest=_LONGEST)
