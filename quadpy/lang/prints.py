"""``print`` in kernels."""

from __future__ import annotations

from collections.abc import Sequence

from quadpy.core.output import Message
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.context import Trace
from quadpy.lang.hidden import hidden_argument
from quadpy.lang.texts import text_of, words_of
from quadpy.lang.values import Text, TextField, Value, shape_text


def print_values(t: Trace, args: Sequence[Value], kwargs: dict[str, Value], span: Span) -> None:
    r"""``print(*args, sep=" ", end="\n", flush=False)``."""
    sep, end, flush = (kwargs.pop(name, default) for name, default in (("sep", None), ("end", None), ("flush", False)))
    if kwargs:
        t.fail_type(
            f"print in a kernel takes no {next(iter(kwargs))}=",
            span,
            "it takes sep=, end= and flush=; its text goes to sys.stdout",
        )
    between, last = _constant(t, "sep", sep, " ", span), _constant(t, "end", end, "\n", span)
    if not isinstance(flush, (bool, int)):
        t.fail_type(f"flush must be True or False at compile time, not {shape_text(flush)}", span)
    parts: list[str | TextField] = []
    for number, arg in enumerate(args):
        text = text_of(t, arg, span)
        parts += [between] * (number > 0)
        parts += text.parts if isinstance(text, Text) else [text]
    _emit(t, Text((*parts, last)), flush=bool(flush), span=span)


def _constant(t: Trace, name: str, value: Value, default: str, span: Span) -> str:
    if value is None:
        return default
    if not isinstance(value, str):
        t.fail_type(f"{name} must be a string that is known at compile time, not {shape_text(value)}", span)
    return value


def _emit(t: Trace, text: Text, *, flush: bool, span: Span) -> None:
    parts, words = words_of(text)
    ring, loop = hidden_argument(t, "print", span), 0
    if t.loop is not None:
        if not t.loop.prints:
            t.prints += 1
            t.loop.prints = t.prints
        loop = t.loop.prints
        words = (t.loop.order(), *words)
    t.build.emit(ir.Print(ring, Message(parts, loop, flush=flush), tuple(words), span=span))


def loop_begins(t: Trace, loop: int, span: Span) -> None:
    """Records, before parallel loop number ``loop``, that its output follows."""
    t.build.emit(ir.Print(hidden_argument(t, "print", span), Message((), loop, begins=True), (), span=span))
