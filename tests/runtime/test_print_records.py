"""From the words of a ring to text, whatever order devices wrote them in."""

from __future__ import annotations

import random
import struct

import pytest

from quadpy.core.forms import Fixed, Items, Members, Number, Numbers
from quadpy.core.output import HEADER_WORDS, Field, Message
from quadpy.runtime.printing.records import Header, learn, output_of

INT = Number("int")
SERIAL = Message(("serial ", Field(INT), "\n"))
BEGINS = Message((), 1, begins=True)
LINE = Message((Field(INT), "-", Field(INT, "", "03d"), "\n"), 1)
OTHER_BEGINS = Message((), 2, begins=True)
OTHER = Message(("other\n",), 2, flush=True)
learn(message.text for message in (SERIAL, BEGINS, LINE, OTHER_BEGINS, OTHER))


def text(*records, lost=0, capacity=1000):
    words = [word for message, *values in records for word in (message.key, *(v % (1 << 64) for v in values))]
    header = Header.of([len(words), lost, capacity, *[0] * (HEADER_WORDS - 3)])
    return output_of(header, words[: header.used])


def test_nothing():
    assert text() == ("", False)


def test_runs_of_loops_are_sorted_and_stay_apart():
    rng = random.Random(1)
    first = [(LINE, k + 5, k, n) for k in range(-5, 5) for n in range(2)]
    mixed = sorted(first, key=lambda record: (record[3], rng.random()))  # each iteration in its order
    second = [(LINE, 1, 1, 7), (LINE, 0, 0, 7)]
    found = text((SERIAL, 1), (BEGINS,), *mixed, (SERIAL, -2), (BEGINS,), *second)
    lines = [f"{k}-{n:03d}" for k in range(-5, 5) for n in range(2)]
    assert found.text.splitlines() == ["serial 1", *lines, "serial -2", "0-007", "1-007"]


def test_branches_write_in_turns():
    found = text((BEGINS,), (OTHER_BEGINS,), (OTHER, 0), (LINE, 1, 1, 1), (OTHER, 1), (LINE, 0, 0, 1))
    assert found == ("0-001\n1-001\nother\nother\n", True)


def test_a_loop_whose_beginning_was_not_launched():
    assert text((LINE, 2, 2, 2), (LINE, 1, 1, 1)).text == "1-001\n2-002\n"


@pytest.mark.parametrize(("lost", "line"), [(1, "1 line lost"), (12345, "12,345 lines lost")])
def test_what_was_lost(lost, line):
    assert text((SERIAL, 1), lost=lost).text == f"serial 1\n… {line}; raise print_buffer, which is 8,000 bytes\n"


def test_the_record_that_the_end_cut_is_the_last():
    header = Header.of([900, 3, 5, *[0] * 5])
    assert header.used == 5
    found = output_of(header, [SERIAL.key, 1, SERIAL.key, 2, 0])
    assert found.text.splitlines()[:2] == ["serial 1", "serial 2"]


def bits(value, code):
    return struct.unpack("<Q", struct.pack(code, value).ljust(8, b"\0"))[0]


@pytest.mark.parametrize(("form", "words", "shown"), [
    (Number("int"), [2**64 - 1], "-1"),
    (Number("uint"), [2**64 - 1], str(2**64 - 1)),
    (Number("bool"), [1], "True"),
    (Number("single"), [bits(0.5, "<f")], "0.5"),
    (Number("double"), [bits(0.1, "<d")], "0.1"),
    (Numbers(Number("single"), (2,)), [bits(1.0, "<f"), bits(2.5, "<f")], "[1.0, 2.5]"),
    (Numbers(INT, (2, 2)), [1, 2, 3, 4], "[[1, 2], [3, 4]]"),
    (Members((("a", INT), ("v", Numbers(INT, (2,))), ("s", Members((("b", Number("bool")),))))), [1, 2, 3, 0],
     "struct(a=1, v=[2, 3], s=struct(b=False))"),
    (Items(True, (INT, Fixed("'x'"), Items(False, (INT,)))), [1, 2], "(1, 'x', [2])"),
    (Items(True, (INT,)), [1], "(1,)"),
])  # fmt: skip
def test_every_form_comes_back(form, words, shown):
    message = Message(("<", Field(form), ">\n"))
    assert Message.from_text(message.text) == message
    assert Message.from_text(message.text).key == message.key
    assert message.count == len(words)
    learn([message.text])
    words = [message.key, *words]
    header = Header.of([len(words), 0, 100, *[0] * 5])
    assert output_of(header, words).text == f"<{shown}>\n"


def test_keys_tell_messages_apart():
    messages = [
        Message(("a",)), Message(("b",)), Message(("a",), 1), Message(("a",), 2), Message(("a",), flush=True),
        Message((Field(INT),)), Message((Field(INT, "r"),)), Message((Field(INT, "", "d"),)),
        Message((Field(INT, "", "%d", "percent"),)), Message((Field(Number("uint")),)), Message((), 1, begins=True),
    ]  # fmt: skip
    assert len({message.key for message in messages}) == len(messages)
    assert all(0 < message.key < 1 << 64 for message in messages)
