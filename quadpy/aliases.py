"""Names that programs written for Taichi or Quadrants use, besides quadpy's own."""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Any, Final

from quadpy.core.dtypes import bf16, f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64
from quadpy.core.importing import import_late
from quadpy.core.messages import one_of
from quadpy.core.public import public
from quadpy.errors import (
    ArgumentError,
    BoundsError,
    CompilationError,
    KernelAssertionError,
    KernelNameError,
    KernelSyntaxError,
    KernelTypeError,
    QuadpyError,
)
from quadpy.runtime.device.current import current_config

if TYPE_CHECKING:
    import logging

__all__ = [
    "CRITICAL", "DEBUG", "ERROR", "INFO", "QuadrantsAssertionError", "QuadrantsCompilationError", "QuadrantsIndexError",
    "QuadrantsNameError", "QuadrantsRuntimeError", "QuadrantsRuntimeTypeError", "QuadrantsSyntaxError",
    "QuadrantsTypeError", "TRACE", "WARN", "arm64", "bfloat16", "cfg", "dump_compile_config", "extension", "float16",
    "float32", "float64", "int16", "int32", "int64", "int8", "is_extension_enabled", "is_logging_effective",
    "set_logging_level", "uint1", "uint16", "uint32", "uint64", "uint8", "x64", "x86_64",
]  # fmt: skip

bfloat16, float16, float32, float64 = bf16, f16, f32, f64
int8, int16, int32, int64 = i8, i16, i32, i64
uint1, uint8, uint16, uint32, uint64 = u1, u8, u16, u32, u64

x64 = x86_64 = arm64 = "cpu"
TRACE, DEBUG, INFO, WARN, ERROR, CRITICAL = "trace", "debug", "info", "warn", "error", "critical"

QuadrantsCompilationError = CompilationError
QuadrantsSyntaxError = KernelSyntaxError
QuadrantsNameError = KernelNameError
QuadrantsTypeError = KernelTypeError
QuadrantsIndexError = BoundsError
QuadrantsRuntimeError = QuadpyError
QuadrantsRuntimeTypeError = ArgumentError
QuadrantsAssertionError = KernelAssertionError

_LEVELS: Final = {
    "trace": 10,
    "debug": 10,
    "info": 20,
    "warn": 30,
    "warning": 30,
    "error": 40,
    "critical": 50,
    "off": 51,
}
"""The numbers of Python's ``logging``, which most programs do without."""


class extension(enum.Enum):  # noqa: N801  (its name in the languages that it comes from)
    """Features of a backend beyond the core of the language; see ``is_extension_enabled``."""

    sparse = "sparse"
    quant = "quant"
    quant_basic = "quant_basic"
    data64 = "data64"
    adstack = "adstack"
    bls = "bls"
    assertion = "assertion"
    extfunc = "extfunc"
    mesh = "mesh"


_ENABLED: Final = {
    extension.sparse,
    extension.quant,
    extension.quant_basic,
    extension.data64,
    extension.bls,
    extension.assertion,
}


@public
def is_extension_enabled(ext: extension) -> bool:
    """Whether the language has ``ext``; the answer is the same on every backend.

    Raises:
        ArgumentError: ``ext`` is not a member of ``qp.extension``.
    """
    if not isinstance(ext, extension):
        raise ArgumentError(
            f"{ext!r} is not an extension", hint="use a member of qp.extension, such as qp.extension.data64"
        )
    return ext in _ENABLED


def _logger() -> logging.Logger:
    return import_late("logging").getLogger("quadpy")  # type: ignore[no-any-return]  # as annotated


def _level_of(level: str) -> int:
    if level not in _LEVELS:
        raise ArgumentError(f"{level!r} is not a logging level", hint=one_of(level, _LEVELS))
    return _LEVELS[level]


@public
def set_logging_level(level: str) -> None:
    """Log messages of ``level`` and above: ``qp.TRACE`` to ``qp.CRITICAL``, or ``"off"``.

    Raises:
        ArgumentError: there is no such level.
    """
    _logger().setLevel(_level_of(level))


@public
def is_logging_effective(level: str) -> bool:
    """Whether messages of ``level`` are logged.

    Raises:
        ArgumentError: there is no such level.
    """
    return _logger().isEnabledFor(_level_of(level))


_OPTIONS: Final = {
    "cpu_max_num_threads": "num_threads", "print_full_traceback": "full_traceback", "default_gpu_block_dim": "gpu_block_dim",
}  # fmt: skip
"""Options of ``qp.init`` that the configuration has under another name."""


class _Configuration:
    """The options of the last ``qp.init``, as attributes that cannot be set."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(current_config(), _OPTIONS.get(name, name))

    def __dir__(self) -> list[str]:
        named = {own: option for option, own in _OPTIONS.items()}
        return sorted(named.get(name, name) for name in current_config()._fields)

    def __repr__(self) -> str:
        return repr(current_config())


cfg: Final = _Configuration()


@public
def dump_compile_config() -> None:
    """Print the options of the last ``qp.init``, one on each line."""
    for name in dir(cfg):
        sys.stdout.write(f"{name} = {getattr(cfg, name)!r}\n")
