"""Drawings of graphs: well-formed, every node once, each below what it comes after, arrows from edge to edge."""

from __future__ import annotations

import random
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import quadpy as qp
from quadpy.graph.model.drawing import MOST_NODES, svg_of
from quadpy.graph.model.inspect import GraphInfo, NodeInfo

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


def info(edges, count):
    after = {str(k): tuple(str(a) for a, b in edges if b == k) for k in range(count)}
    return GraphInfo(
        tuple(NodeInfo(name, "kernel", befores, f"task {name}", (), (), "") for name, befores in after.items())
    )


def boxes(drawing):
    """The left, upper, right and lower side of each box, by the name in it."""
    found = {}
    for group in drawing.iter(f"{SVG}g"):
        (rect,), (name, _) = group.findall(f"{SVG}rect"), group.findall(f"{SVG}text")
        x, y, width, height = (float(rect.get(side)) for side in ("x", "y", "width", "height"))
        assert name.text not in found
        found[name.text] = x, y, x + width, y + height
    return found


def arrows(drawing):
    """Where each arrow begins and ends, and the points between."""
    for path in drawing.findall(f"{SVG}path"):
        numbers = [float(number) for number in re.findall(r"-?\d+\.\d", path.get("d"))]
        yield (numbers[0], numbers[1]), (numbers[-2], numbers[-1])


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs(seed):
    rng = random.Random(seed)
    count = rng.randint(1, 25)
    edges = {(a, b) for b in range(1, count) for a in rng.sample(range(b), rng.randint(0, min(b, 3)))}
    drawing = ET.fromstring(svg_of(info(edges, count)))
    found = boxes(drawing)
    assert set(found) == {str(k) for k in range(count)}
    for name, (left, top, right, bottom) in found.items():
        assert left >= 0
        assert right <= float(drawing.get("width"))
        assert bottom <= float(drawing.get("height"))
        for other, (left2, top2, right2, bottom2) in found.items():
            apart = right < left2 or right2 < left or bottom < top2 or bottom2 < top
            assert name == other or apart, (name, other)
    for a, b in edges:
        assert found[str(a)][3] < found[str(b)][1], "a node stands below those that it comes after"
    ends = set()
    for (x, y), (to_x, to_y) in arrows(drawing):
        (start,) = [name for name, box in found.items() if box[0] < x < box[2] and abs(box[3] - y) < 0.1]
        (end,) = [name for name, box in found.items() if box[0] < to_x < box[2] and abs(box[1] - to_y) < 0.1]
        ends.add((int(start), int(end)))
    assert ends == edges


def test_names_are_escaped_and_long_ones_cut():
    long = "x" * 200
    nodes = (
        NodeInfo("a<b>&", "host", (), "<lambda>", (), (), "f.py:3"),
        NodeInfo(long, "empty", ("a<b>&",), "", (), (), ""),
    )
    drawing = ET.fromstring(svg_of(GraphInfo(nodes)))
    texts = [text.text for text in drawing.iter(f"{SVG}text")]
    assert texts[:2] == ["a<b>&", "<lambda>"]
    assert texts[2].endswith("…")
    assert len(texts[2]) < 50
    titles = [title.text for title in drawing.iter(f"{SVG}title")]
    assert titles == ["host node a<b>&\n<lambda>\nf.py:3", f"empty node {long}"]


def test_what_is_no_picture():
    assert svg_of(GraphInfo(())) is None
    assert svg_of(info([], MOST_NODES + 1)) is None
    assert qp.graph.Graph()._repr_svg_() is None


def test_a_graph_and_its_executable_are_drawn_alike():
    @qp.kernel
    def fill(x: qp.Array1D[qp.f32]):
        for i in x:
            x[i] = 1.0

    x = np.zeros(4, np.float32)
    graph = qp.graph.Graph()
    graph.add_kernel(fill, x, name="first")
    graph.add_kernel(fill, x, name="second")
    found = boxes(ET.fromstring(graph._repr_svg_()))
    assert found["first"][3] < found["second"][1]
    assert graph.instantiate()._repr_svg_() == graph._repr_svg_()
