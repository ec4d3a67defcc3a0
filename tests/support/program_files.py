"""Texts of programs as modules, loaded from files, as kernels are."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from pathlib import Path


@contextlib.contextmanager
def module_of(name, text, folder):
    """The module ``name`` with this text, for as long as the block."""
    path = Path(folder) / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]
        path.unlink()
