"""Builds the site: what pages print from the code, the entries of the reference, and the inventory of names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
