"""The threads that run parallel loops.

The workers' loop is native code that this package generates (``pool_native``), over the C library's threads; it never
enters Python.  It is loaded at first use, and its threads start with the first loop that is worth sharing.  Neither is
ever removed: at exit the workers are asleep in code that stays mapped.

Where the pool has no row for the host (``pool_native/hosts.py``), loops run on the calling thread.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Mapping
from typing import Final, NoReturn

from quadpy.core.messages import shown
from quadpy.errors import ArgumentError
from quadpy.runtime.cpu.libc import POOL_FUNCTIONS, c_address
from quadpy.runtime.cpu.orc import LoadedObject, assemble, link
from quadpy.runtime.cpu.pool_native.caller import MAX_THREADS
from quadpy.runtime.cpu.pool_native.crash import CRASH_FUNCTIONS, crash_ir
from quadpy.runtime.cpu.pool_native.entry import pool_ir
from quadpy.runtime.cpu.pool_native.hosts import this_host
from quadpy.runtime.cpu.pool_native.interrupts import PYTHON_FUNCTIONS
from quadpy.runtime.cpu.pool_native.waiting import SPIN_NS
from quadpy.runtime.cpu.python_functions import address_of_python
from quadpy.runtime.device.locks import new_lock

ENTRY: Final = "qp_pool_run"
"""``void qp_pool_run(ptr task, ptr args, ptr scratch, i64 n, i64 chunk, i64 grain)``, for kernels; see ``run``."""

SIZE: Final = "qp_pool_size"
"""``i64 qp_pool_size()``, for kernels: how many threads a job may use."""

_FILL_GRAIN: Final = 1 << 18
"""Bytes that one thread writes in about the time that it takes to hand a job over."""

_CALL_TYPE: Final = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)


class _Pool:
    """The loaded code and its two variables, which Python accesses as ordinary memory."""

    def __init__(self, code: LoadedObject) -> None:
        self.code = code
        self.address = code.address(ENTRY)
        self._call = _CALL_TYPE(code.address("qp_pool_call"))
        self.raise_kept = ctypes.PYFUNCTYPE(None)(code.address("qp_pool_raise"))
        self.fill = code.address("qp_pool_fill")
        self.forget = ctypes.CFUNCTYPE(None)(code.address("qp_pool_forget"))
        self.threads = ctypes.c_int32.from_address(code.address("qp_pool_threads"))
        self.spin = ctypes.c_int64.from_address(code.address("qp_pool_spin"))
        self.threads.value = default_threads()
        self.spin.value = SPIN_NS
        if (main := code.addresses.get("qp_pool_main")) is not None:
            _make_key(code.address("qp_pool_key"))
            ctypes.c_uint64.from_address(main).value = threading.main_thread().ident or 0

    def run(self, task: int, args: int, scratch: int, n: int, chunk: int, grain: int) -> None:
        if self._call(task, args, scratch, n, chunk, grain):
            self.raise_kept()


class _Process:
    """The pool of this process."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._pool: _Pool | None = None

    def get(self) -> _Pool:
        if (pool := self._pool) is not None:
            return pool
        with self._lock:
            self._pool = self._pool or _load()
            return self._pool

    def after_fork_in_child(self) -> None:
        """No worker exists in the child, and the thread that held the workers may not exist either."""
        if self._pool is not None:
            self._pool.forget()


def _make_key(where: int) -> None:
    """Makes a ``pthread_key_t``, which workers set."""
    if ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(c_address("pthread_key_create") or 0)(
        where, None
    ):
        raise OSError("the C library has no key left for data of threads")


def _load() -> _Pool:
    ir_text = pool_ir(this_host()) + (crash_ir(platform.machine()) if sys.platform == "linux" else "")
    image = assemble(ir_text, opt=0)  # as fast as with more effort, and takes 3 ms instead of 16
    addresses = {name: c_address(name) for name in (*POOL_FUNCTIONS, *CRASH_FUNCTIONS)}
    addresses |= {name: address_of_python(name) for name in PYTHON_FUNCTIONS}
    return _Pool(link(image, {name: at for name, at in addresses.items() if at is not None}))


_process: Final = _Process()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.after_fork_in_child)


def pool_address() -> int:
    """The address of ``qp_pool_run``.  The first call in a process loads it."""
    return _process.get().address


def pool_symbol(name: str) -> int:
    """The address of a function of the pool that kernels call."""
    return _process.get().code.address(name)


def raise_kept() -> NoReturn:
    """Raises what a handler of a signal raised during a kernel of this thread, which has ended."""
    _process.get().raise_kept()
    raise KeyboardInterrupt


def native_symbols() -> Mapping[str, int]:
    """The addresses of the symbols that the loaded code defines, including the handler of crashes if there is one."""
    return _process.get().code.addresses


def run(task: int, args: int, scratch: int, n: int, *, chunk: int = 0, grain: int = 1) -> None:
    """Calls ``void task(ptr args, ptr scratch, i64 begin, i64 end)``, an address, over [0, ``n``), and waits for it.

    With ``chunk`` > 0 each call gets exactly one piece [k * chunk, min((k + 1) * chunk, n)).  With ``chunk`` 0 the pool
    chooses the pieces, of at least ``grain`` iterations except for the last of a thread.  Everything runs on the calling
    thread if there are at most ``grain`` iterations, one piece or one thread, inside a task, and while another thread has
    the workers.  Releases the GIL; tasks run with the default rounding and with subnormal numbers, whatever the caller's
    modes are.  Raises what a handler of a signal raised meanwhile; the loop is then incomplete.
    """
    _process.get().run(task, args, scratch, n, chunk, grain)


def fill(memory: int, pattern: int, nbytes: int, count: int) -> None:
    """Copies the ``nbytes`` bytes at ``pattern`` to ``memory``, ``count`` times in a row; both are addresses."""
    pool = _process.get()
    args = (ctypes.c_int64 * 3)(memory, pattern, nbytes)
    pool.run(pool.fill, ctypes.addressof(args), 0, count, 0, max(1, _FILL_GRAIN // nbytes))


def default_threads() -> int:
    """How many CPUs this process may run on."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cpus, MAX_THREADS)


def set_threads(count: int) -> None:
    """Lets later loops use ``count`` threads, the calling one included.

    Existing threads are kept; if there are more, only ``count`` of them join a loop.
    """
    if not 1 <= count <= MAX_THREADS:
        raise ArgumentError(f"a pool of {shown(count)} threads: the number must be from 1 to {MAX_THREADS}")
    _process.get().threads.value = count


def get_threads() -> int:
    """How many threads a loop may use; fewer than were set if the system refused to start so many."""
    return _process.get().threads.value


def set_spin(nanoseconds: int) -> None:
    """Sets how long an idle thread spins before it sleeps (waking it costs tens of microseconds)."""
    if nanoseconds < 0:
        raise ValueError(f"a spin of {nanoseconds} ns: the time must not be negative")
    _process.get().spin.value = nanoseconds
