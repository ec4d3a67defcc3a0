"""Kernels for a CPU as one shared library, which programs load with ``dlopen``, without quadpy and without Python.

The library has all that its kernels need: the pool of threads, and helpers of arithmetic.  It uses the C library's
functions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quadpy.cache.process import cached_code
from quadpy.codegen.host import compile_host, host_header, triple_of
from quadpy.codegen.objects.inputs import read_object
from quadpy.codegen.objects.link import Part, link_library
from quadpy.codegen.objects.machines import AARCH64, X86_64, Machine
from quadpy.core.target import TargetSpec, machine_of
from quadpy.errors import LinkError
from quadpy.runtime.cpu.compiler_rt import HELPERS, helper_ir
from quadpy.runtime.cpu.libc import KERNEL_FUNCTIONS
from quadpy.runtime.cpu.pool_native.hosts import HOSTS
from quadpy.runtime.cpu.pool_native.library import END, THREADS, library_ir

_MACHINES: Final = {"x86_64": X86_64, "aarch64": AARCH64}
_BASELINES: Final = {"x86_64": "x86-64", "aarch64": "arm64"}

_MATH: Final = ("ceil", "floor", "fma", "fmod", "frexp", "ldexp", "nearbyint", "rint", "round", "roundeven", "trunc")
_LIBM: Final = {*_MATH, *(f"{name}f" for name in _MATH)}
_THREADS: Final = ("pthread_create", "pthread_join", "pthread_sigmask")
_SYSTEM: Final = ("clock_gettime", "getpid", "sched_getaffinity", "syscall")
IMPORTS: Final = {
    **{name: "libm.so.6" if name in _LIBM else "libc.so.6" for name in (*sorted(KERNEL_FUNCTIONS), *_SYSTEM)},
    **dict.fromkeys(_THREADS, "libpthread.so.0"),  # part of libc.so.6 from glibc 2.34 on, where this is empty
}
"""The functions that a library uses, and where each is."""


def shared_library(kernels: Sequence[tuple[bytes, str]], target: TargetSpec) -> bytes:
    """The library (ELF, ET_DYN, for Linux) of ``kernels``, each the image and the entry of its ``CodeObject`` for ``target``.

    It exports ``int32_t qpg_<k>(void *arguments, void *scratch, int32_t first_task)`` for kernel k, with the meaning of
    ``CodeObject.entry``, and ``int32_t qpg_threads``: how many threads a loop may use, 0 for as many as the process has
    CPUs.  The same kernels give the same bytes.

    Raises:
        LinkError: there are no such libraries for the target, or a kernel uses what only Python's process has.
    """
    machine = _MACHINES.get(machine_of(target.arch))
    if target.family != "cpu" or machine is None or "linux" not in triple_of(target.arch):
        raise LinkError(
            f"a shared library for {target}: there are libraries only for Linux on x86-64 and arm64",
            hint="take the target 'arm64', or on Linux 'x86-64'",
        )
    parts = [Part(image, {entry: f"qpg_{number}"}) for number, (image, entry) in enumerate(kernels)]
    pool = _support(library_ir(HOSTS[machine_of(target.arch)]), target)
    helpers = [Part(_support(helper_ir(name), target), {}, offers=True) for name in _helpers(parts, machine)]
    return link_library([*parts, Part(pool, {THREADS: THREADS}, offers=True), *helpers], machine, IMPORTS, END)


def _helpers(parts: Sequence[Part], machine: Machine) -> list[str]:
    used = (name for part in parts for name in read_object(part.image, machine).names)
    return sorted({name.text for name in used if name.undefined} & HELPERS)


def _support(ir_text: str, target: TargetSpec) -> bytes:
    """The object of ``ir_text``, which is quadpy's own, for any CPU of the target's machine; it is kept on disk."""
    cpu = _BASELINES[machine_of(target.arch)]
    text = host_header(cpu) + ir_text
    return cached_code(f"{cpu} {text}", lambda: compile_host(text, cpu, opt=1))
