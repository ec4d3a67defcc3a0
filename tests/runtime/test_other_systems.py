"""What can be seen of macOS and Windows on Linux: a child process that takes itself for one of them.

Code for macOS on x86-64 has Linux' calling convention, and runs; code for Windows is compiled only.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from quadpy.core.target import elf_triple

ABSENT = {
    "darwin": {"os": ("sched_getaffinity", "sched_setaffinity", "memfd_create"), "mmap": ("MAP_NORESERVE",)},
    "win32": {
        "os": ("fork", "geteuid", "getegid", "getgid", "getgroups", "getpgid", "getuid", "killpg", "O_NONBLOCK", "register_at_fork",
               "sched_getaffinity", "sched_setaffinity", "setsid", "sysconf", "sysconf_names", "uname", "mkfifo",
               "fchmod", "pread", "pwrite", "memfd_create", "posix_fallocate", "posix_fadvise", "getloadavg"),
        "signal": ("SIGALRM", "SIGBUS", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGTSTP", "SIGUSR1", "SIGUSR2", "alarm",
                   "pthread_kill", "pthread_sigmask", "setitimer", "siginterrupt", "sigpending", "sigwait", "pause"),
        "mmap": ("MAP_PRIVATE", "MAP_SHARED", "MAP_ANONYMOUS", "MAP_ANON", "MAP_NORESERVE", "PROT_READ", "PROT_WRITE", "MADV_DONTNEED",
                 "MADV_NOHUGEPAGE"),
        "socket": ("AF_UNIX", "socketpair"),
        "time": ("clock_gettime", "clock_gettime_ns", "CLOCK_MONOTONIC", "pthread_getcpuclockid"),
    },
}  # fmt: skip
"""What Python's modules lack there."""
MODULES = {"darwin": (), "win32": ("fcntl", "grp", "pwd", "resource", "termios", "tty", "posix", "syslog", "readline")}
TRIPLES = {"darwin": "x86_64-apple-darwin24.0.0", "win32": "x86_64-pc-windows-msvc"}

FAKE = """
import json, os, sys
import asyncio, importlib, multiprocessing.connection, multiprocessing.shared_memory, subprocess, tempfile, platform  # the system's own
import concurrent.futures.process, ctypes.util, numpy, shutil, types
import llvmlite.binding as llvm
own = llvm.get_process_triple()
llvm.get_process_triple = lambda: {triple!r}
sys.platform = {platform!r}
subprocess.Popen.kill = lambda process: os.kill(process.pid, 9)  # which needs no names of signals there
shutil._winapi = types.SimpleNamespace(NeedCurrentDirectoryForExePath=lambda name: True)  # of Python 3.12
for module, names in {absent!r}.items():
    for name in names:
        if hasattr(importlib.import_module(module), name):
            delattr(importlib.import_module(module), name)
for name in {modules!r}:
    sys.modules[name] = None
"""

KERNELS = """
import numpy as np
import quadpy as qp
from quadpy.runtime.cpu import orc, pool
from quadpy.runtime.cpu.elf_symbols import read_symbols
from quadpy.runtime.cpu.pool_native.entry import pool_ir

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
F64 = qp.types.ndarray(dtype=qp.f64, ndim=1)

@qp.kernel
def many(x: F32, y: F64, n: qp.i64) -> qp.f32:
    total = 0.0
    for i in x:
        x[i] = qp.sin(x[i]) * 2 + qp.random() * 0
        y[i] = qp.floor(y[i]) % 3.0 + qp.fma(y[i], y[i], 1.0)
        m = qp.Matrix([[x[i], 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, x[i]]])
        u, s, v = qp.svd(m)
        x[i] = s[0, 0] + qp.cast(n // 3, qp.f32) * 0
        if i == 2:
            print("three", x[i])
        qp.atomic_add(total, x[i])
    return total

@qp.kernel
def large(x: F32):
    for i in x:
        a = qp.Vector([x[i]] * 48)
        b = qp.Vector([x[i] + qp.f32(j) for j in range(48)])
        x[i] = (a * b).sum() + b[i % 48]
"""

RUN = """
machine = llvm.Target.from_triple(own).create_target_machine("x86-64", opt=2, reloc="pic", codemodel="small")
jit = llvm.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True)
orc._jit = lambda: jit  # the linker itself depends on the real system

import ctypes
from quadpy.runtime.cpu import loader

@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
def memset_pattern16(to, pattern, nbytes):
    ctypes.memmove(to, (ctypes.string_at(pattern, 16) * (nbytes // 16 + 1))[:nbytes], nbytes)

of_libc, fill = loader.c_address, ctypes.cast(memset_pattern16, ctypes.c_void_p).value
loader.c_address = lambda name: fill if name == "memset_pattern16" else of_libc(name)  # macOS' C library has it
x, y = np.arange(5, dtype=np.float32), np.arange(5.0)
total = many(x, y, 9)
large(x)
print(json.dumps([total, x.tolist(), y.tolist()]))
"""

SYMBOLS = """
images = [many.compile("cpu").image, large.compile("cpu").image, orc.assemble(pool_ir(pool.this_host()), opt=0)]
print(json.dumps([sorted({name for image in images for name in read_symbols(image).undefined}), pool.default_threads()]))
"""

UCRT = {"ceil", "floor", "fma", "fmod", "fmodf", "frexp", "ldexp", "malloc", "free", "memcmp", "memcpy", "memmove", "memset",
        "nearbyint", "rint", "round", "strlen", "trunc"}  # fmt: skip
"""What Windows' C library exports, as Microsoft documents it, of the functions that kernels may call."""
NTDLL = {"__chkstk"}


def run(platform, *parts, tmp_path, **environ):
    file = tmp_path / "program.py"  # kernels are read from their source
    fake = FAKE.format(platform=platform, triple=TRIPLES[platform], absent=ABSENT[platform], modules=MODULES[platform]) if platform in TRIPLES else (
        "import json\nimport llvmlite.binding as llvm\nown = llvm.get_process_triple()\n"
    )  # fmt: skip
    file.write_text(fake + "".join(parts), encoding="utf-8")
    child = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=200, check=False,
        env={"PATH": "/usr/bin", "PYTHONPATH": ":".join(sys.path), "QUADPY_CACHE_DIR": str(tmp_path), **environ},
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    return child.stdout.splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="fakes other systems on Linux")
def test_kernels_for_macos_have_the_same_results(tmp_path):
    for name in ("mac", "own"):
        (tmp_path / name).mkdir()
    assert run("darwin", KERNELS, RUN, tmp_path=tmp_path / "mac") == run(
        "linux", KERNELS, RUN, tmp_path=tmp_path / "own"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="fakes other systems on Linux")
def test_code_for_windows_needs_only_what_windows_has(tmp_path):
    (line,) = run("win32", KERNELS, SYMBOLS, tmp_path=tmp_path)
    names, threads = json.loads(line)
    assert names
    assert {name for name in names if not name.startswith(("qp_", "__qp"))} <= UCRT | NTDLL
    assert threads >= 1


@pytest.mark.skipif(sys.platform != "linux", reason="fakes other systems on Linux")
@pytest.mark.parametrize("platform", TRIPLES)
def test_the_package_imports_and_doctor_runs(tmp_path, platform):
    program = """
from quadpy.cli import main
import quadpy.algorithms, quadpy.dist, quadpy.graph, quadpy.hazards, quadpy.profiler, quadpy.tools, quadpy.view
main(["doctor", "--json"])
"""
    found = json.loads("\n".join(run(platform, program, tmp_path=tmp_path)))
    assert found["parts"]["cpu"]["works"]
    assert not found["parts"]["amdgpu"]["works"]
    wants_rocm = platform == "win32" and not found["parts"]["cuda"]["works"]  # a machine with another GPU does without
    assert [check["subject"] for check in found["amd"]] == (["ROCm"] if wants_rocm else [])


@pytest.mark.parametrize(("triple", "elf"), [
    ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"), ("aarch64-unknown-linux-musl", "aarch64-unknown-linux-musl"),
    ("x86_64-pc-windows-msvc", "x86_64-pc-windows-msvc-elf"), ("arm64-apple-darwin24.0.0", "arm64-apple-darwin24.0.0-elf"),
])  # fmt: skip
def test_every_host_has_elf_objects(triple, elf):
    assert elf_triple(triple) == elf
