"""Finds the kernels that a command line names."""

from __future__ import annotations

import contextlib
import importlib.util
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quadpy.errors import KernelNameError, KernelSourceError
from quadpy.jit.kernel import Kernel

__all__ = ["load_kernels"]


def load_kernels(text: str) -> dict[str, Kernel]:
    """The kernels of ``module``, ``module:name``, ``file.py`` or ``file.py:name``, by name.

    A module is imported; a file runs as a module of its own, not as ``__main__``.

    Raises:
        KernelSourceError: there is no such module or file.
        KernelNameError: it has no such kernel.
    """
    where, _, name = text.partition(":")
    with contextlib.redirect_stdout(sys.stderr):  # what the module prints is not output of the command
        namespace = _run_file(Path(where)) if where.endswith(".py") else _import(where)
    own = {
        key: value
        for key, value in namespace.items()
        if isinstance(value, Kernel) and value.source.fn.__module__ == namespace["__name__"]
    }
    found = {name: _attribute(namespace, name)} if name else own
    kernels = {key: value for key, value in found.items() if isinstance(value, Kernel)}
    if not kernels:
        raise KernelNameError(
            f"{where} has no kernel {name!r}" if name else f"{where} has no kernels",
            hint=f"its kernels are {', '.join(own)}" if own else "a kernel is a function decorated with @qp.kernel",
        )
    return kernels


def _run_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise KernelSourceError(f"there is no file {path}")
    sys.path.insert(0, str(path.resolve().parent))  # so that it can import its neighbours, as when Python runs it
    return runpy.run_path(str(path), run_name=path.stem)


def _import(module: str) -> Mapping[str, Any]:
    sys.path.insert(0, "")  # a console script does not have the current folder in its path
    try:
        spec = importlib.util.find_spec(module)
    except (ModuleNotFoundError, ValueError):
        spec = None
    if spec is None:
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
