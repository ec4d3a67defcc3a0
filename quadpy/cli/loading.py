"""Finds the kernels that a command line names."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from quadpy.cli.program_arguments import find_module
from quadpy.errors import KernelNameError, KernelSourceError, QuadpyError
from quadpy.jit.kernel import BoundKernel, Kernel
from quadpy.lang.decorators import is_method

_OWN: Final = str(Path(__file__).parent.parent)


class CannotRunError(KernelSourceError):
    """A module or file exists, but Python cannot run it."""


def load_kernels(text: str) -> dict[str, Kernel]:
    """The kernels of ``module``, ``module:name``, ``file.py`` or ``file.py:name``, by name.

    A module is imported; a file runs as a separate module, not as ``__main__``.  Kernels that are methods belong to the
    module's objects, as in ``solver.step``; for a class without an object, ``Solver.step`` has an open ``self``.

    Raises:
        CannotRunError: the module or file cannot be run.
        KernelSourceError: there is no such module or file.
        KernelNameError: it has no such kernel.
    """
    where, _, name = text.partition(":")
    namespace = _namespace(where)
    own = _kernels_of(namespace)
    found = {name: _attribute(namespace, name)} if name else own
    kernels = {key: value for key, value in found.items() if isinstance(value, Kernel)}
    if not kernels:
        raise KernelNameError(
            f"{where} has no kernel {name!r}" if name else f"{where} has no kernels",
            hint=f"its kernels are {', '.join(own)}" if own else "a kernel is a function decorated with @qp.kernel",
        )
    return kernels


def load_function(text: str) -> Any:
    """What ``module:name`` or ``file.py:name`` names, a kernel or another function; raises as ``load_kernels``."""
    where, _, name = text.partition(":")
    found = _attribute(_namespace(where), name)
    if not callable(found):
        raise KernelNameError(
            f"{where} has no kernel or function {name!r}", hint="write module:function, or file.py:function"
        )
    return found


def call_quietly(where: str, function: Callable[[], Any]) -> Any:
    """The result of ``function`` of the user's; what it prints is not output of the command.  Raises as ``load_kernels``."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            return function()
        except QuadpyError:
            raise
        except (Exception, SystemExit) as error:
            raise _not_run(where, error) from error


def _namespace(where: str) -> Mapping[str, Any]:
    return call_quietly(where, lambda: _run_file(Path(where)) if where.endswith(".py") else _import(where))  # type: ignore[no-any-return]  # of one of the two


def _not_run(where: str, error: BaseException) -> CannotRunError:
    """The error for a module that raised ``error``, with the user's last line that ran."""
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    if isinstance(error, SyntaxError):
        return CannotRunError(f"{where} cannot be read: {what}")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(("<", _OWN))]
    at = next((f" (line {f.lineno} of {f.filename})" for f in reversed(frames) if f.filename != runpy.__file__), "")
    return CannotRunError(f"{where} cannot be run: {what}{at}")


def _kernels_of(namespace: Mapping[str, Any]) -> dict[str, Kernel]:
    """The kernels that a module defines: its own, and those of its classes."""
    module, found = namespace["__name__"], {}
    methods: dict[type, dict[str, Kernel]] = {}
    for name, value in namespace.items():
        if isinstance(value, Kernel) and value.source.fn.__module__ == module and not isinstance(value, BoundKernel):
            found[name] = value
        elif isinstance(value, type) and value.__module__ == module:
            methods[value] = {key: each for base in reversed(value.__mro__) for key, each in _methods_of(base, module)}
    for cls, kernels in methods.items():
        owners = [name for name, value in namespace.items() if type(value) is cls]
        for key in kernels:
            static = isinstance(inspect.getattr_static(cls, key), staticmethod)
            objects = {} if static else {owner: namespace[owner] for owner in owners}
            for owner, value in (objects or {cls.__name__: cls}).items():
                found[f"{owner}.{key}"] = getattr(value, key)
    return found


def _methods_of(cls: type, module: str) -> Iterator[tuple[str, Kernel]]:
    """The kernels that are defined in the body of ``cls``."""
    for key, value in vars(cls).items():
        kernel = value.__func__ if isinstance(value, staticmethod) else value
        if isinstance(kernel, Kernel) and kernel.source.fn.__module__ == module and is_method(kernel.source.fn):
            yield key, kernel


def _run_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise KernelSourceError(f"there is no file {path}")
    sys.path.insert(0, str(path.resolve().parent))  # so that it can import its neighbours, as when Python runs it
    return runpy.run_path(str(path), run_name=path.stem)


def _import(module: str) -> Mapping[str, Any]:
    if find_module(module) is None:
        raise KernelSourceError(
            f"there is no module {module!r}", hint="write package.module:kernel, or file.py:kernel for a file"
        )
    return vars(importlib.import_module(module))


def _attribute(namespace: Mapping[str, Any], path: str) -> Any:
    root, *attributes = path.split(".")
    value = namespace.get(root)
    for attribute in attributes:
        value = getattr(value, attribute, None)
    return value
