"""A window in a browser: what its page is sent, and what ends it."""

from __future__ import annotations

import gc
import io
import json
import threading
import urllib.request
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

import quadpy as qp
from quadpy.view import browser

client = pytest.importorskip("websockets.sync.client", reason="windows in a browser need websockets, of the extra view")
exceptions = pytest.importorskip("websockets.exceptions")


class Page:
    """What the script of the page does: it takes frames, and tells what the user does."""

    def __init__(self, connection):
        self.connection = connection

    @classmethod
    @contextmanager
    def opened(cls, url):
        with client.connect(url.replace("http", "ws")) as connection:
            yield cls(connection)

    def frame(self):
        """The next picture."""
        while True:
            message = json.loads(self.connection.recv(timeout=60))
            if message["type"] == "framebufferdata":
                data = self.connection.recv(timeout=60)
                self.tell("_framefeedback", index=message["index"], timestamp=message["timestamp"])
                return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

    def ended(self):
        """Wait until the server closes the connection."""
        with pytest.raises(exceptions.ConnectionClosed):  # noqa: PT012 - any of the messages may be the last
            while True:
                self.connection.recv(timeout=60)

    def tell(self, kind, **more):
        self.connection.send(json.dumps({"type": kind, "timestamp": 0, **more}))


def test_a_page_gets_frames_and_gives_events_until_it_is_closed(graphics, monkeypatch, capsys):
    monkeypatch.setattr(browser, "PATIENCE_S", 0.2)
    window = qp.view.Window("served", (300, 200), background=0x000080, where="browser")
    url = window._surface.url
    assert capsys.readouterr().err.endswith(f"served: open {url} in a browser\n")
    with urllib.request.urlopen(url) as answer:
        html = answer.read().decode()
    assert "<title>served</title>" in html
    assert "width:300px; height:200px" in html
    with pytest.raises(qp.QuadpyError, match="one window in a browser at a time"):
        qp.view.Window(where="browser")

    frames = []

    def user():
        with Page.opened(url) as page:
            page.tell("resize", pwidth=300, pheight=200, ratio=1)
            for _ in range(5):
                frames.append(page.frame())
            page.tell("key_down", key="Escape", modifiers=[])
            frames.extend(page.frame() for _ in range(3))

    thread = threading.Thread(target=user)
    thread.start()
    events = []
    while window.running:
        window.points((0.25, 0.25), radius=20, color=0xFF0000)
        window.show()
        events += window.events()
    thread.join()
    picture = frames[-1].astype(int)
    assert picture.shape == (200, 300, 3)
    assert np.abs(picture[150, 75] - (255, 0, 0)).max() < 20  # a JPEG, while frames come
    assert np.abs(picture[20, 200] - (0, 0, 128)).max() < 20
    assert [(event.kind, event.key) for event in events] == [("press", "Escape")]
    assert repr(window).endswith("closed>")


def test_a_window_may_be_closed_while_pages_are_open(graphics):
    window = qp.view.Window(size=(20, 20), where="browser")
    with window, Page.opened(window._surface.url) as first, Page.opened(window._surface.url) as second:
        first.tell("resize", pwidth=20, pheight=20, ratio=1)
        window.show()
        assert first.frame().ndim == 3
        window.close()
        first.ended()
        second.ended()
    gc.collect()  # what the event loop left behind warns now, which is an error of this test


def test_a_closed_window_that_is_collected_leaves_the_next_one_alone(graphics):
    with qp.view.Window(where="browser"):
        pass
    with qp.view.Window(size=(20, 20), where="browser") as window, Page.opened(window._surface.url) as page:
        page.tell("resize", pwidth=20, pheight=20, ratio=1)
        window.show()
        gc.collect()
        assert page.frame().ndim == 3


def test_a_window_may_be_closed_before_a_page_comes(graphics):
    with qp.view.Window(where="browser") as first:
        pass
    assert not first.running
    first.show()
    with qp.view.Window(where="browser") as second:
        assert second.running


def test_an_error_while_a_frame_is_drawn_reaches_the_program(graphics, monkeypatch):
    with qp.view.Window(size=(20, 20), where="browser") as window:
        monkeypatch.setattr(window, "_draw", lambda: 1 / 0)
        with Page.opened(window._surface.url), pytest.raises(ZeroDivisionError):
            window.show()
