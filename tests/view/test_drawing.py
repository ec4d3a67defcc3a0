"""Scenes in windows without a display: colours at places that are known."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

W, H = 200, 100
RED, GREEN, BLUE, WHITE, GRAY = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (128, 128, 128)


@pytest.fixture(scope="module")
def window(graphics):
    with qp.view.Window(size=(W, H), background=0x102030, where="memory") as window:
        yield window


def at(window, *places):
    """The colours at places from (0, 0) at the lower left to (1, 1), in the picture of one more frame."""
    window.show()
    picture = window.picture()
    assert picture.shape == (H, W, 3)
    return [tuple(picture[round((1 - y) * H - 0.5), round(x * W - 0.5)].tolist()) for x, y in places]


def near(found, *expected):
    return len(found) == len(expected) and np.abs(np.array(found) - expected).max() <= 2


def test_an_empty_frame_has_the_background(window):
    assert near(at(window, (0.1, 0.1), (0.9, 0.9)), (16, 32, 48), (16, 32, 48))


def test_an_image_is_seen_as_its_axes_say_and_changes_with_its_field(window):
    field = qp.field(qp.f32, (4, 2))

    @qp.kernel
    def corner(level: qp.f32):
        for i, j in field:
            field[i, j] = 0
        field[3, 0] = level

    for level, color in (0.5, GRAY), (1.0, WHITE):
        corner(level)
        window.image(field)
        assert near(at(window, (0.9, 0.2), (0.9, 0.8), (0.1, 0.2)), color, (0, 0, 0), (0, 0, 0))

    rows = np.zeros((2, 4, 3), np.uint8)
    rows[0, 3], rows[1, 0] = RED, BLUE
    window.image(rows, axes="rows")
    assert near(at(window, (0.9, 0.8), (0.1, 0.2), (0.9, 0.2)), RED, BLUE, (0, 0, 0))


@pytest.mark.parametrize(
    "image",
    [
        np.full((2, 2), 0xFF0000, np.int32),
        np.full((2, 2, 3), RED, np.uint8),
        np.full((2, 2, 3), (1.0, 0.0, 0.0)),
        np.full((2, 2, 4), (1, 0, 0, 1), np.float32),
        np.full((2, 2, 2), (1, 0), np.float32),
    ],
    ids=["packed", "bytes", "doubles", "opacity", "two channels"],
)
def test_every_form_of_colours_is_an_image(window, image):
    window.image(image)
    assert near(at(window, (0.5, 0.5)), RED)


def test_colormaps_and_limits(window):
    window.image(np.array([[-3.0], [5.0]]), colormap="gray", limits=(-3, 5))
    assert near(at(window, (0.2, 0.5), (0.8, 0.5)), (0, 0, 0), WHITE)
    window.image(np.array([[0], [64]], np.uint8), limits=(0, 0.25))
    assert near(at(window, (0.2, 0.5), (0.8, 0.5)), (0, 0, 0), WHITE)


def test_points_have_their_places_sizes_and_colours(window):
    centers = np.array([[0.25, 0.5], [0.75, 0.5]])
    window.points(centers, radius=[20, 5], color=[RED, BLUE] / np.float64(255))
    places = (0.25, 0.5), (0.25, 0.65), (0.75, 0.5), (0.75, 0.65)
    background = (16, 32, 48)
    assert near(at(window, *places), RED, RED, BLUE, background)
    window.points(centers, radius=20, color=np.array([0x00FF00, 0xFFFFFF]))
    assert near(at(window, *places), GREEN, GREEN, WHITE, WHITE)
    window.points((0.25, 0.5), radius=20, color=0xFF0000)  # one alone
    assert near(at(window, *places), RED, RED, background, background)
    window.points(np.zeros((0, 2)))
    assert near(at(window, (0.1, 0.1)), background)


def test_lines_meshes_and_text_cover_each_other_in_the_order_of_calls(window):
    square = np.array([[0.2, 0.2], [0.8, 0.2], [0.8, 0.8], [0.2, 0.8]], np.float32)
    window.mesh(square, [[0, 1, 2], [0, 2, 3]], color=0x00FF00)
    window.lines(square, [[0, 1], [2, 3]], width=10, color=0xFF0000)
    window.mesh([[0.4, 0.1], [0.6, 0.1], [0.5, 0.4]], color=0x0000FF)
    assert near(at(window, (0.5, 0.6), (0.3, 0.2), (0.7, 0.8), (0.5, 0.2)), GREEN, RED, RED, BLUE)
    window.text("████", (0.1, 0.9), size=40, color=0xFF0000)
    assert (window.show(), (window.picture() == RED).all(axis=2).sum())[1] > 400


def test_things_in_space_hide_each_other_whatever_is_drawn_first(window):
    window.camera((0, 0, 5))
    near_one, far_one = np.array([[0, 0, 1]], np.float32), np.array([[0, 0, -1]], np.float32)
    window.points(near_one, radius=0.4, color=0xFF0000)
    window.points(far_one, radius=1.0, color=0x00FF00)
    middle, rim = at(window, (0.5, 0.5), (0.575, 0.5))
    assert near([middle], RED)
    assert rim[1] > 100 > rim[0]


def test_a_camera_sees_x_to_the_right_and_the_given_direction_upwards(window):
    axes = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
    for up, places in ((0, 1, 0), [(0.6, 0.5), (0.5, 0.75)]), ((1, 0, 0), [(0.5, 0.75), (0.4, 0.5)]):
        window.camera((0, 0, 5), up=up)
        window.points(axes, radius=0.3, color=[(1, 0, 0), (0, 0, 1)])
        right, upwards = at(window, *places)
        assert right[0] > 100 > right[2]
        assert upwards[2] > 100 > upwards[0]


def test_a_mesh_is_lit_and_flat_things_may_lie_over_and_under_it(window):
    window.camera((0, 0, 5))
    window.image(np.full((1, 1, 3), BLUE, np.uint8))
    window.mesh(np.array([[-1, -1, 0], [1, -1, 0], [0, 1, 0]], np.float32), color=0xFF0000)
    window.points((0.5, 0.5), radius=5, color=0xFFFFFF)
    under, mesh, over = at(window, (0.1, 0.5), (0.5, 0.35), (0.5, 0.5))
    assert near([under, over], BLUE, WHITE)
    assert mesh[0] > 100 > mesh[1] + mesh[2]


def test_float32_on_the_host_is_uploaded_from_the_memory_of_the_field(window):
    positions = qp.field(qp.types.vector(3, qp.f32), 1000)
    colors = qp.ndarray(qp.types.vector(3, qp.f32), 1000)
    image = qp.field(qp.f32, (32, 16))
    window.image(image)
    window.points(positions, color=colors)
    window.show()
    pixels, buffers = (layer._drawn[0].resources for layer in window._layers)
    assert np.shares_memory(pixels["pixels"].data, image.to_numpy(copy=False))
    assert np.shares_memory(buffers["positions"].data, positions.to_numpy(copy=False))
    assert np.shares_memory(buffers["colors"].data, colors.to_numpy(copy=False))


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda w: w.points(np.zeros((3, 4))), r"positions have 2 or 3 coordinates, but these have the shape \(3, 4\)"),
        (lambda w: w.points(np.zeros((3, 2)), color=np.zeros((2, 3))), "neither one colour nor 3 colours"),
        (lambda w: w.points(np.zeros((3, 2)), radius=[1, 2]), "2 radii for 3 points"),
        (lambda w: w.points([["a", "b"]]), "positions must be numbers"),
        (lambda w: w.lines(np.zeros((3, 2))), "3 corners are not a whole number of shapes with 2 corners"),
        (lambda w: w.mesh(np.zeros((3, 2)), [0, 1, 3]), "there are 3 vertices, but the indices range from 0 to 3"),
        (lambda w: w.mesh(np.zeros((3, 2)), [0.0, 1, 2]), "indices must be integers"),
        (lambda w: w.mesh(np.zeros((3, 3)), normals=np.zeros((2, 3))), "2 normals for 3 vertices"),
        (lambda w: w.image(np.zeros(3)), "an image has two axes"),
        (lambda w: w.image(np.zeros((3, 0))), "an image has two axes"),
        (lambda w: w.image(np.zeros((3, 3)), axes="yx"), "axes='yx' are not axes of an image.*'rows'"),
        (lambda w: w.image(np.zeros((3, 3)), colormap="virids"), "there is no colormap 'virids'"),
        (lambda w: w.image(np.zeros((3, 3, 3)), colormap="gray"), "a colormap is for an image of numbers"),
        (lambda w: w.camera((0, 0, 0), (0, 0, 0)), "a camera takes a position and a point to look at"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_that_says_why(window, draw, says):
    with pytest.raises(qp.ArgumentError, match=f"(?s){says}"):
        draw(window)
    window.show()
