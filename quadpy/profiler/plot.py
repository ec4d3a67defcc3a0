"""A profile as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quadpy.core.importing import import_late
from quadpy.errors import QuadpyError
from quadpy.profiler.records import Record
from quadpy.profiler.tracks import tracks_of

_MOST: Final = 10
"""Colours of names; the rest is grey."""


def plot_records(records: Sequence[Record], ax: Any = None) -> Any:
    """Like ``profile.plot``."""
    try:
        plt = import_late("matplotlib.pyplot")
    except ImportError as error:
        hint = "pip install matplotlib; table() and to_chrome() need nothing"
        raise QuadpyError("a profile is plotted with matplotlib, which is not installed", hint=hint) from error
    tracks = tracks_of(records)
    if ax is None:
        _, ax = plt.subplots(figsize=(12, 1 + 0.5 * max(1, len(tracks))), layout="constrained")
    colours: dict[str, Any] = {}
    for name in _longest(records):
        colours[name] = plt.get_cmap("tab10")(len(colours))
    for line, track in enumerate(tracks):
        for record in track.records:
            bars = [(record.start, record.duration)]
            colour = colours.get(record.label, "0.7") if record.on_device else "0.85"
            ax.broken_barh(bars, (line - 0.4, 0.8), facecolors=colour, edgecolor="white", linewidth=0.3)
    ax.set_yticks(range(len(tracks)), [f"{track.device}, {track.name}" for track in tracks])
    ax.invert_yaxis()
    ax.set_xlabel("ms")
    if colours:
        patches = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
        ax.legend(patches, colours, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def _longest(records: Sequence[Record]) -> list[str]:
    """The names that take the most time on devices."""
    totals: dict[str, float] = {}
    for record in records:
        if record.on_device:
            totals[record.label] = totals.get(record.label, 0) + (record.duration or 0)
    return sorted(totals, key=lambda name: -totals[name])[:_MOST]
