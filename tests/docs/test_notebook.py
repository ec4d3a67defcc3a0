"""The notebook of the documentation runs, and shows what its page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest
from pages import ROOT

NOTEBOOK = ROOT / "docs/guides/notebook.ipynb"
RUN = """
import sys, nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=120).execute()
nbformat.write(notebook, sys.argv[2])
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The outputs of each cell of code, by the first line of the cell."""
    folder = tmp_path_factory.mktemp("notebook")
    subprocess.run(
        [sys.executable, "-c", RUN, str(NOTEBOOK), "ran.ipynb"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    ran = json.loads((folder / "ran.ipynb").read_text("utf-8"))["cells"]
    return {"".join(cell["source"]).splitlines()[0]: cell["outputs"] for cell in ran if cell["cell_type"] == "code"}


def shown(outputs, kind):
    (found,) = [output["data"] for output in outputs if kind in output.get("data", {})]
    return "".join(found[kind])


def test_a_kernel_shows_its_signature_and_its_source(cells):
    html = shown(cells["@qp.kernel"], "text/html")
    assert "step(now: Array2D[f32], after: Array2D[f32]) -&gt; None" in html
    assert "One step of Jacobi" in html
    assert "after[i, j] = now[i, j]" in html
    assert "Cell In[2]" in html


def test_arrays_and_fields_show_their_values(cells):
    html = shown(cells["a, b = qp.ndarray(qp.f32, (8, 8)), qp.ndarray(qp.f32, (8, 8))"], "text/html")
    assert "ndarray(f32, shape=(8, 8))" in html
    assert html.count("[1. ") == 8
    assert "field(f32, shape=(4,))" in shown(cells["history = qp.field(qp.f32, shape=4)"], "text/html")


def test_a_graph_is_drawn(cells):
    svg = ET.fromstring(shown(cells["g = qp.graph.Graph()"], "image/svg+xml"))
    texts = {element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert {"step 1", "step 2", "note", "tell"} <= texts
    assert "array([" in shown(cells["run = g.instantiate()"], "text/plain")


def test_an_error_names_the_cell_and_has_one_frame_of_quadpy(cells):
    (error,) = [output for output in cells["@qp.kernel(debug=True)"] if output["output_type"] == "error"]
    assert error["ename"] == "KernelIndexError"
    text = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error["traceback"]))
    assert re.search(r"Cell In\[\d+\]:4:9: x\[4\] is out of range", text)
    assert len(re.findall(r"^File .*quadpy", text, re.MULTILINE)) == 1


def test_a_text_defines_a_kernel(cells):
    assert shown(cells['text = """'], "text/plain") == "array([3., 3., 3.], dtype=float32)"
