"""The programs of docs/_examples/saved: a simulation that runs in C, with CMake, in Rust and through ctypes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from c_reader import FOLDER, STRICT, Reader
from hip_library import compiler
from saved_cases import explicit

import quadpy as qp
from quadpy.examples import mpm88

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries for Linux")
EXAMPLES = Path(__file__).parents[2] / "docs/_examples/saved"
STEPS = 20


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("save_mpm88", EXAMPLES / "save_mpm88.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = tmp_path_factory.mktemp("mpm88") / "mpm88.qpg"
    qp.init(arch=qp.cpu)
    module.save(str(path), ["arm64" if os.uname().machine == "aarch64" else "x86-64"])
    return path


@pytest.fixture(scope="module")
def live():
    """The picture after the steps, as colours."""
    qp.init(arch=qp.cpu)
    mpm88.start()
    for _ in range(STEPS):
        mpm88.step()
    return mpm88.draw(400)


def assert_same(picture: bytes, live: np.ndarray) -> None:
    """Sums of several threads differ in their last bits, and so may a colour."""
    head = b"P6 400 250 255\n"
    assert picture.startswith(head)
    found = np.frombuffer(picture[len(head) :], np.uint8).reshape(live.shape)
    assert len(np.unique(found)) > 50
    assert np.abs(found.astype(int) - live).max() <= 2


def test_the_program_in_c_draws_the_picture(saved, live, tmp_path):
    command = [
        *compiler(),
        *STRICT,
        f"-I{FOLDER}",
        EXAMPLES / "mpm88.c",
        FOLDER / "quadpy_graph.c",
        "-ldl",
        "-o",
        tmp_path / "mpm88",
    ]
    subprocess.run(command, check=True, timeout=200)
    subprocess.run([tmp_path / "mpm88", saved, str(STEPS), tmp_path / "a.ppm"], check=True, timeout=100)
    assert_same((tmp_path / "a.ppm").read_bytes(), live)
    failed = subprocess.run(
        [tmp_path / "mpm88", "none", "1", "b"], capture_output=True, text=True, check=False, timeout=100
    )
    assert (failed.returncode, failed.stderr) == (2, "none cannot be read: No such file or directory\n")


def test_cmake_builds_it(saved, live, tmp_path):
    if not shutil.which("cmake") or not shutil.which("cc"):
        pytest.skip("no cmake")
    subprocess.run(
        ["cmake", "-S", EXAMPLES, "-B", tmp_path, f"-DQUADPY_C={FOLDER}"], check=True, capture_output=True, timeout=200
    )
    subprocess.run(["cmake", "--build", tmp_path], check=True, capture_output=True, timeout=200)
    subprocess.run([tmp_path / "mpm88", saved, str(STEPS), tmp_path / "a.ppm"], check=True, timeout=100)
    assert_same((tmp_path / "a.ppm").read_bytes(), live)


def coverage(saved: Path) -> float:
    picture = np.zeros((250, 400, 4), np.float32)
    with Reader(saved, "cpu") as reader:
        reader.bind("picture", picture.ctypes.data, 250, 400)
        for _ in range(STEPS):
            reader.run()
    return float(picture[..., 3].sum(dtype=np.float64))


def test_rust_runs_it(saved, tmp_path):
    if not shutil.which("rustc") or not shutil.which("ar"):
        pytest.skip("no rustc")
    subprocess.run(
        [*compiler(), *STRICT, "-c", FOLDER / "quadpy_graph.c", "-o", tmp_path / "a.o"], check=True, timeout=200
    )
    subprocess.run(["ar", "rcs", tmp_path / "libquadpy_graph.a", tmp_path / "a.o"], check=True, timeout=100)
    command = [
        "rustc",
        "--edition",
        "2021",
        EXAMPLES / "mpm88.rs",
        "-o",
        tmp_path / "mpm88",
        "-L",
        tmp_path,
        "-l",
        "static=quadpy_graph",
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if "c-string literals" in built.stderr or "edition" in built.stderr:
        pytest.skip("rustc is older than 1.77")
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        [tmp_path / "mpm88", saved, str(STEPS)], capture_output=True, text=True, check=True, timeout=100
    )
    assert float(done.stdout) == pytest.approx(coverage(saved), rel=1e-3)


def test_the_page_shows_the_programs():
    page = (EXAMPLES.parents[1] / "guides/saved-graphs-c.md").read_text(encoding="utf-8")
    for name in ("mpm88.c", "CMakeLists.txt"):
        assert (EXAMPLES / name).read_text(encoding="utf-8") in page


def test_a_small_graph_has_run_soon_after_the_program_opens_it(tmp_path):
    path, times = tmp_path / "small.qpg", []
    qp.init(arch=qp.cpu)
    graph, bind, memory = explicit()
    graph.save(path, bind=bind, **memory)
    arrays = {name: array.to_numpy() for name, array in bind.items()}
    for _ in range(10):
        begin = time.perf_counter()
        with Reader(path, "cpu") as reader:
            reader.run(**arrays)
            times.append(time.perf_counter() - begin)
    assert min(times) < 0.01
