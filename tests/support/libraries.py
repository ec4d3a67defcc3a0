"""Kernels in shared libraries, run by a child process that has only ctypes, or by a C program on another machine.

A *case* is bytes: for each run the exported name (64 bytes, padded), then as 64-bit integers the words of scratch memory,
those that hold results, and the sizes of what follows: the argument block, pairs (offset in the block, array) of its pointers, the arrays' bytes.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quadpy.core.artifact import CodeObject
from quadpy.core.target import parse_target
from quadpy.jit.offline import compile_for
from quadpy.jit.shared_library import shared_library

RUNNER = Path(__file__).with_name("run_library.c")


@dataclass(frozen=True)
class Call:
    """A kernel and its arguments: arrays of NumPy and numbers; ``hidden`` are values that a launch adds."""

    kernel: Any
    arguments: Mapping[str, Any]
    hidden: Mapping[str, int] | None = None

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: value for name, value in self.arguments.items() if isinstance(value, np.ndarray)}

    def case(self, symbol: str, code: CodeObject) -> bytes:
        arrays = self.arrays()
        values, pointers = [], []
        for value in code.layout.values:
            given = (self.hidden or {}).get(value.param.strip("$"), self.arguments.get(value.param))
            if value.part == "pointer":
                pointers.append((value.offset, list(arrays).index(value.param)))
                values.append(0)
            else:
                values.append(given.shape[value.axis] if value.part == "extent" else given)
        block = struct.pack(code.layout.format, *values).ljust(code.layout.size, b"\0")
        out = struct.pack(
            "<64s5Q", symbol.encode(), code.slots, len(code.results), len(block), len(pointers), len(arrays)
        )
        out += block + b"".join(struct.pack("<2Q", *pointer) for pointer in pointers)
        return out + b"".join(struct.pack("<Q", array.nbytes) + array.tobytes() for array in arrays.values())


def library_of(calls: Sequence[Call], target: str, given: Mapping[str, Any] | None = None) -> tuple[bytes, bytes]:
    """The library of the kernels of ``calls`` for ``target``, and the case that runs them in turn."""
    spec = parse_target(target)
    codes = [compile_for(call.kernel, spec, given or {}) for call in calls]
    cases = [call.case(f"qpg_{number}", code) for number, (call, code) in enumerate(zip(calls, codes, strict=True))]
    return shared_library([(code.image, code.entry) for code in codes], spec), b"".join(cases)


RUN = r"""
import ctypes, struct, sys
path, case, threads = sys.argv[1], open(sys.argv[2], "rb").read(), int(sys.argv[3])
library, at = ctypes.CDLL(path), 0
ctypes.c_int32.in_dll(library, "qpg_threads").value = threads
while at < len(case):
    symbol, slots, results, size, pointers, count = struct.unpack_from("<64s5Q", case, at)
    at += 104
    block = ctypes.create_string_buffer(case[at : at + size], size)
    at += size
    pairs = list(struct.iter_unpack("<2Q", case[at : at + 16 * pointers]))
    at += 16 * pointers
    arrays = []
    for _ in range(count):
        (n,) = struct.unpack_from("<Q", case, at)
        arrays.append(ctypes.create_string_buffer(case[at + 8 : at + 8 + n], n))
        at += 8 + n
    for offset, array in pairs:
        struct.pack_into("<Q", block, offset, ctypes.addressof(arrays[array]))
    scratch, task = (ctypes.c_uint64 * max(1, slots))(), 0
    entry = getattr(library, symbol.rstrip(b"\0").decode())
    while task != -1:
        task = entry(block, scratch, task)
        assert task >= -1, task
    for array in arrays:
        sys.stdout.buffer.write(array.raw)
    sys.stdout.buffer.write(bytes(scratch)[: 8 * results])
assert not {"llvmlite", "quadpy", "numpy"} & set(sys.modules), "the child has none of these"
"""


def run_here(library: Path, case: bytes, threads: int = 0) -> bytes:
    """What the arrays and scratch memories of the calls hold afterwards, in order."""
    path = library.with_suffix(".case")
    path.write_bytes(case)
    child = [sys.executable, "-I", "-c", RUN, library, path, str(threads)]
    return subprocess.run(child, stdout=subprocess.PIPE, check=True, timeout=120).stdout


def run_on_arm(library: Path, case: bytes, compiler: str, qemu: str, system: str) -> bytes:
    """The same under qemu's emulation of an Arm processor, with the C library in the folder ``system``."""
    path, runner = library.with_suffix(".case"), library.with_suffix(".runner")
    path.write_bytes(case)
    subprocess.run([compiler, "-O1", RUNNER, "-o", runner, "-ldl"], check=True, timeout=120)
    environment = os.environ | {"QEMU_LD_PREFIX": system}
    child = [qemu, runner, library, path]
    return subprocess.run(child, stdout=subprocess.PIPE, check=True, timeout=240, env=environment).stdout
