"""``qp.init`` and the other functions that concern the process as a whole."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from typing import Final

from quadpy.dtypes import Scalar, f32, f64, i32, i64
from quadpy.errors import ArgumentError, NoDeviceError
from quadpy.runtime.device.current import Config, set_config
from quadpy.runtime.device.devices import current_device, open_device
from quadpy.settings import settings

__all__ = ["amdgpu", "cpu", "cuda", "gpu", "init", "reset", "sync"]

cpu: Final = "cpu"
amdgpu: Final = "amdgpu"
cuda: Final = "cuda"
gpu: Final = ("amdgpu", "cuda")
"""The first GPU that is there: AMD's, else NVIDIA's."""

_FP: Final = {32: f32, 64: f64}
_IP: Final = {32: i32, 64: i64}


def init(
    arch: str | Sequence[str] | None = None,
    *,
    default_fp: Scalar | None = None,
    default_ip: Scalar | None = None,
    fast_math: bool | None = None,
    debug: bool | None = None,
    random_seed: int = 0,
    cpu_max_num_threads: int | None = None,
    enable_fallback: bool = True,
) -> None:
    """Chooses the backend and the defaults of kernels, and loads the compiler.

    Kernels are specialised anew, and random numbers start again; arrays and fields stay what they are.

    Args:
        arch: one name or several, of which the first that is there is taken; ``QUADPY_ARCH`` beats it.  A number
            chooses among several GPUs: ``"cuda:1"``, ``"amdgpu:1"``; without one it is the first.
        default_fp: what a Python ``float`` is inside kernels, ``qp.f32`` or ``qp.f64``.
        default_ip: what a Python ``int`` is inside kernels, ``qp.i32`` or ``qp.i64``.
        fast_math: permits contraction, reassociation and approximations: results then hold to a tolerance only.
        debug: is accepted; this version checks nothing inside kernels, and warns.
        random_seed: where the sequence of ``qp.random`` starts.
        cpu_max_num_threads: of the CPU backend; all CPUs of the process by default.
        enable_fallback: take the CPU, with a warning, where no backend that was asked for is there.

    Raises:
        NoDeviceError: no backend that was asked for is there, and ``enable_fallback`` is off.
        ArgumentError: a default type or a number of threads that cannot be.
    """
    env = settings()
    _check(default_fp, (f32, f64), "default_fp")
    _check(default_ip, (i32, i64), "default_ip")
    if cpu_max_num_threads is not None and cpu_max_num_threads < 1:
        raise ArgumentError(f"cpu_max_num_threads is 1 or more, not {cpu_max_num_threads}")
    chosen, ordinal = _choose(env.arch or arch or cpu, enable_fallback=enable_fallback)
    threads = cpu_max_num_threads or env.num_threads
    checked = bool(env.debug) if debug is None else debug
    if checked:
        warnings.warn(
            "this version of quadpy checks nothing inside kernels: debug is off", RuntimeWarning, stacklevel=2
        )
    config = Config(
        arch=chosen,
        ordinal=ordinal,
        default_fp=default_fp or _FP[env.default_fp or 32],
        default_ip=default_ip or _IP[env.default_ip or 32],
        fast_math=bool(env.fast_math) if fast_math is None else fast_math,
        debug=checked,
        random_seed=random_seed,
        num_threads=threads,
    )
    importlib.import_module("quadpy.jit.specialisation").prepare(threads)
    set_config(config)


def _check(given: Scalar | None, known: tuple[Scalar, Scalar], name: str) -> None:
    if given is not None and given not in known:
        raise ArgumentError(f"{name} is qp.{known[0]} or qp.{known[1]}, not {given!r}")


def _choose(arch: str | Sequence[str], *, enable_fallback: bool) -> tuple[str, int]:
    """The first of the backends asked for that is there, and the number of its device."""
    names = gpu if arch == "gpu" else (arch,) if isinstance(arch, str) else tuple(arch)
    reasons: list[str] = []
    hints: list[str] = []
    for name in names:
        backend, ordinal = _parse(name)
        if backend == cpu:
            return cpu, 0
        try:
            open_device(backend, ordinal)
        except NoDeviceError as error:
            reasons.append(f"{name}: {error.message}")
            hints += [error.hint] if error.hint else []
        else:
            return backend, ordinal
    message = "; ".join(reasons)
    if not enable_fallback:
        hints.append("quadpy doctor says what was looked for; arch=qp.cpu works everywhere")
        raise NoDeviceError(message, hint="; ".join(hints))
    warnings.warn(f"no GPU, the CPU is taken ({message})", RuntimeWarning, stacklevel=3)
    return cpu, 0


def _parse(name: str) -> tuple[str, int]:
    """The backend and the device's number in ``name``, such as ``cuda:1``."""
    backend, colon, number = name.partition(":")
    if backend in ("cpu", "x64", "x86_64", "arm64") and not colon:
        return cpu, 0
    if backend not in (amdgpu, cuda):
        raise NoDeviceError(f"there is no backend {name!r}", hint="there are qp.cpu, qp.amdgpu, qp.cuda and qp.gpu")
    if colon and not (number.isascii() and number.isdecimal()):
        raise NoDeviceError(f"{name!r} names no device", hint=f"write {backend!r}, or '{backend}:1' for its second one")
    return backend, int(number or 0)


def reset() -> None:
    """Back to the defaults, as before ``init``."""
    set_config(Config())


def sync() -> None:
    """Waits for all work on the device, on every stream, and raises what a host function of a graph raised.

    On the CPU a call returns when its work is done.
    """
    current_device().synchronize()
