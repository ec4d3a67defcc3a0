"""``qp.profiler``: what a program does on its devices, and how long each piece of work takes."""

from quadpy.profiler.profile import profile
from quadpy.profiler.ranges import range  # noqa: A004 - its name, which is written ``qp.profiler.range``
from quadpy.profiler.records import Record

__all__ = ["Record", "profile", "range"]
