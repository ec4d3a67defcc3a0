"""The marks of ``marks`` as an extension of Python-Markdown, with which Zensical builds the site."""

from __future__ import annotations

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

from tools.docs.marks import printed


class _Marks(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        return printed("\n".join(lines)).split("\n")


class MarksExtension(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name that Python-Markdown calls
        md.preprocessors.register(_Marks(md), "marks", priority=40)  # before fenced code is taken out, at 25


def makeExtension(**options: object) -> MarksExtension:  # noqa: N802 - the name that Python-Markdown calls
    return MarksExtension(**options)
