"""Output of one of several ranks; each line begins with the rank's number."""

from __future__ import annotations

import io
from typing import Any, TextIO

__all__ = ["LabelledLines"]


class LabelledLines(io.TextIOBase):
    """Writes each line whole, with a label before it, so that lines of several ranks do not mix.

    All other attributes, such as ``buffer``, are those of the stream.
    """

    def __init__(self, stream: TextIO, label: str) -> None:
        super().__init__()
        self._stream, self._label, self._begun = stream, label, ""

    def __getattr__(self, name: str) -> Any:
        if name == "_stream":  # before ``__init__``
            raise AttributeError(name)
        return getattr(self._stream, name)

    @property
    def encoding(self) -> str:  # type: ignore[override]  # io.TextIOBase declares a variable
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]  # io.TextIOBase declares a variable
        return self._stream.errors

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        *lines, begun = (self._begun + text).split("\n")
        over, _, last = begun.rpartition("\r")
        self._begun = last if over and last else begun  # a progress bar writes over its line, again and again
        if lines:
            self._stream.write("".join(f"{self._label}{line}\n" for line in lines))
            self._stream.flush()
        return len(text)

    def flush(self) -> None:
        """Write the whole lines that ``write`` has collected; an unfinished line waits for its end."""

    def finish(self) -> None:
        """Write the last line, even without its end."""
        if self._begun:
            self.write("\n")
