"""Windows on a display, what ends them, and what is said where there can be none."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import quadpy as qp
from quadpy import settings


def test_a_window_on_the_display_shows_its_frames_until_it_is_closed(display):
    import glfw

    window = qp.view.Window("on the screen", (300, 200), background=0x000080)
    image = np.zeros((300, 200, 3), np.float32)
    shown = 0
    while window.running:
        image[:150, :] = (1, 0, 0)
        window.image(image)
        window.points((0.75, 0.75), radius=20, color=0x00FF00)
        window.show()
        shown += 1
        if shown == 3:
            pixels = display()
            assert (pixels == (255, 0, 0)).all(axis=2).sum() == pytest.approx(150 * 200, rel=0.02)
            assert (pixels == (0, 255, 0)).all(axis=2).sum() == pytest.approx(np.pi * 20**2, rel=0.1)
            glfw.set_window_should_close(window.canvas._window, True)  # as the button of its bar does
        assert shown < 10
    assert shown == 4
    assert repr(window) == "<quadpy.view.Window, 300 x 200 pixels, closed>"
    window.show()  # of no effect
    assert not (display() == (255, 0, 0)).all(axis=2).any()


def test_keys_buttons_and_the_pointer(graphics):
    with qp.view.Window(size=(100, 50), where="memory") as window:
        submit = window.canvas.submit_event
        submit({"event_type": "key_down", "key": "ArrowUp", "modifiers": ("Shift",)})
        submit({"event_type": "pointer_down", "button": 1, "x": 25, "y": 10, "modifiers": ()})
        submit({"event_type": "wheel", "dx": 0, "dy": -100, "x": 25, "y": 10, "modifiers": ()})
        window.show()
        up, click, wheel = window.events()
        assert (up.kind, up.key, up.modifiers) == ("press", "ArrowUp", ("Shift",))
        assert (click.kind, click.key, click.position) == ("press", "left", (0.25, 0.8))
        assert (wheel.kind, wheel.delta) == ("wheel", (0, -100))
        assert window.events() == []
        assert window.pressed("ArrowUp")
        assert window.pressed("left")
        assert window.pointer == (0.25, 0.8)
        submit({"event_type": "key_up", "key": "ArrowUp", "modifiers": ()})
        window.show()
        assert [event.kind for event in window.events()] == ["release"]
        assert not window.pressed("ArrowUp")
    assert not window.running


def test_an_error_while_a_frame_is_drawn_reaches_the_program(graphics, monkeypatch):
    with qp.view.Window(size=(20, 20), where="memory") as window:
        monkeypatch.setattr(window, "_draw", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            window.show()


def test_there_is_no_picture_before_the_first_frame(graphics):
    with qp.view.Window(size=(20, 20), where="memory") as window, pytest.raises(qp.QuadpyError, match="show"):
        window.picture()


def test_without_a_display_the_error_says_what_else_there_is(graphics):
    with pytest.raises(qp.QuadpyError, match=r"(?s)there is no display.*QUADPY_VIEW=memory"):
        qp.view.Window()
    with pytest.raises(qp.ArgumentError, match=r"(?s)where='paper'.*'screen', 'browser' or 'memory'"):
        qp.view.Window(where="paper")


def test_the_setting_says_where_windows_are(graphics, monkeypatch):
    monkeypatch.setenv("QUADPY_VIEW", "memory")
    settings.settings.cache_clear()
    with qp.view.Window(size=(20, 20)) as window:
        window.show()
        assert window.picture().shape == (20, 20, 3)


@pytest.mark.parametrize("module", ["pygfx", "rendercanvas.offscreen"])
def test_a_missing_library_is_an_error_that_names_the_extra(module, monkeypatch):
    if module != "pygfx":
        pytest.importorskip("pygfx", reason="without pygfx, the error names pygfx")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(qp.QuadpyError, match=rf"(?s){module}.*pip install 'quadpy-lang\[view\]'"):
        qp.view.Window(where="memory")
