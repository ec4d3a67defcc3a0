"""What a kernel call costs compared with the bare call of the driver.

The bare call is the binding's, a ctypes prototype's, and that of machine code which reads its arguments from memory: of
the same launch, with the same arguments packed beforehand.  Without a GPU the launch is a C function that returns at
once: what is left is Python's share, which is quadpy's.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm

import quadpy as qp
from harness.report import table
from harness.timing import Work, in_turns, repeat
from quadpy.jit.fast_call.launch_records import LaunchRecords
from quadpy.jit.fast_call.native_launch import HEAD
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, set_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import DeviceInfo
from quadpy.runtime.drivers.gpu import GpuDriver
from quadpy.runtime.drivers.gpu_api import GpuApi

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
ARRAYS = (0, 2, 8)
CALLS = 200
NAMES = ("a kernel call", "use_stream", "stream=", "other arrays each call", "the binding", "ctypes", "machine code")
_LIBRARY = """
define i32 @launch(ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr) { ret i32 0 }
define i32 @select(i64) { ret i32 0 }
"""


@qp.kernel
def none():
    for _ in range(1):
        pass


@qp.kernel
def two(x: F32, y: F32):
    for i in x:
        y[i] = x[i]


@qp.kernel
def eight(a: F32, b: F32, c: F32, d: F32, e: F32, f: F32, g: F32, h: F32):
    for i in a:
        h[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i]


KERNELS = dict(zip(ARRAYS, (none, two, eight), strict=True))


class _Library:
    """A library whose calls return at once."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_LIBRARY), machine)
        self._engine.finalize_object()

    def __getitem__(self, name: str) -> Any:
        return ctypes.CFUNCTYPE(ctypes.c_int)(self._engine.get_function_address(name))


def stub() -> GpuApi:
    """A vendor whose calls do nothing, and whose memory is nowhere."""
    addresses = iter(range(1 << 32, 1 << 40, 1 << 20))
    info = DeviceInfo("stub", "gfx942", 1 << 40, 304)
    calls: dict[str, Any] = {
        name: lambda *_: (0,) for name, kind in GpuApi.__annotations__.items() if str(kind) == "Call"
    }
    calls |= {name: lambda *_: (0, next(addresses)) for name in calls if name.endswith(("create", "function"))}
    calls |= {name: lambda *_: (0, next(addresses)) for name in calls if name.startswith("alloc")}
    calls |= dict.fromkeys((name for name in GpuApi.__annotations__ if name.endswith("_symbol")), "launch")
    calls |= {"device_count": lambda: (0, 1), "priority_range": lambda: (0, 0, 0)}
    calls |= {"module_load": lambda _: (0, next(addresses), ""), "blocks_at_once": lambda *_: (0, 8)}
    return GpuApi(
        **calls, name="amdgpu", default_allocator="cache", status=int, ok=0, not_ready=1, out_of_memory=2,
        fatal=frozenset(), refusals=frozenset(), deselected=frozenset(), causes={},
        library=functools.cache(_Library),  # type: ignore[arg-type]  # what is asked of a CDLL
        selection=lambda ordinal: ("select", ordinal),
        describe=lambda _: (info, frozenset({"handles", "modules"})), launch_markers=(1, 2, 3),
        graphs=None,  # type: ignore[arg-type]
    )  # fmt: skip


def bare(device: Device, kernel: Any, arrays: int) -> dict[str, Callable[[], object]]:
    """The launch of ``kernel``, which was called, without quadpy's share."""
    driver, plan = device.driver, next(iter(kernel._dispatcher.specialisations.values()))._disjoint  # noqa: SLF001 - what the call has made
    assert isinstance(driver, GpuDriver)
    api, task = driver._api, plan.launches[0]  # noqa: SLF001
    given = [qp.ndarray(qp.f32, 64) for _ in range(arrays)]
    values = [value for array in given for value in array.abi]
    taken = plan.take_block()
    plan.format.pack_into(taken.buffer, 0, *values)
    words = taken.arguments
    shape = (1, 1, 1, *task.block, 0)
    prototype = api.library()[api.launch_symbol]
    number, pointer = ctypes.c_uint, ctypes.c_void_p
    prototype.argtypes = (pointer, *[number] * 7, pointer, pointer, pointer)
    function, stream = int(task.function), 0
    launch = api.launch
    extra = words or None
    records = LaunchRecords(driver, plan.launches, plan.block_bytes)
    block, submit, _ = records.make()
    records.head.pack_into(block, HEAD, stream, 1)
    plan.format.pack_into(block, records.start, *values)
    return {
        "the binding": lambda: launch(function, *shape, stream, None, words),
        "ctypes": lambda: prototype(function, *shape, stream, None, extra),
        "machine code": lambda kept=(given, taken, block): submit(),  # what the launches read stays there
    }


def calls_of(kernel: Any, arrays: int) -> dict[str, Work]:
    """Calls of ``kernel``, some in a row: with the same arrays each time, and with others."""
    args, others = ([qp.ndarray(qp.f32, 64) for _ in range(arrays)] for _ in range(2))
    stream, current = qp.create_stream(), qp.create_stream()

    def both() -> None:
        kernel(*args)
        kernel(*others)

    def on_current() -> None:
        with qp.use_stream(current):
            repeat(functools.partial(kernel, *args), CALLS)

    kernel(*args)
    return {
        "a kernel call": functools.partial(repeat, functools.partial(kernel, *args), CALLS),
        "use_stream": on_current,
        "stream=": functools.partial(repeat, functools.partial(kernel, *args, stream=stream), CALLS),
        "other arrays each call": functools.partial(repeat, both, CALLS // 2),
    }


def main(words: Sequence[str]) -> int:
    """Print a table; returns 1 if the machine has no such device."""
    parser = argparse.ArgumentParser(prog="run.py launch", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arch", choices=("stub", "amdgpu", "cuda"), default="stub")
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args(words)
    if options.arch == "stub":
        devices._open["amdgpu", 0] = Device(GpuDriver(stub()))  # noqa: SLF001 - a device that no user opens
    set_config(Config(arch="amdgpu" if options.arch == "stub" else options.arch))
    try:
        device = devices.current_device()
    except qp.NoDeviceError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{device.driver.info.name}, µs a call\n")
    lines = []
    for arrays, kernel in KERNELS.items():
        works = calls_of(kernel, arrays)
        works |= {name: functools.partial(repeat, call, CALLS) for name, call in bare(device, kernel, arrays).items()}
        times = in_turns(works, options.rounds, device.synchronize)
        found = {name: statistics.median(rounds) / CALLS * 1e6 for name, rounds in times.items()}
        call, binding = found["a kernel call"], found["the binding"]
        numbers = [f"{found[name]:.2f}" for name in NAMES]
        lines.append([str(arrays), *numbers, f"{call / binding:.2f}", f"{call - binding:+.2f}"])
    print(table(["arrays", *NAMES, "call / binding", "call - binding"], lines, 1))
    return 0
