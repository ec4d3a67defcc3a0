"""Reference pages that print themselves: ``<!-- print: name -->`` in a page becomes the text that a table here gives.

What can be read off the code is never written down a second time.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
from collections.abc import Callable

from quadpy import cli, errors, settings

_MARK = re.compile(r"^<!-- print: (?P<name>\w+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    """MkDocs calls this with the text of each page."""
    return _MARK.sub(lambda mark: PRINTERS[mark["name"]](), markdown)


def print_settings() -> str:
    rows = [
        f"| `{settings.variable(knob.name)}` | {_default(knob.default)} | {knob.metadata['doc']} |"
        for knob in dataclasses.fields(settings.Settings)
    ]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])


def _default(value: object) -> str:
    return "" if value is None else f"`{int(value)}`" if isinstance(value, bool) else f"`{value}`"


def print_errors() -> str:
    rows = []
    for name in errors.__all__:
        error = getattr(errors, name)
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        rows.append(f"| `{name}` | {bases} | {inspect.getdoc(error)} |")
    return "\n".join(["| error | is a | raised for |", "|---|---|---|", *rows])


def print_commands() -> str:
    parts = []
    for command in cli.SUBCOMMANDS:
        parser = argparse.ArgumentParser(
            prog=f"quadpy {command.NAME}",
            formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100),
        )
        command.add_arguments(parser)
        parts.append(f"## quadpy {command.NAME}\n\n{inspect.getdoc(command)}\n\n```text\n{parser.format_help()}```\n")
    return "\n".join(parts)


PRINTERS: dict[str, Callable[[], str]] = {
    "commands": print_commands,
    "errors": print_errors,
    "settings": print_settings,
}
