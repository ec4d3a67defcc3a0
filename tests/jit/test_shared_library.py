"""Kernels as shared libraries: they compute what a call computes, in processes without quadpy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.host import compile_host, host_header
from quadpy.core.target import machine_of, parse_target
from quadpy.errors import LinkError
from quadpy.jit.shared_library import shared_library
from tests.support.libraries import Call, library_of, run_here, run_on_arm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries for Linux")
X86 = pytest.mark.skipif(machine_of("native") != "x86_64", reason="runs code for x86-64")

N = 30_000
rng = np.random.default_rng(7)
f32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
f64 = qp.types.ndarray(dtype=qp.f64, ndim=1)
i32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
i64 = qp.types.ndarray(dtype=qp.i64, ndim=1)
u16 = qp.types.ndarray(dtype=qp.u16, ndim=1)


@qp.kernel
def waves(a: qp.f32, x: f32, y: f32):
    for i in x:
        y[i] += a * qp.sin(x[i]) + qp.exp(-x[i] * x[i]) + qp.pow(qp.abs(x[i]), 0.3)


@qp.kernel
def narrowed(x: f64, h: u16, b: u16):
    for i in x:
        h[i] = qp.bit_cast(qp.cast(x[i], qp.f16), qp.u16)
        b[i] = qp.bit_cast(qp.cast(qp.cast(x[i], qp.f32), qp.bf16), qp.u16)


@qp.kernel
def widened(h: u16, y: f32):
    for i in h:
        y[i] = qp.cast(qp.bit_cast(h[i], qp.f16), qp.f32) * 3.0


@qp.kernel
def total(x: f64) -> qp.f64:
    s = 0.0
    for i in x:
        s += x[i]
    return s


@qp.kernel
def rounded(x: f64, y: f64):
    for i in x:
        y[i] = qp.floor(x[i]) + 2.0 * qp.ceil(x[i] * 3.0) + qp.round(x[i] * 7.0) + x[i] % 0.37 + qp.sqrt(qp.abs(x[i]))


@qp.kernel
def histogram(x: f32, bins: i32, most: i32):
    for i in x:
        k = qp.cast(qp.abs(x[i]) * 16.0, qp.i32) % 64
        bins[k] += 1
        qp.atomic_max(most[0], k)


@qp.kernel
def collatz(n: i64):
    for i in n:
        v = n[i]
        turns = qp.cast(0, qp.i64)
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            turns += 1
        n[i] = turns


@qp.kernel
def neighbours(x: f32, y: f32):
    qp.loop_config(block_dim=64)
    for i in range(960):
        pad = qp.simt.block.SharedArray((64,), qp.f32)
        pad[i % 64] = x[i]
        qp.simt.block.sync()
        y[i] = pad[(i + 1) % 64] - pad[i % 64]


@qp.kernel
def dice(y: f32):
    for i in y:
        y[i] = qp.random()


@qp.kernel
def two_tasks(x: f32, s: f32):
    for _ in range(1):
        s[0] = 0.0
    for i in x:
        x[i] = x[i] * 2.0 + 1.0
    for _ in range(1):
        for j in range(100):
            s[0] += x[j]


def calls() -> list[Call]:
    x, wide = rng.standard_normal(N).astype(np.float32), rng.standard_normal(N) * 10.0 ** rng.integers(-9, 9, N)
    special = np.array([0.0, -0.0, np.inf, -np.inf, 6e-8, 1e-7, 65504, 65520, 1e-40, -2.5])
    wide[: len(special)] = special
    halves = np.arange(0, 1 << 16, 3, dtype=np.uint16)
    halves = halves[(halves & 0x7FFF) <= 0x7C00]  # a NaN's bits are the processor's
    return [
        Call(waves, {"a": 0.7, "x": x, "y": x[::-1].copy()}),
        Call(narrowed, {"x": wide, "h": np.zeros(N, np.uint16), "b": np.zeros(N, np.uint16)}),
        Call(widened, {"h": halves, "y": np.zeros(len(halves), np.float32)}),
        Call(total, {"x": wide[10:]}),
        Call(rounded, {"x": rng.standard_normal(N) * 50, "y": np.zeros(N)}),
        Call(histogram, {"x": x, "bins": np.zeros(64, np.int32), "most": np.zeros(1, np.int32)}),
        Call(collatz, {"n": rng.integers(1, 5000, 4000)}),
        Call(neighbours, {"x": x[:960].copy(), "y": np.zeros(960, np.float32)}),
        Call(two_tasks, {"x": x[:1000].copy(), "s": np.zeros(1, np.float32)}),
    ]


CALLS = calls()


def live() -> bytes:
    """What live calls leave."""
    out = b""
    for call in CALLS:
        arguments = {name: v.copy() if isinstance(v, np.ndarray) else v for name, v in call.arguments.items()}
        result = call.kernel(**arguments)
        out += b"".join(v.tobytes() for v in arguments.values() if isinstance(v, np.ndarray))
        out += b"" if result is None else np.float64(result).tobytes()
    return out


@pytest.fixture(scope="module", autouse=True)
def on_cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, bytes]]:
    found = {}
    for target in ("x86-64", "x86-64-v3", "arm64"):
        library, case = library_of(CALLS, target)
        path = tmp_path_factory.mktemp("libraries") / f"{target}.so"
        path.write_bytes(library)
        found[target] = path, case
    return found


@X86
@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3"])
def test_a_library_computes_what_calls_compute(libraries, target, threads):
    if target == "x86-64-v3" and "avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("the processor has no AVX2")
    path, case = libraries[target]
    assert run_here(path, case, threads) == live()


ARM = [os.environ.get("ARM64_CC") or shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64-static")]
ARM_SYSTEM = os.environ.get("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu")


@pytest.mark.skipif(not all(ARM), reason="needs aarch64-linux-gnu-gcc and qemu-aarch64-static")
def test_a_library_for_arm64_computes_the_same_bits(libraries):
    path, case = libraries["arm64"]
    assert run_on_arm(path, case, *ARM, ARM_SYSTEM) == live()


def test_the_same_kernels_give_the_same_bytes(libraries):
    for target, (path, _) in libraries.items():
        assert library_of(CALLS, target)[0] == path.read_bytes()


def tool(*command: str | Path) -> str:
    if not shutil.which(command[0]):
        pytest.skip(f"no {command[0]}")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("target", "machine"), [("x86-64", "X86-64"), ("arm64", "AArch64")])
def test_readelf_finds_a_sound_library(libraries, target, machine):
    text = tool("readelf", "-hlWd", "--dyn-syms", "-r", libraries[target][0])
    assert "DYN (Shared object file)" in text
    assert machine in text
    assert set(re.findall(r"Shared library: \[(.*?)\]", text)) <= {"libc.so.6", "libm.so.6", "libpthread.so.0"}
    loads = re.findall(r"LOAD .* (R  |R E|RW ) (0x[0-9a-f]+)", text)
    assert [flags.strip() for flags, _ in loads] == ["R", "R E", "RW"]
    assert {align for _, align in loads} == {"0x1000" if target == "x86-64" else "0x10000"}
    assert re.search(r"GNU_STACK .* RW ", text)
    assert "TEXTREL" not in text
    defined = re.findall(r"(?:FUNC|OBJECT) +GLOBAL DEFAULT +\d+ (\w+)", text)
    assert sorted(defined) == sorted([*(f"qpg_{k}" for k in range(len(CALLS))), "qpg_threads"])
    kinds = {
        "x86-64": {"R_X86_64_RELATIVE", "R_X86_64_GLOB_DAT"},
        "arm64": {"R_AARCH64_RELATIVE", "R_AARCH64_GLOB_DAT"},
    }
    assert set(re.findall(r"R_[A-Z]\w+", text)) == kinds[target]


def test_code_for_arm64_has_its_instructions(libraries):
    text = tool("readelf", "-sW", libraries["arm64"][0])
    assert "qpg_0" in text
    from quadpy.jit.offline import compile_with_asm

    asm = compile_with_asm(waves, parse_target("arm64"), {}).asm
    assert "fmla" in asm or "fmadd" in asm
    assert "xmm" not in asm


LIVES = r"""
import ctypes, os, struct, sys, threading
first, second = sys.argv[1:]
def run(library, n=200_000):
    x = (ctypes.c_float * n)(*([1.0] * n))
    block = struct.pack("<fxxxxQixxxx", 3.0, ctypes.addressof(x), n)
    assert library.qpg_0(block, None, 0) == -1
    assert set(x) == {3.0}
def threads():
    return len(os.listdir("/proc/self/task"))
a, b = ctypes.CDLL(first), ctypes.CDLL(second)
for library in (a, b):
    ctypes.c_int32.in_dll(library, "qpg_threads").value = 4
    run(library)
assert threads() == 7, threads()  # two pools of three workers
many = [threading.Thread(target=run, args=(library,)) for library in (a, b, a, b)]
[t.start() for t in many], [t.join() for t in many]
child = os.fork()
if not child:
    run(a), run(b)
    assert threads() == 7, threads()
    close = ctypes.CDLL(None).dlclose
    close(ctypes.c_void_p(a._handle))
    assert threads() == 4, threads()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
close = ctypes.CDLL(None).dlclose
close.argtypes = [ctypes.c_void_p]
for _ in range(20):
    close(a._handle)
    assert threads() == 4, threads()
    assert first not in open("/proc/self/maps").read()
    a = ctypes.CDLL(first)
    ctypes.c_int32.in_dll(a, "qpg_threads").value = 4
    run(a)
    assert threads() == 7, threads()
print("done")
"""


@qp.kernel
def scaled(a: qp.f32, x: f32):
    for i in x:
        x[i] = x[i] * a


@X86
def test_threads_forks_two_libraries_and_their_removal(tmp_path):
    spec = parse_target("x86-64")
    from quadpy.jit.offline import compile_for

    code = compile_for(scaled, spec, {})
    for name in ("a.so", "b.so"):
        (tmp_path / name).write_bytes(shared_library([(code.image, code.entry)], spec))
    child = [sys.executable, "-I", "-c", LIVES, tmp_path / "a.so", tmp_path / "b.so"]
    done = subprocess.run(child, check=False, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_what_cannot_be_linked_is_named():
    code = compile_host(
        host_header("arm64") + "declare void @missing()\ndefine i32 @f() {\n  call void @missing()\n  ret i32 0\n}\n",
        "arm64",
    )
    with pytest.raises(LinkError, match="undefined symbols: missing"):
        shared_library([(code, "f")], parse_target("arm64"))
    plain = compile_host(host_header("arm64") + "define i32 @f() {\n  ret i32 0\n}\n", "arm64")
    with pytest.raises(LinkError, match="undefined symbols: g"):
        shared_library([(plain, "g")], parse_target("arm64"))
    with pytest.raises(LinkError, match="not an x86-64 object"):
        shared_library([(plain, "f")], parse_target("x86-64"))
    with pytest.raises(LinkError, match="only for Linux on x86-64 and arm64"):
        shared_library([(plain, "f")], parse_target("gfx942"))
    for cut in range(0, len(plain), 7):
        with pytest.raises(LinkError):
            shared_library([(plain[:cut], "f")], parse_target("arm64"))
