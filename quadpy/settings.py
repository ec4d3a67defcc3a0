"""Settings from environment variables.

Each field is one variable: ``cache_dir`` is ``QUADPY_CACHE_DIR``.  ``settings()`` reads the environment once; arguments
of ``qp.init`` override it.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from quadpy.core.messages import closest
from quadpy.errors import QuadpyError

LEAST_PRINTED: Final = 8
MOST_PRINTED: Final = 1 << 32
"""Limits of what one launch may have for prints, in bytes."""

CAPABILITIES: Final = (
    "graphs", "large-graphs", "graph-branches", "graph-updates", "graph-loops", "pool", "cooperative", "mapped",
    "float-atomics", "parts",
)  # fmt: skip
"""What quadpy can do without on a GPU: see ``quadpy selftest``."""
NO_CAPABILITY: Final = "nothing"

Allocator = Literal["pool", "cache"]
Place = Literal["screen", "browser", "memory"]
LogLevel = Literal["debug", "info", "warning", "error"]

T = TypeVar("T")


class SettingsError(QuadpyError, ValueError):
    """An environment variable with an invalid value; the message names both."""


def _flag(text: str) -> bool:
    if text.lower() in ("1", "true", "on", "yes"):
        return True
    if text.lower() in ("0", "false", "off", "no"):
        return False
    raise ValueError("0 or 1")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0):
        raise ValueError("a whole number above 0")
    return int(text)


def _print_buffer(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19 and LEAST_PRINTED <= int(text) <= MOST_PRINTED):
        raise ValueError(f"a number of bytes from {LEAST_PRINTED} to {MOST_PRINTED}")
    return int(text)


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()  # the program may change its folder
    except OSError:  # the current folder is gone
        return Path(text)
    except RuntimeError:
        raise ValueError("a path (there is no home folder for ~)") from None


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError("one of " + ", ".join(choices))
        return text.lower()

    return parse


def _capabilities(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, (part.strip().lower() for part in text.split(","))))
    if names != (NO_CAPABILITY,) and not set(names) <= set(CAPABILITIES):
        raise ValueError(f"{NO_CAPABILITY}, or names out of {', '.join(CAPABILITIES)}, with commas")
    return names


def _hazards(text: str) -> bool | str:
    if text.lower() == "collect":
        return "collect"
    try:
        return _flag(text)
    except ValueError:
        raise ValueError("0, 1 or collect") from None


def _bits(text: str) -> int:
    if text not in ("32", "64"):
        raise ValueError("32 or 64")
    return int(text)


def _knob(default: T, parse: Callable[[str], Any], doc: str) -> T:
    """A field with the parser of its variable and its line in the reference.

    A parser raises ``ValueError`` with a description of valid values.
    """
    return field(default=default, metadata={"parse": parse, "doc": doc})


@dataclass(frozen=True, slots=True)
class Settings:
    """The process's settings.  ``None`` leaves the choice to quadpy."""

    arch: str | None = _knob(None, str, "Backend that `qp.init` uses, whatever its argument: `cpu`, `gpu`, `amdgpu`, …")
    debug: bool | None = _knob(
        None,
        _flag,
        "Checks inside kernels: indices, overflow, divisions, shifts, casts and `assert`.",
    )
    fast_math: bool | None = _knob(None, _flag, "Permit contraction, reassociation and approximations.")
    default_fp: int | None = _knob(None, _bits, "Bits of a Python `float` inside kernels: 32 or 64.")
    default_ip: int | None = _knob(None, _bits, "Bits of a Python `int` inside kernels: 32 or 64.")
    num_threads: int | None = _knob(None, _count, "Threads of the CPU backend; all available cores by default.")
    print_buffer: int = _knob(
        1 << 20,
        _print_buffer,
        "Bytes for the output of one launch, 8 for each number and 8 to 16 for each line; 1 MiB by default.",
    )
    hazards: bool | str | None = _knob(
        None,
        _hazards,
        "1 finds accesses that nothing orders, and raises `HazardError`; `collect` only collects them.",
    )
    allocator: Allocator | None = _knob(
        None,
        _one_of("pool", "cache"),
        "GPU memory from the driver's `pool` or from quadpy's own `cache`, which is the default on AMD GPUs.",
    )
    without: tuple[str, ...] | None = _knob(
        None,
        _capabilities,
        "Capabilities of the GPU that quadpy does without, with commas, in place of those that `quadpy selftest` found "
        "not to work: `graphs`, `large-graphs`, `graph-branches`, `graph-updates`, `graph-loops`, `pool`, "
        "`cooperative`, `mapped`, `float-atomics`, `parts`; or `nothing`.",
    )
    cache: bool = _knob(True, _flag, "0 turns the kernel cache off.")
    cache_dir: Path | None = _knob(
        None, _path, "Folder of the kernel cache; by default, `quadpy` in the user's cache folder."
    )
    cache_size: int = _knob(256, _count, "Size limit of the kernel cache in MiB.")
    compile_steps: int = _knob(
        500_000,
        _count,
        "Limit of compile-time steps for one kernel: each expression, and each item that is unrolled or computed at "
        "compile time, takes one or more steps.",
    )
    full_traceback: bool = _knob(
        False,
        _flag,
        "1 shows quadpy's own frames in the tracebacks of kernels' errors.",
    )
    crash_message: bool = _knob(
        True,
        _flag,
        "0 lets a crash inside a kernel on the CPU end the process without naming the kernel.",
    )
    graph_verify: bool = _knob(
        False,
        _flag,
        "1 runs each replayed function a second time, without its graph, and compares the results byte by byte; a "
        "difference is logged, and turns graphs off for the process.",
    )
    rank_timeout: int = _knob(
        300,
        _count,
        "Seconds without an answer after which another rank of a distributed program counts as lost; 300 by default.",
    )
    frames: Path | None = _knob(
        None, _path, "Folder for the frames of `quadpy.compat.taichi`'s windows, which are then not shown."
    )
    frame_limit: int | None = _knob(
        None, _count, "Frames after which a window of `quadpy.compat.taichi` closes; 100 by default without a display."
    )
    view: Place | None = _knob(
        None,
        _one_of("screen", "browser", "memory"),
        "Where windows of `quadpy.view` are: on the `screen`, in a `browser`, or only in `memory`.",
    )
    log_level: LogLevel = _knob(
        "warning",
        _one_of("debug", "info", "warning", "error"),
        "Minimum level to log.",
    )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """The settings in ``environ``; an empty variable counts as not set.

        A variable that only looks like one of quadpy's is a RuntimeWarning.

        Raises:
            SettingsError: a variable has an invalid value.
        """
        known = [variable(knob.name) for knob in fields(cls)]
        for name in environ:
            if name.startswith(variable("")) and name not in known:
                warnings.warn(" ".join(filter(None, [f"quadpy has no setting {name};", closest(name, known)])).rstrip(";"),
                              RuntimeWarning, stacklevel=3)  # fmt: skip
        found = {knob.name: _read(knob, text) for knob in fields(cls) if (text := environ.get(variable(knob.name)))}
        return cls(**found)


def variable(name: str) -> str:
    """The environment variable of the field ``name``."""
    return f"QUADPY_{name.upper()}"


def _read(knob: Field[Any], text: str) -> Any:
    try:
        return knob.metadata["parse"](text)
    except ValueError as error:
        raise SettingsError(
            f"{variable(knob.name)}={text!r} is not {error}", hint=f"set it to {error}, or unset it"
        ) from None


_USER_CACHE: Final = {"darwin": "~/Library/Caches", "win32": "~/AppData/Local"}


def default_cache_dir(environ: Mapping[str, str]) -> Path | None:
    """The default folder of the kernel cache; ``None`` for a user without a home folder."""
    base = Path(environ.get("XDG_CACHE_HOME") or _USER_CACHE.get(sys.platform, "~/.cache"))
    try:
        return base.expanduser() / "quadpy"
    except RuntimeError:
        return None


@functools.cache
def settings() -> Settings:
    """The settings of this process, read from the environment on the first call."""
    return Settings.from_environ(os.environ)
