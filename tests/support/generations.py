"""Processors whose code is that of another of their generation: compiled for under ``pytest --every-processor`` only."""

from __future__ import annotations

_ALIKE = {f"{name}{wave}" for name in ("gfx1101", "gfx1102", "gfx1103", "gfx1151", "gfx1152", "gfx1153", "gfx1200")
          for wave in ("", ":w64")} | {"sm_72", "sm_86", "sm_87", "sm_89", "sm_90a", "sm_100a", "sm_103", "sm_121"}  # fmt: skip


def chosen(config, targets):
    """Of ``targets``, those for which this run compiles."""
    return [t for t in targets if t not in _ALIKE or config.getoption("--every-processor")]
