"""Writes the programs of the README and the tutorial to a folder, for type checkers: write_pages.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from pages import ROOT, program

FOUND = "        count = x[i]\n"
"""The mistake that the tutorial makes on purpose, which mypy finds."""


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/tutorial/*.md"))):
        text = program(page.read_text(encoding="utf-8")).replace(FOUND, FOUND[:-1] + "  # type: ignore[assignment]\n")
        if text:
            (folder / f"{page.stem.lower().replace('-', '_')}_page.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
