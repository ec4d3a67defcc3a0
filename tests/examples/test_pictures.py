"""Examples whose result is known at each point: the game of life, the Mandelbrot set, the filters."""

import numpy as np
import pytest

import quadpy as qp
from quadpy.examples import game_of_life, image_filter, mandelbrot


def life_by_numpy(cells):
    around = sum(
        np.roll(cells, (di, dj), (0, 1)) for di in (-1, 0, 1) for dj in (-1, 0, 1) if (di, dj) != (0, 0)
    )  # fmt: skip
    return ((around == 3) | ((cells == 1) & (around == 2))).astype(np.uint8)


def board(rows, size=12):
    cells = np.zeros((size, size), np.uint8)
    for i, row in enumerate(rows):
        cells[i + 1, 1 : 1 + len(row)] = [c == "#" for c in row]
    return cells


def after(cells, generations):
    life = game_of_life.Life(cells)
    for _ in range(generations):
        life.step()
    return life.cells


def test_a_glider_moves_by_one_cell_in_four_generations():
    glider = board([".#.", "..#", "###"])
    np.testing.assert_array_equal(after(glider, 4), np.roll(glider, (1, 1), (0, 1)))
    np.testing.assert_array_equal(after(glider, 4 * 12), glider)  # once around the torus


def test_a_blinker_turns_and_a_block_stays():
    blinker = board(["###"])
    np.testing.assert_array_equal(after(blinker, 1), np.roll(blinker.T, (-1, 1), (0, 1)))
    np.testing.assert_array_equal(after(blinker, 2), blinker)
    block = board(["##", "##"])
    np.testing.assert_array_equal(after(block, 5), block)


def test_soup_lives_by_the_rules():
    cells = (np.random.default_rng(0).random((17, 23)) < 0.4).astype(np.uint8)
    expected = cells
    for _ in range(10):
        expected = life_by_numpy(expected)
    np.testing.assert_array_equal(after(cells, 10), expected)


def test_a_dead_cell_cools():
    life = game_of_life.Life(board(["#"]))
    life.step()
    life.step()
    assert life.glow[1, 1] == pytest.approx(game_of_life.cooling**2)
    assert not life.cells.any()


@qp.kernel
def potentials(
    points: qp.types.ndarray(dtype=qp.types.vector(2, qp.f64), ndim=1),
    limit: qp.i32,
    found: qp.types.ndarray(dtype=qp.f32, ndim=1),
) -> None:
    for p in points:
        found[p] = mandelbrot.potential(points[p].x, points[p].y, limit)


def potential_of(points, limit=500):
    found = np.empty(len(points), np.float32)
    potentials(np.array([[c.real, c.imag] for c in points]), limit, found)
    return found


def test_points_of_the_set_never_escape():
    inside = [0, -1, 0.25, -2, 1j, -0.12 + 0.74j, -0.75, -1.3107 + 0j]
    assert (potential_of([complex(c) for c in inside]) == -1).all()


def potential_by_python(c, limit=500):
    z, n = c, 0
    while abs(z) < mandelbrot.escape and n < limit:
        z, n = z * z + c, n + 1
    return n + 1 - np.log2(np.log2(abs(z) ** 2 + 1) / 2)


def test_points_outside_escape_when_they_do():
    outside = [1 + 1j, 0.26 + 0j, -0.74 + 0.2j, 2 + 0j, -2.01 + 0j, 0.4 - 0.4j]
    np.testing.assert_allclose(potential_of(outside), [potential_by_python(c) for c in outside], rtol=1e-5, atol=1e-4)


def test_the_picture_is_symmetric_and_black_inside():
    picture = mandelbrot.draw(-0.5 + 0j, 3.0, 200, 48)
    assert picture.shape == (36, 48, 3)
    assert np.abs(picture.astype(int) - picture[::-1]).mean() < 0.1
    assert not picture[18, 24].any()  # c is near -0.5
    assert picture[0].any(axis=1).all()


@pytest.fixture
def noisy():
    return np.random.default_rng(1).random((9, 11, 3)).astype(np.float32)


def bilateral_by_numpy(source, radius, reach, contrast):
    height, width, _ = source.shape
    out = np.empty_like(source, dtype=float)
    for i, j in np.ndindex(height, width):
        a, b = np.mgrid[
            max(i - radius, 0) : min(i + radius + 1, height), max(j - radius, 0) : min(j + radius + 1, width)
        ]
        near = ((a - i) ** 2 + (b - j) ** 2) / reach**2
        alike = ((source[a, b] - source[i, j]) ** 2).sum(2) / contrast**2
        weight = np.exp(-(near + alike) / 2)
        out[i, j] = (weight[..., None] * source[a, b]).sum((0, 1)) / weight.sum()
    return out


def test_bilateral_filter(noisy):
    out = np.empty_like(noisy)
    image_filter.bilateral(3, 2.0, 0.4, noisy, out)
    np.testing.assert_allclose(out, bilateral_by_numpy(noisy, 3, 2.0, 0.4), atol=1e-5)


def test_bilateral_filter_keeps_an_edge_and_removes_noise():
    step = np.zeros((20, 20, 3), np.float32)
    step[:, 10:] = 1
    speckled = step + np.random.default_rng(2).normal(0, 0.03, step.shape).astype(np.float32)
    work = image_filter.Filter(speckled, "smooth")
    for _ in range(3):
        work.step()
    assert np.abs(work.now - step).std() < 0.3 * np.abs(speckled - step).std()
    assert (work.now[:, 10] - work.now[:, 9]).min() > 0.9


def test_sobel_edges(noisy):
    edge = np.empty(noisy.shape[:2], np.float32)
    image_filter.sobel(noisy, edge)
    bright = np.pad(noisy @ np.array(image_filter.luma), 1, mode="edge")
    smooth = bright[:-2] + 2 * bright[1:-1] + bright[2:]
    right = smooth[:, 2:] - smooth[:, :-2]
    smooth = bright[:, :-2] + 2 * bright[:, 1:-1] + bright[:, 2:]
    down = smooth[2:] - smooth[:-2]
    np.testing.assert_allclose(edge, np.hypot(down, right) / 8, atol=1e-6)


@pytest.mark.parametrize("kind", ["smooth", "edges", "cartoon"])
def test_each_filter_draws_the_whole_picture(kind):
    card = image_filter.test_card(40)
    drawn = image_filter.Filter(card, kind).draw()
    assert drawn.shape == card.shape
    assert drawn.std() > 1
