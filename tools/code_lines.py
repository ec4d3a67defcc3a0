"""Counts the lines of code in a folder, without blank lines, comments and docstrings.

python tools/code_lines.py quadpy                    each subfolder, and all together
python tools/code_lines.py quadpy --at-most 56000    fails if there are more
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--at-most", type=int, help="fail if the folder has more lines of code")
    options = parser.parse_args()
    counts = counted(options.folder)
    for part, lines in counts.most_common():
        print(f"{lines:7,}  {part}")
    print(f"{counts.total():7,}  together")
    if options.at_most is not None and counts.total() > options.at_most:
        print(f"{options.folder} may have at most {options.at_most:,} lines of code", file=sys.stderr)
        return 1
    return 0


def counted(folder: Path) -> Counter[str]:
    """The lines of code of each subfolder of ``folder``; modules in ``folder`` itself count as ``.``."""
    counts = Counter[str]()
    for file in folder.rglob("*.py"):
        first, *rest = file.relative_to(folder).parts
        counts[first if rest else "."] += code_lines(file.read_text(encoding="utf-8"))
    return counts


def code_lines(text: str) -> int:
    """Lines that are neither blank, comment nor docstring."""
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            match node.body[:1]:
                case [ast.Expr(value=ast.Constant(value=str())) as first]:
                    documentation.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
                case _:
                    pass
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documentation)


if __name__ == "__main__":
    sys.exit(main())
