"""``qp.perf_dispatch``: several implementations of one function, of which the fastest is found while a program runs."""

from __future__ import annotations

import inspect
import json
import os
import time
from collections.abc import Callable, Hashable
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from quadpy.core.completion import shows
from quadpy.core.light import dataclass
from quadpy.core.messages import one_of, shown
from quadpy.core.public import made_by, public
from quadpy.errors import ArgumentError
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import thread_captures

_Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Rules:
    """How long to measure, and when to measure again; ``file`` keeps decisions."""

    geometry: Callable[..., Hashable]
    first_warmup: int
    warmup: int
    active: int
    repeat_after_count: int | None
    repeat_after_seconds: float | None
    file: Path | None


@dataclass(slots=True)
class _Trial:
    """The measurements for one geometry: how often each implementation ran, and its best time.

    ``chosen`` is None while it is measured; ``calls`` and ``since`` count from the decision on.
    """

    runs: dict[str, int]
    warmup: int
    best: dict[str, float] = field(default_factory=dict)
    chosen: str | None = None
    calls: int = 0
    since: float = 0.0


@made_by("qp.perf_dispatch(get_geometry_hash=...) decorates a function")
@shows("decisions", "register")
class PerfDispatch:
    """A function with several implementations; a call runs one of them, once, and measures until the fastest is known."""

    def __init__(self, prototype: _Function, rules: _Rules) -> None:
        self.__name__, self.__doc__ = getattr(prototype, "__name__", "function"), prototype.__doc__
        self._names = list(inspect.signature(prototype).parameters)
        self._rules, self._lock = rules, new_lock()
        self._functions: dict[str, tuple[_Function, Callable[..., bool] | None]] = {}
        self._trials: dict[Hashable, _Trial] = {}
        self._kept: dict[str, str] = _read(rules.file) if rules.file is not None else {}

    def register(self, fn: _Function | None = None, *, is_compatible: Callable[..., bool] | None = None) -> Any:
        """Decorator: ``fn``, a kernel or any function with the same parameters, is an implementation.

        ``is_compatible`` tells whether the implementation can be used for the arguments of a call; by default, it
        always can.

        Raises:
            ArgumentError: its parameters differ, or one of this name is there already.
        """
        if fn is None:
            return lambda given: self.register(given, is_compatible=is_compatible)
        name = getattr(fn, "__name__", repr(fn))
        if (names := list(inspect.signature(fn).parameters)) != self._names:
            raise ArgumentError(
                f"{name} takes {', '.join(names) or 'nothing'}, and {self.__name__} {', '.join(self._names)}"
            )
        if name in self._functions:
            raise ArgumentError(f"{self.__name__} already has an implementation {name!r}")
        with self._lock:
            self._functions[name] = (fn, is_compatible)
            self._trials.clear()
        return fn

    def decisions(self) -> dict[str, str]:
        """The name of the implementation that was chosen, by the text of each geometry that several fit."""
        with self._lock:
            found = {repr(key): trial.chosen for key, trial in self._trials.items() if trial.chosen is not None}
        return self._kept | found

    @public
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = {name: value for name, value in kwargs.items() if name != "stream"} if kwargs else kwargs
        usable = [name for name, (_, fits) in self._functions.items() if fits is None or fits(*args, **given)]
        if not usable:
            what = "compatible with these arguments" if self._functions else "registered"
            raise ArgumentError(f"{self.__name__} has no implementation that is {what}")
        if len(usable) == 1 and self._rules.file is None:
            return self._functions[usable[0]][0](*args, **kwargs)
        geometry = self._rules.geometry(*args, **given)
        name, timed = self._next(geometry, usable)
        function = self._functions[name][0]
        if not timed:
            return function(*args, **kwargs)
        device = current_device()
        device.synchronize()
        begin = time.perf_counter()
        result = function(*args, **kwargs)
        device.synchronize()
        self._measured(geometry, name, time.perf_counter() - begin)
        return result

    def _next(self, geometry: Hashable, usable: list[str]) -> tuple[str, bool]:
        """Which implementation runs, and whether it is timed; nothing is while calls are captured."""
        with self._lock:
            kept = self._kept.get(repr(geometry)) if self._kept else None  # texts of arguments may be long
            if kept is not None:
                if kept not in usable:
                    raise ArgumentError(
                        f"{self._rules.file} names {kept!r} for {geometry!r}", hint=one_of(kept, usable)
                    )
                return kept, False
            trial = self._trials.get(geometry)
            if trial is None or trial.runs.keys() != set(usable):
                trial = self._trials[geometry] = _Trial(dict.fromkeys(usable, 0), self._rules.first_warmup)
            if trial.chosen is not None and not self._is_old(trial):
                trial.calls += 1
                return trial.chosen, False
            if thread_captures().streams:
                return trial.chosen or usable[0], False
            if trial.chosen is not None:
                trial = self._trials[geometry] = _Trial(dict.fromkeys(usable, 0), self._rules.warmup)
            name = next(name for name in usable if trial.runs[name] < trial.warmup + self._rules.active)
            trial.runs[name] += 1
            return name, trial.runs[name] > trial.warmup

    def _is_old(self, trial: _Trial) -> bool:
        count, seconds = self._rules.repeat_after_count, self._rules.repeat_after_seconds
        return bool(count and trial.calls >= count) or bool(seconds and time.monotonic() - trial.since >= seconds)

    def _measured(self, geometry: Hashable, name: str, seconds: float) -> None:
        with self._lock:
            trial = self._trials.get(geometry)
            if trial is None or trial.chosen is not None:
                return
            trial.best[name] = min(seconds, trial.best.get(name, seconds))
            if all(runs >= trial.warmup + self._rules.active for runs in trial.runs.values()) and trial.best:
                trial.chosen, trial.since = min(trial.best, key=trial.best.__getitem__), time.monotonic()
                if self._rules.file is not None:
                    self._kept[repr(geometry)] = trial.chosen
                    _write(self._rules.file, self._kept)


@public
def perf_dispatch(
    *, get_geometry_hash: Callable[..., Hashable], first_warmup: int = 1, warmup: int = 0, active: int = 1,
    repeat_after_count: int | None = None, repeat_after_seconds: float | None = None, file: str | Path | None = None,
) -> Callable[[_Function], PerfDispatch]:  # fmt: skip
    """Decorate a function without a body, for which implementations are registered: calls find the fastest one.

    Each call runs one implementation, once.  For each geometry that several fit, every one of them runs a few times, some of
    these timed; then the fastest one is used.  The fastest may differ from run to run, and with it the last bits of results:
    with ``file`` the first run decides.

    Args:
        get_geometry_hash: returns what the choice depends on, such as shapes, from the arguments of a call.
        first_warmup: calls of each implementation that are not timed.
        warmup: the same when it is measured again.
        active: calls of each implementation that are timed; the shortest counts.
        repeat_after_count: measure again after this many calls; never for None or 0.
        repeat_after_seconds: the same in seconds.
        file: a JSON file from which decisions are taken, and to which new ones are written.

    Raises:
        ArgumentError: a number is out of range, or the file cannot be read.
    """
    for name, value, least in (("first_warmup", first_warmup, 0), ("warmup", warmup, 0), ("active", active, 1)):
        if value < least:
            raise ArgumentError(f"{name} must be a number of calls, of at least {least}, not {shown(value)}")
    if not callable(get_geometry_hash):
        raise ArgumentError(f"get_geometry_hash is {shown(get_geometry_hash)}, which cannot be called")
    path = None if file is None else Path(file)
    rules = _Rules(get_geometry_hash, first_warmup, warmup, active, repeat_after_count, repeat_after_seconds, path)
    return lambda prototype: PerfDispatch(prototype, rules)


_WRONG: Final = "it must be a JSON object of strings: the geometry and the name of the implementation"


def _read(file: Path) -> dict[str, str]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{file} cannot be read: {error}", hint=_WRONG) from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
        raise ArgumentError(f"{file} has no decisions", hint=_WRONG)
    return found


def _write(file: Path, decisions: dict[str, str]) -> None:
    """In one step, so that a program that ends in the meantime leaves the file intact."""
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_text(json.dumps(decisions, indent=2), encoding="utf-8")
    new.replace(file)
