"""The handler of faults in a kernel: it prints the kernel that was running, then calls the previous handler.

It does only what a signal handler may do: it compares addresses, calls ``write``, and passes the signal on.
"""

from __future__ import annotations

from string import Template
from typing import Final

ENTRY: Final = "qp_crash"
"""``void qp_crash(int signal, siginfo_t *info, ucontext_t *context)``."""
HEAD: Final = "qp_crash_head"
"""The first note of code: ``begin``, ``end``, ``text``, ``length``, ``next``, each of 64 bits."""
PREVIOUS: Final = "qp_crash_previous"
"""Two ``struct sigaction`` of the C library: the previous handlers of SIGSEGV and SIGBUS."""

CRASH_FUNCTIONS: Final = ("raise", "sigaction", "write")

_OFFSETS: Final = {
    # in ucontext_t: the instruction, and where a function without a frame finds its caller
    "x86_64": (168, "%sp.at = getelementptr i8, ptr %context, i64 160\n  %caller.at = load ptr, ptr %sp.at"),
    "aarch64": (440, "%caller.at = getelementptr i8, ptr %context, i64 424"),
}

_IR: Final = Template("""
%note = type { i64, i64, ptr, i64, ptr }
%action = type { ptr, [128 x i8], i32, ptr }               ; struct sigaction: handler, mask, flags, restorer

@qp_crash_head = global ptr null
@qp_crash_previous = global [2 x %action] zeroinitializer  ; of SIGSEGV, of SIGBUS
@crash_said = internal global i32 0
@crash_seen = internal global i32 0
@crash_default = internal constant %action zeroinitializer

declare i64 @write(i32, ptr, i64)
declare i32 @sigaction(i32, ptr, ptr)
declare i32 @raise(i32)

; The note of the code that holds %at, or null.
define internal ptr @crash_note(i64 %at) nounwind {
  %first = load ptr, ptr @qp_crash_head
  br label %look
look:
  %note = phi ptr [ %first, %0 ], [ %next, %other ]
  %none = icmp eq ptr %note, null
  br i1 %none, label %out, label %compare
compare:
  %begin = load i64, ptr %note
  %end.at = getelementptr %note, ptr %note, i32 0, i32 1
  %end = load i64, ptr %end.at
  %after = icmp uge i64 %at, %begin
  %before = icmp ult i64 %at, %end
  %inside = and i1 %after, %before
  br i1 %inside, label %out, label %other
other:
  %next.at = getelementptr %note, ptr %note, i32 0, i32 4
  %next = load ptr, ptr %next.at
  br label %look
out:
  ret ptr %note
}

; Says it once, if a kernel, or a function of the C library that it called, was at fault.
define internal void @crash_say(ptr %context) nounwind {
  %pc.at = getelementptr i8, ptr %context, i64 $pc
  %pc = load i64, ptr %pc.at
  %own = call ptr @crash_note(i64 %pc)
  %is.own = icmp ne ptr %own, null
  br i1 %is.own, label %say, label %called
called:
  $caller
  %caller = load i64, ptr %caller.at
  %its = call ptr @crash_note(i64 %caller)
  %is.its = icmp ne ptr %its, null
  br i1 %is.its, label %say, label %out
say:
  %note = phi ptr [ %own, %0 ], [ %its, %called ]
  %said = atomicrmw xchg ptr @crash_said, i32 1 monotonic
  %first = icmp eq i32 %said, 0
  br i1 %first, label %print, label %out
print:
  %text.at = getelementptr %note, ptr %note, i32 0, i32 2
  %text = load ptr, ptr %text.at
  %length.at = getelementptr %note, ptr %note, i32 0, i32 3
  %length = load i64, ptr %length.at
  %w = call i64 @write(i32 2, ptr %text, i64 %length)
  br label %out
out:
  ret void
}

define void @qp_crash(i32 %signal, ptr %info, ptr %context) nounwind {
  %code.at = getelementptr i32, ptr %info, i32 2
  %code = load i32, ptr %code.at
  %real = icmp sgt i32 %code, 0                            ; a fault; else somebody sent the signal
  br i1 %real, label %fault, label %sent
fault:
  call void @crash_say(ptr %context)
  store atomic i32 1, ptr @crash_seen monotonic, align 4
  br label %pass
sent:
  %seen = load atomic i32, ptr @crash_seen monotonic, align 4
  %again = icmp ne i32 %seen, 0                            ; the handler before has done its work, and raised it again
  br i1 %again, label %end, label %pass
pass:
  %is.segv = icmp eq i32 %signal, 11
  %which = select i1 %is.segv, i64 0, i64 1
  %previous = getelementptr [2 x %action], ptr @qp_crash_previous, i64 0, i64 %which
  %handler = load ptr, ptr %previous
  %address = ptrtoint ptr %handler to i64
  switch i64 %address, label %call [ i64 0, label %end
                                     i64 1, label %ignored ]
call:
  %flags.at = getelementptr %action, ptr %previous, i32 0, i32 2
  %flags = load i32, ptr %flags.at
  %takes.info.bit = and i32 %flags, 4                      ; SA_SIGINFO
  %takes.info = icmp ne i32 %takes.info.bit, 0
  br i1 %takes.info, label %with, label %without
with:
  call void %handler(i32 %signal, ptr %info, ptr %context)
  ret void
without:
  call void %handler(i32 %signal)
  ret void
ignored:
  %i = call i32 @sigaction(i32 %signal, ptr %previous, ptr null)
  ret void
end:
  %d = call i32 @sigaction(i32 %signal, ptr @crash_default, ptr null)
  %r = call i32 @raise(i32 %signal)                        ; arrives when this handler returns
  ret void
}
""")


def crash_ir(machine: str) -> str:
    """The handler for Linux on ``machine``; empty if there is none."""
    if machine not in _OFFSETS:
        return ""
    pc, caller = _OFFSETS[machine]
    return _IR.substitute(pc=pc, caller=caller)
