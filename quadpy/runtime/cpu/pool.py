"""The threads that parallel loops run on.  Owns: the pool's code in this process, its size, its life over a fork.

The workers' loop is native code that this package generates (``pool_code``), over the C library's threads; it
never enters Python.  It is loaded at first use, its threads start with the first loop that is worth sharing, and
neither is ever taken down: at exit the workers are asleep in code that stays mapped.

Where the pool has no row for the host (``pool_host``), loops run on the thread that calls.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from quadpy.runtime.cpu.libc import POOL_FUNCTIONS, c_address
from quadpy.runtime.cpu.orc import TRIPLE, LoadedObject, assemble, link
from quadpy.runtime.cpu.pool_code import pool_ir
from quadpy.runtime.cpu.pool_host import this_host
from quadpy.runtime.cpu.pool_threads import MAX_THREADS

__all__ = ["ENTRY", "LoadOrBuild", "default_threads", "get_threads", "pool_address", "run", "set_spin", "set_threads"]

ENTRY: Final = "qp_pool_run"
"""``void qp_pool_run(ptr task, ptr args, ptr scratch, i64 n, i64 chunk, i64 grain)``, for kernels; see ``run``."""

LoadOrBuild: TypeAlias = Callable[[str, Callable[[], bytes]], bytes]
"""A cache: the bytes kept under a key, or those that the function builds."""

SPIN_NS: Final = 50_000

_lock = threading.Lock()
_pool: _Pool | None = None


class _Pool:
    """The loaded code and its few variables, which are ordinary memory to Python."""

    def __init__(self, code: LoadedObject) -> None:
        self.code = code
        self.entry = code.address(ENTRY)
        self.threads = ctypes.c_int32.from_address(code.address("qp_pool_threads"))
        self.spin = ctypes.c_int64.from_address(code.address("qp_pool_spin"))
        self.threads.value = default_threads()
        self.spin.value = SPIN_NS

    def forget_workers(self) -> None:
        """In a forked child, which has none of them: back to the state before the first job."""
        ctypes.CFUNCTYPE(None)(self.code.address("qp_pool_forget"))()


def _build_always(key: str, build: Callable[[], bytes]) -> bytes:
    return build()


def _get_pool(load_or_build: LoadOrBuild = _build_always) -> _Pool:
    global _pool
    with _lock:
        if _pool is None:
            ir_text = pool_ir(this_host())  # at opt=0 it hands over as fast, and costs 3 ms instead of 16
            key = hashlib.sha256(f"{TRIPLE}\n{ir_text}".encode()).hexdigest()
            image = load_or_build(f"pool-{key}", lambda: assemble(ir_text, opt=0))
            addresses = ((name, c_address(name)) for name in POOL_FUNCTIONS)
            _pool = _Pool(link(image, {name: at for name, at in addresses if at is not None}))
        return _pool


def pool_address(load_or_build: LoadOrBuild = _build_always) -> int:
    """The address of ``qp_pool_run``.  The first call in a process loads it, through ``load_or_build``."""
    return _get_pool(load_or_build).entry


def run(task: int, args: int, scratch: int, n: int, chunk: int, grain: int) -> None:
    """Call ``void task(ptr args, ptr scratch, i64 begin, i64 end)``, an address, over [0, ``n``), and wait for it.

    With ``chunk`` > 0 each call gets exactly one piece [k * chunk, min((k + 1) * chunk, n)).  With ``chunk`` 0 the
    pool chooses the pieces, of ``grain`` iterations at least (but for the last of a thread).  No more than
    ``grain`` iterations, one piece, a pool of one thread: everything runs on the calling thread, as it does for a
    call from inside a task or while another thread has the workers.  Releases the GIL; tasks run with the default
    rounding and with subnormal numbers, whatever the caller's modes are.
    """
    _ENTRY_TYPE(_get_pool().entry)(task, args, scratch, n, chunk, grain)


_ENTRY_TYPE: Final = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)


def default_threads() -> int:
    """The CPUs that this process may run on."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cpus, MAX_THREADS)


def set_threads(count: int) -> None:
    """Let later loops use ``count`` threads, the calling one included; threads that exist beyond it stay asleep."""
    if not 1 <= count <= MAX_THREADS:
        raise ValueError(f"a pool of {count} threads: the number must be from 1 to {MAX_THREADS}")
    _get_pool().threads.value = count


def get_threads() -> int:
    """How many threads a loop may use; less than what was set where the system refused to start so many."""
    return _get_pool().threads.value


def set_spin(nanoseconds: int) -> None:
    """How long a thread with nothing to do looks for work before it sleeps (waking costs tens of microseconds)."""
    if nanoseconds < 0:
        raise ValueError(f"a spin of {nanoseconds} ns: the time must not be negative")
    _get_pool().spin.value = nanoseconds


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    if _pool is not None:
        _pool.forget_workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
