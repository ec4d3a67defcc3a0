"""``qp.init`` and the other functions that concern the process as a whole."""

from __future__ import annotations

import operator
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from quadpy.core.dtypes import Scalar, f32, f64, i32, i64
from quadpy.core.importing import import_late
from quadpy.core.messages import closest, shown
from quadpy.core.public import public, require_switch
from quadpy.errors import ArgumentError, NoDeviceError
from quadpy.runtime.device.current import Config, require_wave_size, set_config
from quadpy.runtime.device.devices import current_device, open_device
from quadpy.runtime.launch.capturing import CAPTURES

if TYPE_CHECKING:
    from quadpy.settings import Settings

__all__ = ["amdgpu", "cpu", "cuda", "gpu", "init", "on_reset", "python", "reset", "sync"]

cpu: Final = "cpu"
amdgpu: Final = "amdgpu"
cuda: Final = "cuda"
gpu: Final = ("amdgpu", "cuda")
"""The first available GPU: AMD's, else NVIDIA's."""
python: Final = "python"
"""The CPU, where Python runs kernels line by line, for debuggers."""

_FP: Final = {32: f32, 64: f64}
_IP: Final = {32: i32, 64: i64}


@public
def init(
    arch: str | Sequence[str] | None = None,
    *,
    default_fp: Scalar | None = None,
    default_ip: Scalar | None = None,
    fast_math: bool | None = None,
    debug: bool | None = None,
    synchronous: bool | None = None,
    random_seed: int | None = 0,
    wave_size: int | None = None,
    cpu_max_num_threads: int | None = None,
    print_buffer: int | None = None,
    hazards: bool | str | None = None,
    enable_fallback: bool = True,
    print_full_traceback: bool = False,
    **others: object,
) -> None:
    """Choose the backend and the defaults of kernels, and load the compiler.

    Discards specialisations and restarts the random number sequence; arrays and fields do not change.

    Args:
        arch: one name, or several of which the first available one is used; ``QUADPY_ARCH`` overrides it.  A number
            selects one of several GPUs: ``"cuda:1"``, ``"amdgpu:1"``, and it is an error if there is no such device; the
            default is the first, and on a rank that mpiexec, srun or torchrun started the one with the rank's number on
            its host.
        default_fp: the type of a Python ``float`` inside kernels, ``qp.f32`` or ``qp.f64``.
        default_ip: the type of a Python ``int`` inside kernels, ``qp.i32`` or ``qp.i64``.
        fast_math: permit contraction, reassociation and approximations; results are then exact only to a tolerance.
        debug: check indices, overflow, divisions, shifts, casts and ``assert`` inside kernels; a failed check is an
            exception at the next synchronize, on the CPU at the call.
        synchronous: calls of kernels and launches of graphs on a GPU return when their work is done, so that a failed check is
            an exception of the call, and what kernels print appears at once; on the CPU they always do.
        random_seed: the seed of ``qp.random``, modulo 2**64.
        wave_size: lanes of a wave (``qp.simt.subgroup``), 32 or 64, where the device has both, as RDNA and the CPU have; by
            default the device's own, on the CPU 32.  A kernel's own ``wave_size`` comes first.
        cpu_max_num_threads: threads of the CPU backend; by default, all CPUs of the process.
        print_buffer: bytes for the output of one launch; 1 MiB by default.
        hazards: look for accesses to the same memory that nothing orders, and raise ``HazardError``; ``"collect"``
            only collects them, see ``qp.hazards``.
        enable_fallback: use the CPU, with a warning, if no requested backend is available and none has a number.
        print_full_traceback: show quadpy's own frames in the tracebacks of kernels' errors; by default, only the
            program's.
        others: options of Taichi and Quadrants.  These mean the same: ``kernel_profiler`` and ``timeline`` (see ``qp.profiler``), ``log_level``,
            ``require_version``, ``check_out_of_bound`` (of all checks, those of indices), ``offline_cache``,
            ``offline_cache_file_path``, ``offline_cache_max_size_of_files`` (bytes), ``offline_cache_cleaning_policy``
            (``"never"`` sets no limit), ``default_gpu_block_dim`` (where a loop says nothing), ``make_cpu_multithreading_loop``
            (False is one thread), ``unrolling_limit`` (a longer unrolled loop gives a warning), ``raise_on_templated_floats``,
            and ``print_preprocessed_ir``, ``print_ir``, ``print_kernel_llvm_ir``, ``print_kernel_asm`` (also
            ``print_kernel_amdgcn``, ``print_kernel_nvptx``), which print each kernel when it is compiled, or write files to
            the folder ``debug_dump_path``.  Those that mean nothing here are ignored, with one line of the log at level info.

    Raises:
        NoDeviceError: no requested backend is available, and one has a number or ``enable_fallback`` is off.
        ArgumentError: an option has a value that it cannot have; there is no such option.
    """
    env = _settings()
    reference = import_late("quadpy.reference_options")
    reference.apply_options(others, ("arch", *_OPTIONS))
    _check(default_fp, (f32, f64), "default_fp")
    _check(default_ip, (i32, i64), "default_ip")
    require_wave_size(wave_size)
    require_switch(fast_math, "fast_math")
    require_switch(debug, "debug")
    require_switch(synchronous, "synchronous")
    require_switch(enable_fallback, "enable_fallback")
    require_switch(print_full_traceback, "print_full_traceback")
    _check_number(cpu_max_num_threads, 1, "cpu_max_num_threads must be at least 1")
    _check_print_buffer(print_buffer)
    _check_number(random_seed, None, "random_seed must be an integer")
    chosen, ordinal = _choose(env.arch or arch or cpu, enable_fallback=enable_fallback)
    interpreted, chosen = chosen == python, cpu if chosen == python else chosen
    more = reference.config_of(others)
    threads = cpu_max_num_threads or more.pop("num_threads", env.num_threads)
    config = Config(
        **more,
        arch=chosen,
        ordinal=ordinal,
        default_fp=default_fp or _FP[env.default_fp or 32],
        default_ip=default_ip or _IP[env.default_ip or 32],
        fast_math=bool(env.fast_math) if fast_math is None else fast_math,
        debug=debug,
        synchronous=bool(synchronous),
        random_seed=(random_seed or 0) % (1 << 64),
        num_threads=threads,
        full_traceback=bool(print_full_traceback) or env.full_traceback,
        print_buffer=print_buffer or env.print_buffer,
        wave_size=wave_size,
        interpreted=interpreted,
    )
    if find_spec("llvmlite"):  # programs that only load saved graphs need none
        import_late("quadpy.jit.specialisation")  # and LLVM: now, rather than in the first call of a kernel
        pool = import_late("quadpy.runtime.cpu.pool")
        pool.set_threads(threads or pool.default_threads())
    set_config(config)
    _set_hazards(env.hazards if hazards is None else hazards)


_OPTIONS: Final = tuple(name for name in init.__annotations__ if name not in ("arch", "others", "return"))


def _set_hazards(mode: object) -> None:
    """Turn the hazard checker on or off, which most programs do not load."""
    if mode not in (None, False) or CAPTURES.checker is not None:
        import_late("quadpy.hazards.switch").set_mode(False if mode is None else mode)


def follow_environment() -> None:
    """Turn on what the environment asks for, before ``qp.init``."""
    if os.environ.get("QUADPY_HAZARDS"):
        _set_hazards(_settings().hazards)


def _settings() -> Settings:
    return import_late("quadpy.settings").settings()  # type: ignore[no-any-return]  # as annotated


def _check_print_buffer(given: int | None) -> None:
    limits = import_late("quadpy.settings")
    rule = f"print_buffer must be a number of bytes from {limits.LEAST_PRINTED} to {limits.MOST_PRINTED}"
    _check_number(given, limits.LEAST_PRINTED, rule)
    if given is not None and given > limits.MOST_PRINTED:
        raise ArgumentError(f"{rule}, not {shown(given)}")


def _check(given: Scalar | None, known: tuple[Scalar, Scalar], name: str) -> None:
    if given is not None and given not in known:
        raise ArgumentError(f"{name} must be qp.{known[0]} or qp.{known[1]}, not {given!r}")


def _check_number(given: object, least: int | None, rule: str) -> None:
    """``given`` is None or a whole number, of at least ``least``; ``rule`` says so."""
    try:
        number = 0 if given is None else operator.index(given)  # type: ignore[arg-type]  # TypeError
        fits = given is None or least is None or number >= least
    except TypeError:
        fits = False
    if isinstance(given, bool) or not fits:
        raise ArgumentError(f"{rule}, not {shown(given)}")


def _choose(arch: str | Sequence[str], *, enable_fallback: bool) -> tuple[str, int]:
    """The first available one of the requested backends, and the number of its device."""
    names = gpu if arch == "gpu" else (arch,) if isinstance(arch, str) else arch
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"arch must be the name of a backend, or several, not {shown(arch)}", hint="such as qp.gpu")
    reasons: list[str] = []
    hints: list[str] = []
    for name in names:
        backend, number = _parse(name)
        if backend in (cpu, python):
            return backend, 0
        try:
            ordinal = _default_ordinal(backend) if number is None else number
            open_device(backend, ordinal)
        except NoDeviceError as error:
            reasons.append(f"{name}: {error.message}")
            hints += [error.hint] if error.hint else []
        else:
            return backend, ordinal
    message = "; ".join(reasons)
    numbered = any(":" in name for name in names)  # a device that the program means, which the CPU does not stand for
    if numbered or not enable_fallback:
        hints += [_devices_seen()] if numbered else []
        hints.append("quadpy doctor shows what quadpy looked for; arch=qp.cpu works everywhere")
        raise NoDeviceError(message, hint="; ".join(hints))
    warnings.warn(f"no GPU: quadpy uses the CPU ({message})", RuntimeWarning, stacklevel=4)
    return cpu, 0


def _devices_seen() -> str:
    """The devices of this process, by the names that ``init`` takes."""
    probes = import_late("quadpy.runtime.device.probe")
    found = [
        f"{probe.backend}:{number} ({line})"
        for probe in (probes.probe_hip(), probes.probe_cuda())
        for number, line in enumerate(probe.devices)
    ]
    return f"this process sees {', '.join([*found, cpu])}"


def _default_ordinal(backend: str) -> int:
    """The GPU of this process: the first, unless it is one of several ranks on its host."""
    launched = import_late("quadpy.runtime.device.launched").launched_as(os.environ)
    if launched is None or not launched.local_rank:
        return 0
    probes = import_late("quadpy.runtime.device.probe")
    probe = probes.probe_hip() if backend == amdgpu else probes.probe_cuda()
    return int(launched.local_rank) % max(1, len(probe.devices))


def _parse(name: str) -> tuple[str, int | None]:
    """The backend and the device's number in ``name``, such as ``cuda:1``; None for a name without one."""
    backend, colon, number = name.partition(":")
    if backend in ("cpu", "x64", "x86_64", "arm64") and not colon:
        return cpu, None
    if backend == python and not colon:
        return python, None
    if backend not in (amdgpu, cuda):
        if name.startswith(("gfx", "sm_")):
            raise NoDeviceError(f"{name!r} is a target, not a backend", hint="use qp.amdgpu or qp.cuda, which detect the "
                                "device; kernel.compile and `quadpy compile` compile for any target")  # fmt: skip
        use = "use qp.cpu, qp.python, qp.amdgpu, qp.cuda or qp.gpu"
        meant = f"{_devices_seen()};" if backend == "gpu" else closest(name, (cpu, python, amdgpu, cuda, "gpu"))
        raise NoDeviceError(f"there is no backend {name!r}", hint=" ".join(filter(None, [meant, use])))
    if colon and not (number.isascii() and number.isdecimal()):
        raise NoDeviceError(
            f"{name!r} does not name a device", hint=f"write {backend!r}, or '{backend}:1' for its second device"
        )
    return backend, int(number) if number else None


@public
def reset() -> None:
    """Return to the defaults, as before ``init``; then call the hooks of ``on_reset``."""
    set_config(Config())
    _set_hazards(_settings().hazards)
    if "quadpy.jit.dumps" in sys.modules:
        import_late("quadpy.jit.dumps").Dumps.choose(frozenset(), None)
    for hook in _HOOKS:
        hook()


_HOOKS: Final[list[Callable[[], object]]] = []


@public
def on_reset(hook: Callable[[], object]) -> None:
    """Have each later ``qp.reset()`` call ``hook``, after the earlier hooks.

    Raises:
        ArgumentError: ``hook`` cannot be called.
    """
    if not callable(hook):
        raise ArgumentError(f"{shown(hook)} cannot be called")
    _HOOKS.append(hook)


@public
def sync() -> None:
    """Wait for all work on the device, on every stream, and raise the first error of a host function of a graph.

    On the CPU, every call returns when its work is complete.

    Raises:
        KernelFault: a check of a kernel failed, under ``debug=True``.
    """
    current_device().synchronize()
