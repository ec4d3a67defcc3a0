"""``objects.inv`` of the site: where other projects, by Sphinx or mkdocstrings, find the entry of each public name."""

from __future__ import annotations

import inspect
from typing import Any, Final

from sphobjinv import DataObjStr, Inventory, compress, writebytes

from quadpy._version import __version__
from tools.docs import ROOT, entries, public

SITE: Final = ROOT / "build/site"


def inventory() -> Inventory:
    found = Inventory()
    found.project, found.version = "quadpy", __version__
    for name, value in public.public().items():
        page, _, anchor = public.target(name).partition(".md#")
        found.objects.append(_object(public.anchor(name), _role(value), f"reference/{page}/#{anchor}"))
        for member in entries.members(value):
            uri = f"reference/{page}/#{anchor}.{member}"
            found.objects.append(_object(f"{public.anchor(name)}.{member}", "method", uri))
    return found


def _object(name: str, role: str, uri: str) -> DataObjStr:
    return DataObjStr(name=name, domain="py", role=role, priority="1", uri=uri, dispname="-")


def _role(value: Any) -> str:
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) else "data"


def write() -> None:
    writebytes(SITE / "objects.inv", compress(inventory().data_file()))
