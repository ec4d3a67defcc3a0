"""The page of a report: one HTML file without anything outside of it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any, Final

from quadpy.selftest.table import BAD

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; width: 100%; margin: 0.5em 0 1.5em; }
td, th { border-bottom: 1px solid #ddd; padding: 0.3em 0.7em 0.3em 0; text-align: left; vertical-align: top; }
pre { margin: 0; white-space: pre-wrap; font-size: 13px; }
.passed { color: #17692f; } .failed, .crashed, .hung { color: #b3261e; font-weight: 600; }
.skipped, .not-run { color: #777; }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd; } td, th { border-color: #444; }
.passed { color: #6fce8b; } .failed, .crashed, .hung { color: #ff8a80; } }
"""
RESULTS: Final = {
    0: "Everything that ran works.",
    1: "Something does not work.",
    3: "Something does not work; quadpy does without it.",
    130: "The self-test was interrupted.",
}
"""What a status means, for people."""


def page(report: Mapping[str, Any]) -> str:
    """The page of ``report``."""
    device, bad = report["device"], [row for row in report["checks"] if {*BAD} & {row["status"], row["without"]}]
    title = f"quadpy selftest: {device.get('name', report['backend'])}"
    parts = [f"<h1>{_text(title)}</h1>", f"<p><b>{RESULTS[report['status']]}</b></p>"]
    parts += [_table(_facts(report))]
    if report["off"]:
        rows = [(name, each["why"], each["instead"]) for name, each in report["off"].items()]
        parts += ["<h2>Switched off</h2>", _table(rows, ("capability", "why", "what quadpy does"))]
    if bad:
        failures = [(row["name"], row["proves"], row["text"], row["remedy"]) for row in bad]
        parts += [
            "<h2>What fails</h2>",
            _table(failures, ("check", "what it proves", "what happened", "what you can do")),
        ]
    parts += ["<h2>Checks</h2>", _checks(report["checks"])]
    if report["doctor"]:
        rows = [
            ({True: "ok", False: "--"}.get(each["works"], ""), each["part"], each["text"]) for each in report["doctor"]
        ]
        parts += ["<h2>quadpy doctor</h2>", _table(rows)]
    parts += ["<h2>Costs</h2>", *map(_figures, report["checks"])]
    return f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{_text(title)}</title><style>{_STYLE}</style>{''.join(parts)}</html>"


def _facts(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    device, host = report["device"], report["host"]
    world = device.get("world", {})
    return [
        ("device", f"{device.get('name', '')}, {device.get('arch', '')}, {device.get('memory', 0) / 2**30:.1f} GiB"),
        ("library", f"{world.get('library', '')}, kernel driver {world.get('kernel driver', '')}"),
        ("host", f"{host['cpu']}, {host['threads']} threads, {host['system']} {host['release']} {host['machine']}"),
        ("quadpy", f"{report['toolchain']}, Python {host['python']}, NumPy {host['numpy']}"),
        *([("ended by", report["lost"])] if report["lost"] else ()),
        ("run", f"{_options(report)}, {report['date']}, {report['seconds']} s"),
        *report["settings"].items(),
    ]


def _options(report: Mapping[str, Any]) -> str:
    """The command line of the run, in short."""
    depth, only = "--quick" if report["quick"] else "--full", "" if report["whole"] else " --only"
    return f"{depth}{only} --device {report['ordinal']} --slow {report['slow']:g}"


def _checks(rows: Iterable[Mapping[str, Any]]) -> str:
    cells = [
        (row["name"], row["proves"], _Raw(f"<span class='{row['status'].replace(' ', '-')}'>{row['status']}</span>"),
         f"{row['seconds']:.2f} s", row["text"] if row["status"] == "skipped" else "")
        for row in rows
    ]  # fmt: skip
    return _table(cells, ("check", "what it proves", "result", "time", ""))


def _figures(row: Mapping[str, Any]) -> str:
    """The figures of a check: numbers in a table, the rest as it is."""
    figures = row["figures"]
    if not figures:
        return ""
    return f"<h3>{_text(row['name'])}</h3>{_table((name, _shown(value)) for name, value in figures.items())}"


def _shown(value: Any) -> str:
    """A number, a group of numbers, or a list of groups with the same names."""
    if isinstance(value, Mapping):
        return _Raw(_table((name, _shown(each)) for name, each in value.items()))
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        return _Raw(_table((tuple(map(_shown, each.values())) for each in value), tuple(value[0])))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class _Raw(str):
    """Text that is HTML already."""

    __slots__ = ()


def _text(text: object) -> str:
    return text if isinstance(text, _Raw) else html.escape(str(text))


def _table(rows: Iterable[tuple[str, ...]], head: tuple[str, ...] = ()) -> str:
    top = f"<tr>{''.join(f'<th>{_text(each)}</th>' for each in head)}</tr>" if head else ""
    return f"<table>{top}{''.join('<tr>' + ''.join(f'<td>{_text(each)}</td>' for each in row) + '</tr>' for row in rows)}</table>"
