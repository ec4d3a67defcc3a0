"""Modules that are imported when something is first used."""

from __future__ import annotations

import functools
import importlib
import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from quadpy.errors import QuadpyError

_importing: Final = threading.RLock()


class _Forks:
    wait = not hasattr(os, "register_at_fork")


def import_late(name: str) -> ModuleType:
    """The module ``name``.

    A fork by another thread waits until the import is complete: in the child of the fork, no thread would complete it, and
    those that need the module would wait forever.
    """
    with _importing:
        if not _Forks.wait:
            importlib.import_module("logging")  # it has a lock like those of ``held_by_forks``, which imports take
            os.register_at_fork(**_hooks(_importing.acquire, _importing.release))
            _Forks.wait = True
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


def held_by_forks(acquire: Callable[[], Any], release: Callable[[], Any]) -> None:
    """Lets each fork hold a lock that imports take: a child forked while another thread holds it could never take it.

    A fork takes the locks of the latest registration first.  It must take the one of imports before any that an import
    takes, or it would hold the other and wait for the import, which waits for the other.  So the one of imports is
    registered again, in the same step: no fork sees one without the other.
    """
    if hasattr(os, "register_at_fork"):
        hooks = _hooks(acquire, release), _hooks(_importing.acquire, _importing.release)
        list(map(functools.partial.__call__, [functools.partial(os.register_at_fork, **one) for one in hooks]))


def _hooks(acquire: Callable[[], Any], release: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
    return {"before": acquire, "after_in_parent": release, "after_in_child": release}
