"""Command lines: the error for a misspelled command, option or choice suggests the right one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from quadpy.core.messages import closest


class Parser(argparse.ArgumentParser):
    """An ``ArgumentParser`` with suggestions; its commands are parsers of the same kind."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.set_defaults(parser=self)  # the command's, where there is one

    def parse_whole(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Like ``parse_args``; the command's own parser refuses an option that it does not have."""
        args, rest = self.parse_known_args(arguments)
        if rest:
            args.parser.refuse(rest)
        return args

    def refuse(self, rest: Sequence[str]) -> NoReturn:
        """Exit with a message about unknown arguments."""
        known = [option for action in self._actions for option in action.option_strings]
        meant = _meant((text.partition("=")[0] for text in rest), known)
        self.error(f"unrecognized arguments: {' '.join(rest)}{meant}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += _meant([str(value)], map(str, action.choices or ()))
            raise


def _meant(texts: Iterable[str], known: Iterable[str]) -> str:
    names = list(known)
    found = list(filter(None, (closest(text, names) for text in texts if text)))
    return f"; {found[0]}" if found else ""
