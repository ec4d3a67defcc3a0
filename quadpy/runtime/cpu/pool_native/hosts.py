"""What differs between processors in the thread pool's native code."""

from __future__ import annotations

import platform
import sys
from typing import Final

from quadpy.core.light import dataclass


@dataclass(frozen=True, slots=True)
class HostTable:
    """Linux's number for ``futex``, a pause, and how floating-point modes are saved, set and restored."""

    futex: int
    pause: str
    declare: str
    save_modes: str = ""
    set_modes: str = ""
    restore_modes: str = ""


HOSTS: Final = {
    "x86_64": HostTable(
        futex=202,
        pause="call void @llvm.x86.sse2.pause()",
        declare="""
declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
@modes = private constant i32 8064                         ; round to nearest, keep subnormals, trap nothing
""",
        save_modes="call void @llvm.x86.sse.stmxcsr(ptr %modes)",
        set_modes="call void @llvm.x86.sse.ldmxcsr(ptr @modes)",
        restore_modes="call void @llvm.x86.sse.ldmxcsr(ptr %modes)",
    ),
    "aarch64": HostTable(98, "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}
"""By ``platform.machine()``."""


def this_host() -> HostTable | None:
    """The row of this machine; None if the pool has no threads (not Linux, or a processor without a row)."""
    return HOSTS.get(platform.machine()) if sys.platform == "linux" else None
