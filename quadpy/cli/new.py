"""``quadpy new``: creates a small project with a kernel, a test and a benchmark."""

from __future__ import annotations

import argparse
import keyword
import sys
from pathlib import Path
from typing import Final, TextIO

from quadpy.errors import QuadpyError

NAME: Final = "new"
HELP: Final = "create a small project with a kernel, a test and a benchmark"

_PROJECT: Final = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{distribution}"
version = "0.1.0"
requires-python = ">=3.10"
dependencies = ["numpy", "quadpy-lang"]

[project.optional-dependencies]
dev = ["pytest"]

[tool.hatch.build.targets.wheel]
packages = ["{package}"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
"""

_README: Final = """\
# {distribution}

```sh
pip install -e '.[dev]'
pytest                          # the test
python benchmarks/diffusion.py  # the time of a step
# what the kernel needs on an AMD GPU, and a budget for it
quadpy report {package}/diffusion.py --target gfx942 --max-spills 0
```
"""

_INIT: Final = """\
\"\"\"Diffusion of heat on a square grid.\"\"\"
"""

_KERNEL: Final = """\
\"\"\"Diffusion of heat: explicit steps on a square grid.\"\"\"

import quadpy as qp


@qp.kernel
def step(old: qp.Array2D[qp.f32], new: qp.Array2D[qp.f32], rate: qp.f32) -> None:
    \"\"\"One explicit step; the border keeps its temperature.  ``rate`` is dt * diffusivity / dx^2, at most 0.25.\"\"\"
    for i, j in old:  # a loop at the top level runs in parallel
        change = 0.0
        if 0 < i < old.shape[0] - 1 and 0 < j < old.shape[1] - 1:
            change = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1] - 4.0 * old[i, j]
        new[i, j] = old[i, j] + rate * change
"""

_TEST: Final = """\
\"\"\"A step against the same formula in NumPy.\"\"\"

from collections.abc import Iterator

import numpy as np
import pytest
import quadpy as qp

from {package}.diffusion import step


@pytest.fixture(autouse=True)
def cpu() -> Iterator[None]:
    qp.init(arch=qp.cpu, debug=True)  # indices out of range raise
    yield
    qp.reset()


def test_a_step_is_the_formula() -> None:
    old = np.random.default_rng(1).random((33, 17), dtype=np.float32)
    new = np.zeros_like(old)
    step(old, new, 0.2)

    expected = old.copy()
    around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
    expected[1:-1, 1:-1] += np.float32(0.2) * (around - 4 * old[1:-1, 1:-1])
    np.testing.assert_allclose(new, expected, rtol=1e-5)
"""

_BENCHMARK: Final = """\
\"\"\"The time of a step: python benchmarks/diffusion.py [cpu | cuda | amdgpu].\"\"\"

import sys
import time
from pathlib import Path

import quadpy as qp

sys.path.insert(0, str(Path(__file__).parents[1]))
from {package}.diffusion import step

SIZE, STEPS = 2048, 50

qp.init(arch=sys.argv[1] if len(sys.argv) > 1 else "cpu")
a, b = (qp.ndarray(qp.f32, (SIZE, SIZE)) for _ in range(2))
a.fill(1.0)
step(a, b, 0.2)  # compiles
qp.sync()

start = time.perf_counter()
for _ in range(STEPS):
    step(a, b, 0.2)
    step(b, a, 0.2)
qp.sync()
seconds = (time.perf_counter() - start) / (2 * STEPS)
print(f"{{seconds * 1e3:.3f}} ms a step, {{2 * a.nbytes / seconds / 1e9:.1f}} GB/s")
"""

_FILES: Final = {
    "pyproject.toml": _PROJECT,
    "README.md": _README,
    "{package}/__init__.py": _INIT,
    "{package}/diffusion.py": _KERNEL,
    "tests/test_diffusion.py": _TEST,
    "benchmarks/diffusion.py": _BENCHMARK,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project's name, or a path that ends in it; the folder must not exist")


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Write the project's files, and say how to run them."""
    folder = Path(args.name)
    package = _package_of(folder.name)
    if folder.exists():
        raise QuadpyError(f"{folder} already exists", hint="choose another name, or remove it")
    for path, text in _FILES.items():
        file = folder / path.format(package=package)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(package=package, distribution=package.replace("_", "-")), encoding="utf-8")
    print(f"wrote {folder}: cd {folder} && pip install -e '.[dev]' && pytest", file=out)
    return 0


def _package_of(name: str) -> str:
    """The name of the package in a project called ``name``."""
    package = name.lower().replace("-", "_")
    if not package.isidentifier() or not package.isascii() or keyword.iskeyword(package):
        raise QuadpyError(f"{name!r} cannot be the name of a package", hint="use letters, digits and hyphens")
    if package in sys.stdlib_module_names or package in {"benchmarks", "numpy", "pytest", "quadpy", "tests"}:
        raise QuadpyError(f"{name!r} is the name of another package", hint="choose another name")
    return package
