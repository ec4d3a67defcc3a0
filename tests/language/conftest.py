"""What tests of the language share: defaults that each test finds as they were, and kernels made of text."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import textwrap
from pathlib import Path

import pytest
from backends import backends

import quadpy as qp
from quadpy.runtime.device.current import current_config

sys.path.insert(0, str(Path(__file__).parent))  # for random_kernels.py
_numbers = itertools.count()


@pytest.fixture(scope="session", autouse=True, params=backends())
def arch(request):
    """The backend, each that is here; two threads on the CPU, so that loops are split on every machine."""
    _begin_on(request.param)
    return request.param


@pytest.fixture(autouse=True)
def each_test_begins_on_its_backend(arch):
    """Whatever backend the test before it has chosen; ``arch`` is something else in tests of bad names."""
    if isinstance(arch, str) and arch in backends() and current_config().arch != arch:
        _begin_on(arch)


def _begin_on(arch):
    qp.init(arch=arch, cpu_max_num_threads=2)
    _forget_memory_of_fields()


def _forget_memory_of_fields():
    """Fields of test modules get memory again at their next use: that of the backend that is chosen now."""
    here = str(Path(__file__).parent)
    for module in [m for m in sys.modules.values() if (getattr(m, "__file__", None) or "").startswith(here)]:
        for value in vars(module).values():
            held = (
                value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
            )
            for field in (field for field in held if isinstance(field, qp.Field)):
                field._placement = None
                if hasattr(field._tree, "_bound"):
                    field._tree._bound = False


@pytest.fixture
def init(arch):
    """``qp.init`` for a test that needs other defaults; they end with it."""

    def run(**options):
        if arch != "cpu" and options.get("arch") == "python":
            pytest.skip("Python runs on the host, whose arrays these tests use with the other arch")
        qp.init(**{"arch": arch, "cpu_max_num_threads": 2, **options})

    yield run
    qp.init(arch=arch, cpu_max_num_threads=2)


@pytest.fixture
def load(tmp_path):
    """A module made of text, in a file of its own: ``load("…").name``."""

    def run(text: str):
        name = f"quadpy_test_{next(_numbers)}"
        path = tmp_path / f"{name}.py"
        path.write_text("import numpy as np\nimport quadpy as qp\n" + textwrap.dedent(text), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    yield run
    for name in [name for name in sys.modules if name.startswith("quadpy_test_")]:
        del sys.modules[name]
