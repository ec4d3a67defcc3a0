"""Taichi's windows on a display."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import quadpy as qp
import quadpy.compat.taichi as ti
from quadpy import settings
from quadpy.runtime.device.current import current_config, set_config


@pytest.fixture(autouse=True)
def cpu():
    before = current_config()
    ti.init(arch=ti.cpu)
    yield
    set_config(before)


def count(pixels, color):
    return int((np.abs(pixels.astype(int) - color) <= 2).all(axis=2).sum())


def push_the_button_that_closes(gui):
    import glfw

    glfw.set_window_should_close(gui._frames.window.canvas._window, True)


def test_a_gui_is_shown_until_the_user_closes_it(display):
    gui = ti.GUI("shown", res=(300, 200), background_color=0x000040)
    image = ti.field(ti.f32, shape=(300, 200))
    while gui.running:
        assert gui.frame < 10
        image[0, 0] = 0
        if gui.frame == 0:
            gui.set_image(image)
            gui.circle((0.25, 0.25), color=0xFF0000, radius=20)
            gui.triangle((0.5, 0.5), (0.9, 0.5), (0.9, 0.9), color=0x00FF00)
            gui.line((0, 0.95), (1, 0.95), radius=4, color=0x0000FF)
            gui.show()
            pixels = display()
            assert count(pixels, (255, 0, 0)) == pytest.approx(np.pi * 20**2, rel=0.1)
            assert count(pixels, (0, 255, 0)) == pytest.approx(0.08 * 300 * 200, rel=0.05)
            assert count(pixels, (0, 0, 255)) == pytest.approx(4 * 300, rel=0.05)
        else:
            gui.show()
            assert gui.frame == 3 or count(display(), (0, 0, 64)) == 300 * 200, "a frame begins with the background"
            if gui.running:
                push_the_button_that_closes(gui)
    assert gui.frame == 3
    with pytest.raises(SystemExit):
        gui.show()


def test_a_scene_is_shown_with_depth_and_light(display):
    window = ti.ui.Window("space", (300, 200))
    scene, camera = window.get_scene(), ti.ui.Camera()
    camera.position(0, 0, 5)
    camera.lookat(0, 0, 0)
    scene.set_camera(camera)
    scene.ambient_light((0.3, 0.3, 0.3))
    scene.point_light((0, 0, 5), (1, 1, 1))
    scene.particles(np.array([[0, 0, 1.0]]), 0.3, color=(1, 0, 0))
    scene.mesh(np.array([[-2, -1, -1], [2, -1, -1], [0, 2, -1.0]]), color=(0, 1, 0))
    scene.lines(np.array([[-2, 1.5, 0], [2, 1.5, 0]]), width=3, color=(0, 0, 1))
    window.get_canvas().set_background_color((0.0, 0.0, 0.25))
    window.get_canvas().scene(scene)
    window.show()
    pixels = display().astype(int)
    shown = pixels[(pixels != 0).any(axis=2)].reshape(-1, 3)
    assert ((shown[:, 0] > 100) & (shown[:, 1] < 50)).sum() == pytest.approx(np.pi * (0.3 * 241 / 4) ** 2, rel=0.25)
    assert ((shown[:, 1] > 100) & (shown[:, 0] < 50)).sum() > 2000
    assert ((shown[:, 2] > 200) & (shown[:, 0] < 50)).sum() > 300
    assert count(display(), (0, 0, 63)) > 20_000
    window.destroy()
    assert not window.running


def test_events_have_taichis_names(display):
    gui = ti.GUI("events", res=100)
    gui.show()
    submit = gui._frames.window.canvas.submit_event
    nothing = {"modifiers": ()}
    for key in "ArrowUp", "A", "Escape":
        submit({"event_type": "key_down", "key": key, **nothing})
    submit({"event_type": "pointer_down", "button": 2, "x": 25, "y": 25, **nothing})
    submit({"event_type": "wheel", "dx": 0, "dy": 120, "x": 25, "y": 25, **nothing})
    submit({"event_type": "key_up", "key": "A", **nothing})
    assert gui.has_key_event()
    assert gui.get_event(ti.GUI.PRESS)
    assert (gui.event.type, gui.event.key) == (gui.PRESS, ti.GUI.UP)
    assert gui.is_pressed(ti.GUI.UP, ti.GUI.DOWN)
    assert gui.get_event((ti.GUI.PRESS, "a"))
    assert gui.get_key_event().key == ti.GUI.ESCAPE
    button, wheel, release = gui.get_events()
    assert (button.key, button.pos) == (ti.GUI.RMB, (0.25, 0.75))
    assert (wheel.type, wheel.key, wheel.delta) == (ti.GUI.MOTION, ti.GUI.WHEEL, (0, -120))
    assert (release.type, release.key) == (ti.GUI.RELEASE, "a")
    assert gui.is_pressed(ti.GUI.RMB)
    assert not gui.is_pressed("a")
    assert gui.get_cursor_pos() == (0.25, 0.75)
    assert not gui.get_event()
    gui.close()
    assert gui.get_key_event() is None


@pytest.mark.parametrize("option", ["show_gui", "QUADPY_FRAMES"])
def test_a_gui_may_stay_hidden_where_there_is_a_display(option, display, monkeypatch, tmp_path):
    if option == "show_gui":
        gui = ti.GUI("hidden", res=10, show_gui=False)
    else:
        monkeypatch.setattr("quadpy.compat._frames.settings", lambda: settings.Settings(frames=tmp_path))
        gui = ti.GUI("hidden", res=10)
    assert gui._frames.window is None
    while gui.running:
        gui.show()
    assert gui.frame == 100


def test_a_limit_holds_on_a_display_too(display, monkeypatch):
    monkeypatch.setattr("quadpy.compat._frames.settings", lambda: settings.Settings(frame_limit=2))
    gui = ti.GUI("short", res=50)
    while gui.running:
        gui.show()
    assert gui.frame == 2


def test_on_a_display_without_the_extra_the_error_names_it(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygfx", None)
    with pytest.raises(qp.QuadpyError, match=r"(?s)pygfx.*pip install 'quadpy-lang\[view\]'"):
        ti.GUI("nowhere", res=10)


def test_imshow_shows_an_image_until_its_window_is_closed(display, monkeypatch):
    import glfw

    shown, show = [], qp.view.Window.show

    def show_and_look(window):
        show(window)
        if window.running:
            shown.append(display())
            glfw.set_window_should_close(window.canvas._window, True)

    monkeypatch.setattr(qp.view.Window, "show", show_and_look)
    ti.tools.imshow(np.full((240, 210, 3), (255, 128, 0), np.uint8))
    assert count(shown[0], (255, 128, 0)) == 240 * 210
