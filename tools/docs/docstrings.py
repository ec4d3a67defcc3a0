"""Docstrings as Markdown."""

from __future__ import annotations

import re
import textwrap
from typing import Final

from quadpy import errors
from tools.docs import public

_SECTION: Final = re.compile(r"^(Args|Raises|Returns|Yields|Attributes):\n((?:    .*\n|\n)*(?:    .*)?)", re.MULTILINE)
_FIELD: Final = re.compile(r"^(?P<names>\w+(?:, \w+)*)  +(?P<text>\S.*(?:\n .*)*)", re.MULTILINE)
_TITLES: Final = {"Args": "Parameters", "Raises": "Errors"}
_NAME: Final = re.compile(r"``((?:qp\.)[\w.]+?)(\([^`]*\))?``")


def to_markdown(doc: str) -> str:
    """A docstring as Markdown: sections as lists, aligned columns as tables, names as links."""
    doc = textwrap.dedent(doc)
    doc = _SECTION.sub(_section, doc)
    doc = re.sub(r"(?:^\w+(?:, \w+)*  +\S.*(?:\n .*)*\n?){1,}", _fields, doc, flags=re.MULTILINE)
    return _NAME.sub(_link, doc).strip()


def _section(found: re.Match[str]) -> str:
    items: list[str] = []
    for line in textwrap.dedent(found[2]).splitlines():
        name, colon, text = line.partition(": ")
        if colon and not line.startswith(" "):
            items.append(f"- {', '.join(map(error_link, name.split(', ')))}: {text}")
        elif line:
            items[-1:] = [f"{items[-1]} {line.strip()}"] if items else [line]
    return f"**{_TITLES.get(found[1], found[1])}**\n\n" + "\n".join(items) + "\n\n"


def _fields(found: re.Match[str]) -> str:
    rows = [f"| `{each['names']}` | {' '.join(each['text'].split())} |" for each in _FIELD.finditer(found[0])]
    return "| attribute | |\n|---|---|\n" + "\n".join(rows) + "\n"


def error_link(name: str) -> str:
    """A name in code, which is a link if an error has it."""
    known = name in errors.__all__
    return f"[`{name}`]({public.target(f'qp.{name}')})" if known else f"`{name}`"


def _link(found: re.Match[str]) -> str:
    name, call = found[1], found[2] or ""
    known = public.other_names().get(name, name) in public.pages()
    return f"[`{name}{call}`]({public.target(name)})" if known else found[0]
