"""Modules that are imported when something is first used."""

from __future__ import annotations

import importlib
import os
import threading
from types import ModuleType
from typing import Final

from quadpy.errors import QuadpyError

__all__ = ["import_extra", "import_late"]

_importing: Final = threading.RLock()


def import_late(name: str) -> ModuleType:
    """The module ``name``.

    A fork by another thread waits until the import is complete: in the child of the fork, no thread would complete it, and
    those that need the module would wait forever.
    """
    with _importing:
        return importlib.import_module(name)


def import_extra(name: str, what: str, extra: str, *, called: str = "") -> ModuleType:
    """The module ``name``, which ``what`` need and the extra ``extra`` installs; ``called`` is the library's own name.

    Raises:
        QuadpyError: it, or something that it imports, is not installed.
    """
    try:
        return import_late(name)
    except ModuleNotFoundError as error:
        raise QuadpyError(
            f"{what} need {called or error.name}, which is not installed", hint=f"pip install 'quadpy-lang[{extra}]'"
        ) from error


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_importing.acquire, after_in_parent=_importing.release, after_in_child=_importing.release
    )
