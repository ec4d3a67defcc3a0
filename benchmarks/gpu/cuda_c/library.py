"""The C functions of `*.cu`: compiled by nvcc, one shared library a file, and called through `ctypes`."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_double, c_float, c_int, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from harness.bench import Array

SOURCES = Path(__file__).resolve().parent
CUBIN = "launches.cubin"  # of the small kernels, for whoever loads kernels by name


class CudaFailure(RuntimeError):
    """nvcc or a CUDA call failed; the message says how."""


def compile_all(folder: Path, arch: str = "native", only: Collection[str] = ()) -> None:
    """Compiles every file, or `only` some, into `folder`.

    Raises:
        CudaFailure: there is no nvcc, or a file does not compile.
    """
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.access(nvcc, os.X_OK):
        raise CudaFailure("nvcc is not there")
    words = [nvcc, "-O3", "-std=c++17", f"-arch={arch}"]
    shared = ["-shared", "-Xcompiler", "-fPIC"]
    files = sorted(file for file in SOURCES.glob("*.cu") if not only or file.stem in only)
    jobs = [[*words, *shared, str(file), "-o", str(folder / f"{file.stem}.so")] for file in files]
    if not only:
        jobs.append([*words, "-cubin", str(SOURCES / "launches.cu"), "-o", str(folder / CUBIN)])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(lambda job: subprocess.run(job, check=False, capture_output=True, text=True), jobs):
            if done.returncode:
                raise CudaFailure(f"nvcc: {(done.stderr or done.stdout).strip().splitlines()[-1]}")


@cache
def library(name: str) -> Any:
    """The functions of one file, from the folder that BENCHMARK_CUDA_C names."""
    return ctypes.CDLL(str(Path(os.environ["BENCHMARK_CUDA_C"]) / f"{name}.so"))


def checked(status: int) -> None:
    if status:
        message = library("runtime").rt_message
        message.restype = ctypes.c_char_p
        raise CudaFailure(message(status).decode())


class DeviceArray:
    """Memory on the device that holds a copy of a NumPy array."""

    def __init__(self, values: Array) -> None:
        self.values = np.ascontiguousarray(values)
        self.pointer = c_void_p()
        checked(library("runtime").rt_allocate(byref(self.pointer), c_size_t(self.values.nbytes)))
        self.upload(values)

    def upload(self, values: Array) -> None:
        source = np.ascontiguousarray(values)
        checked(library("runtime").rt_upload(self.pointer, c_void_p(source.ctypes.data), c_size_t(source.nbytes)))

    def download(self) -> Array:
        found = np.empty_like(self.values)
        checked(library("runtime").rt_download(c_void_p(found.ctypes.data), self.pointer, c_size_t(found.nbytes)))
        return found

    def fill(self, byte: int) -> None:
        checked(library("runtime").rt_clear(self.pointer, byte, c_size_t(self.values.nbytes)))

    def __del__(self) -> None:
        library("runtime").rt_release(self.pointer)


def synchronize() -> None:
    checked(library("runtime").rt_synchronize())


class Timer:
    """Seconds on the device between two events."""

    def begin(self) -> None:
        checked(library("runtime").rt_begin())

    def end(self) -> float:
        milliseconds = c_float()
        checked(library("runtime").rt_end(byref(milliseconds)))
        return milliseconds.value * 1e-3


def host_seconds(function: Any, *arguments: Any) -> float:
    """The seconds that a function measures itself and stores in its last argument."""
    seconds = c_double()
    checked(function(*arguments, byref(seconds)))
    return seconds.value


def multiply_add_rate() -> float:
    """Floating-point operations per second of fused multiply-adds alone: the best of some runs."""
    out, operations, timer = DeviceArray(np.zeros(1, np.float32)), c_double(), Timer()
    best = 0.0
    for _ in range(8):
        timer.begin()
        checked(library("streaming").peak(out.pointer, c_int(8000), byref(operations)))
        best = max(best, operations.value / timer.end())
    return best
