"""The code objects that a device has loaded."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from quadpy.core.source import Span
from quadpy.core.target import parse_target
from quadpy.errors import DriverError
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.drivers.driver import Driver, FunctionHandle, ModuleHandle

if TYPE_CHECKING:
    from quadpy.core.artifact import CodeObject


class Label(NamedTuple):
    """A function: its kernel's ``name``, the number of the task if there are several, and where the task begins."""

    name: str
    task: int | None = None
    span: Span | None = None


class Module:
    """One code object on one device; its functions are valid until the device closes."""

    def __init__(
        self, driver: Driver, handle: ModuleHandle, code: CodeObject, labels: dict[FunctionHandle, Label]
    ) -> None:
        self.handle, self.code = handle, code
        self._driver, self._labels = driver, labels
        self._functions: dict[str, FunctionHandle] = {}

    def function(self, name: str, label: Label | None = None) -> FunctionHandle:
        """The function ``name``, which messages call ``label``; DriverError if the code object has no such function."""
        found = self._functions.get(name)
        if found is None:  # two threads may both look it up: the driver returns the same handle
            found = self._functions[name] = self._driver.module_function(self.handle, name)
        if label is not None or found not in self._labels:
            self._labels[found] = label or Label(name)
        return found


class Modules:
    """The code objects of one device.  Each is loaded once and stays until ``close``.

    So no code is unloaded while a stream or a graph runs it: the device closes after all its work.
    ``labels`` describes each function, for messages and tools.
    """

    def __init__(self, driver: Driver, life: Life) -> None:
        self._driver, self._life = driver, life
        self._loaded: dict[bytes, Module] = {}
        self.labels: dict[FunctionHandle, Label] = {}
        self._lock = new_lock()

    def load(self, code: CodeObject) -> Module:
        """The module of ``code``.

        Raises:
            DriverError: ``code`` was compiled for another GPU, or the driver refuses it.
            DeviceError: the device was closed, or belongs to the parent process.
        """
        self._life.check()
        _require_target(code.target, self._driver)
        key = hashlib.blake2b(code.image, digest_size=16).digest()
        with self._lock:
            if (module := self._loaded.get(key)) is None:
                module = Module(self._driver, self._driver.module_load(code.image), code, self.labels)
                self._loaded[key] = module
        return module

    def __len__(self) -> int:
        return len(self._loaded)

    def close(self) -> None:
        """Unload everything; the device is idle."""
        with self._lock:
            loaded, self._loaded = self._loaded, {}
        for module in loaded.values():
            self._driver.module_unload(module.handle)


def _require_target(target: str, driver: Driver) -> None:
    """Refuse code for another processor with a clear message; the driver would only return a number."""
    if not is_code_for(target, driver.info.arch):
        built, there = _processor(target), _processor(driver.info.arch)
        raise DriverError(
            f"the code object is for {built}, and {driver.info.name} is a {there}",
            hint=f"compile the kernel for {there}",
        )


def is_code_for(target: str, arch: str) -> bool:
    """Whether a driver loads code for ``target`` on a device of ``arch``."""
    built, there = _processor(target), _processor(arch)
    return built == there or _compiles_for(built, there)


@cache
def _compiles_for(built: str, there: str) -> bool:
    """Whether a driver can compile PTX for ``built`` to code for ``there``: it can for every later device.

    It cannot for targets with a letter, such as sm_90a, whose additions exist on one device only.
    """
    versions = [name.removeprefix("sm_") for name in (built, there)]
    if not all(version.isdecimal() for version in versions):
        return False
    oldest, newest = map(int, versions)
    return oldest <= newest


@cache
def _processor(target: str) -> str:
    return parse_target(target).arch
