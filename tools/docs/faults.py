"""One kernel for each kind of failed check, with the message of its failure, for the guide to debugging."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np

import quadpy as qp
from quadpy.errors import DriverError, KernelFault
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.drivers import cuda_errors, hip_api
from quadpy.runtime.drivers.gpu_calls import LOST

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
grid = qp.field(qp.f32, shape=(4, 6), offset=(-2, 0))


@qp.kernel(debug=True)
def element(x: I32, cells: I32):
    for i in x:
        x[i] = cells[x[i] + i]


@qp.kernel(debug=True)
def field(n: qp.i32):
    for i in range(4):
        for j in range(n):
            grid[i - 2, j] = 1.0


@qp.kernel(debug=True)
def component(axis: qp.i32) -> qp.f32:
    v = qp.Vector([1.0, 2.0, 3.0])
    return v[axis]


@qp.kernel(debug=True)
def overflow(x: I32):
    for i in x:
        x[i] = x[i] * 65536


@qp.kernel(debug=True)
def division(x: I32):
    for i in x:
        x[i] = 100 // (i - 2)


@qp.kernel(debug=True)
def shift(x: I32, bits: qp.i32):
    for i in x:
        x[i] = i >> bits


@qp.kernel(debug=True)
def cast(x: I32, scale: qp.f32):
    for i in x:
        x[i] = qp.i32(i * scale)


@qp.kernel(debug=True)
def assertion(x: I32, dt: qp.f32):
    for i in x:
        assert x[i] * dt < 0.5, f"particle {i} moves {x[i] * dt:.2f} cells in one step"


@qp.kernel(debug=True)
def race(cell: I32, count: I32):
    for i in cell:
        count[cell[i]] = count[cell[i]] + 1


@qp.kernel(debug=True)
def divergence(x: I32, n: qp.i32):
    qp.loop_config(block_dim=64)
    for i in range(64):
        if x[i] < n:
            x[i] = qp.simt.subgroup.reduce_add(x[i])


NUMBERS = np.arange(6, dtype=np.int32) * 10000
CALLS = {
    "element": (element, NUMBERS // 10000, NUMBERS[:6]),
    "field": (field, 7),
    "component": (component, 3),
    "overflow": (overflow, NUMBERS),
    "division": (division, NUMBERS),
    "shift": (shift, NUMBERS, 32),
    "cast": (cast, NUMBERS, 1e9),
    "race": (race, np.array([3, 1, 2, 1], np.int32), np.zeros(4, np.int32)),
    "divergence": (divergence, np.arange(64, dtype=np.int32), 40),
    "assertion": (assertion, np.arange(6, dtype=np.int32), 0.15),
}


def print_fault(name: str) -> str:
    """The message of the kernel ``name``."""
    kernel, *arguments = CALLS[name]
    before = current_config()
    set_config(Config())  # the CPU, where so few iterations run on one thread: the first failure is the first in order
    try:
        kernel(*(given.copy() if isinstance(given, np.ndarray) else given for given in arguments))
    except KernelFault as fault:
        return _shown(f"{type(fault).__name__}: {fault}")
    finally:
        set_config(before)
    raise AssertionError(f"{name} does not fail")


PROGRAM = """
import numpy as np
import quadpy as qp

@qp.kernel
def scatter(x: qp.types.ndarray(dtype=qp.i32, ndim=1), at: qp.types.ndarray(dtype=qp.i64, ndim=1)):
    for i in x:
        x[at[i]] = 1

scatter(np.zeros(10, np.int32), np.full(10, 2**42))
"""


def print_lost(arch: str) -> str:
    """What the driver of a GPU says after a kernel accessed memory that does not exist, and what every later call says."""
    call, name, causes = {
        "cuda": ("cuCtxSynchronize", "CUDA_ERROR_ILLEGAL_ADDRESS", cuda_errors.CAUSES),
        "amdgpu": ("hipDeviceSynchronize", "hipErrorIllegalAddress", hip_api.CAUSES),
    }[arch]
    first = DriverError(f"{call} failed: {name} (700)", hint=causes[name])
    later = DriverError(f"device 0 of {arch} is lost since an earlier fault: {first.message}", hint=LOST)
    return _shown(f"DriverError: {first}\n\nDriverError: {later}")


def print_crash() -> str:
    """What a process says that crashes in a kernel without checks."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        environment = {**os.environ, "QUADPY_DEBUG": "0"}
        command = [sys.executable, str(program)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return _shown(done.stderr.strip().replace(f"{program.parent}{os.sep}", ""))


def _shown(text: str) -> str:
    return f"```text\n{textwrap.dedent(text).replace(f'{Path(__file__).parent}{os.sep}faults', 'program')}\n```"
