"""Calls of a vendor's binding, as the name tables hold them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

Call: TypeAlias = Callable[..., tuple[Any, ...]]
"""A call that returns ``(status, *values)``."""


def named(call: object, function: Callable[..., tuple[Any, ...]], *arguments: object) -> Call:
    """``function`` with ``arguments`` first.

    Messages use the name of the vendor's call that can fail in it: ``call``, or its name.
    """
    wrapper = functools.partial(function, *arguments)
    wrapper.__dict__["__name__"] = call if isinstance(call, str) else getattr(call, "__name__", repr(call))
    return wrapper
