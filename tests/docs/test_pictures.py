"""Pictures of graphs in the documentation show what ``to_dot`` gives for the code of their page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import quadpy as qp
from quadpy.runtime.device.current import current_config, set_config

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def graph_of_the_guide(tmp_path):
    """The graph of the guide's picture, made by running the guide's code up to there."""
    page = (ROOT / "docs/guides/graphs.md").read_text(encoding="utf-8")
    code = "\n".join(
        re.findall(r"^```python\n(.*?)^```", page[: page.index("forked-step.svg")], re.MULTILINE | re.DOTALL)
    )
    file = tmp_path / "guide.py"  # kernels are read from a file
    file.write_text(code, encoding="utf-8")
    names: dict[str, object] = {}
    before = current_config()
    try:
        exec(compile(code, str(file), "exec"), names)
    finally:
        set_config(before)
    return names["graph"]


def in_dot(text):
    """The nodes and the edges of a graph in Graphviz's language."""
    edges = re.findall(r'^ +"([^"]+)" -> "([^"]+)";', text, re.MULTILINE)
    nodes = re.findall(r'^ +"([^"]+)" \[label', text, re.MULTILINE)
    return set(nodes), set(edges)


def in_picture(path):
    """The same for an SVG picture: boxes by their text, arrows by the boxes at their ends."""
    root = ET.parse(path).getroot()
    boxes = [{k: float(box.get(k)) for k in ("x", "y", "width", "height")} for box in root.iter(f"{SVG}rect")]

    def box_at(x, y):
        distances = [
            max(b["x"] - x, x - b["x"] - b["width"], 0) + max(b["y"] - y, y - b["y"] - b["height"], 0) for b in boxes
        ]
        return distances.index(min(distances))

    titles = {}
    for text in root.iter(f"{SVG}text"):
        titles[box_at(float(text.get("x")), float(text.get("y")))] = text.text.split()[0]
    assert len(titles) == len(boxes)
    arrows = [list(map(float, re.findall(r"-?[\d.]+", path.get("d")))) for path in root.findall(f"{SVG}g/{SVG}path")]
    return set(titles.values()), {(titles[box_at(*a[:2])], titles[box_at(*a[2:])]) for a in arrows}


def test_the_picture_of_a_forked_step_is_that_of_to_dot(tmp_path):
    found = graph_of_the_guide(tmp_path)
    assert isinstance(found, qp.graph.Graph)
    nodes, edges = in_dot(found.to_dot())
    assert in_picture(ROOT / "docs/assets/forked-step.svg") == (nodes, edges)
    assert (len(nodes), len(edges)) == (4, 4)
