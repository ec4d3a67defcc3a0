"""Windows in a browser, on this machine or another one: a page that a server in this process sends frames to."""

from __future__ import annotations

import asyncio
import html
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import wait
from typing import Any, Final, TypeVar

from quadpy.errors import QuadpyError
from quadpy.view.library import drawn, library

__all__ = ["Browser"]

T = TypeVar("T")

PORT: Final = 8421
"""The port of the server if it is free."""
PATIENCE_S: Final = 3.0
"""How long a window without a page stays open, so that the page can be loaded again."""

_PAGE: Final = """<!DOCTYPE html>
<html>
<head>
    <title>{title}</title>
    <script type='module' src='renderview.js'></script>
    <script type='module' src='renderview-client.js'></script>
    <link rel='stylesheet' href='renderview.css'>
    <style>body {{ margin: 0 }} #status {{ display: none }}</style>
</head>
<body>
    <div id='canvas' class='renderview-wrapper' style='width:{width}px; height:{height}px'></div>
    <div id='status'></div>
</body>
</html>
"""


class Browser:
    """A page for one window at a time; the server and the canvas belong to a thread with an event loop."""

    on_screen = True

    def __init__(self, title: str, size: tuple[int, int]) -> None:
        self._http, uvicorn = library("rendercanvas.http"), library("uvicorn")
        library("websockets")  # without which the server would take no connections of pages
        if [canvas for canvas in self._http.loop.get_canvases() if not canvas.get_closed()]:
            raise QuadpyError("there can be only one window in a browser at a time", hint="close the other one")
        page = _PAGE.format(title=html.escape(title), width=size[0], height=size[1])
        self._http.resources["index.html"] = "text/html", page
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="quadpy.view", daemon=True)
        self._thread.start()
        self._seen: float | None = None
        self.canvas = self._run(self._make_canvas(title, size))
        self._listening = _socket()
        self.url = f"http://localhost:{self._listening.getsockname()[1]}"
        self._server = uvicorn.Server(
            uvicorn.Config(self._http.asgi, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        )
        self._served = asyncio.run_coroutine_threadsafe(self._server.serve(sockets=[self._listening]), self._loop)
        sys.stderr.write(f"{title}: open {self.url} in a browser\n")

    def handle_events(self) -> None:
        """Close a window whose page is gone; the canvas handles events by itself."""
        now = time.monotonic()
        if self._http.asgi.get_count():
            self._seen = now
        elif self._seen is not None and now - self._seen > PATIENCE_S:
            self.close()

    def draw(self, frame: Callable[[], None]) -> None:
        """Draw and send ``frame``; the first one waits for a page."""
        while self._seen is None and not self.canvas.get_closed():
            time.sleep(0.02)
            self.handle_events()

        async def send() -> list[BaseException]:
            return drawn(self.canvas, frame)

        if raised := self._run(send()):
            raise raised[0]

    def close(self) -> None:
        """Close the canvas, and end the server."""

        async def close() -> None:
            self.canvas.close()

        if not self.canvas.get_closed():
            self._server.should_exit = True
            wait([self._served])  # first: rendercanvas abandons a coroutine for each page that is still connected
            self._run(close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_S)

    def _serve(self) -> None:
        """Run the loop until ``close``, and then end the remaining tasks."""
        self._loop.run_forever()

        async def ended(left: set[asyncio.Task[Any]]) -> None:
            await asyncio.gather(*left, return_exceptions=True)

        while left := asyncio.all_tasks(self._loop):  # tasks that end may start others
            for task in left:
                task.cancel()
            self._loop.run_until_complete(ended(left))
        self._listening.close()
        self._loop.close()

    async def _make_canvas(self, title: str, size: tuple[int, int]) -> Any:
        base: Any = self._http.HttpRenderCanvas

        class Canvas(base):  # type: ignore[misc]  # a base of an optional library
            def close(self) -> None:
                """Close once: rendercanvas closes again in ``__del__``, and so the pages of the next window."""
                if not self.get_closed():
                    super().close()

        return Canvas(title=title, size=size, update_mode="manual")

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _socket() -> socket.socket:
    """A socket that listens on this machine only, to be reached from others through ``ssh -L``."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("localhost", PORT))
    except OSError:
        found.bind(("localhost", 0))
    found.listen()  # a page that is opened before the server runs waits for it
    return found
