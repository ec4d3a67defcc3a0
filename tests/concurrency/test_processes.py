"""Kernels, functions and replays in other processes: fork, spawn, forkserver, joblib, and cloudpickle in this one."""

import copy
import importlib.util
import json
import linecache
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import shared_kernels

PROGRAM = Path(__file__).with_name("processes_program.py")
SUPPORT = Path(__file__).parents[1] / "support"

EXPECTED = {
    "module": [0, 1, 4],
    "main": [6, 9, 12],
    "graph kernel": [2, 6, 10],
    "method": [10, 11, 12],
    "replay": [0, 1, 16],
    "func": 6,
    "nested": [10, 11, 12],
    "graph": [33, 33, 33],
}


def results(*command, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False, timeout=200, **options
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def found_by():
    """What each way of starting processes gave, all in one program: each start of one takes time."""
    ways = ["fork", "spawn", "forkserver"]
    return results(str(PROGRAM), *ways, *["loky"] * (importlib.util.find_spec("joblib") is not None))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_python_run_kernels(found_by, method):
    found = found_by[method]
    assert "Can't pickle local object 'shifted.<locals>.inner" in found.pop("nested")  # as of a function
    if method != "fork":  # a child that imports the program again has fields of its own
        assert found.pop("graph kernel") == [0, 2, 4]
    assert found == {name: EXPECTED[name] for name in found}


def test_joblib_runs_kernels_that_its_workers_cannot_import(found_by):
    pytest.importorskip("joblib", reason="joblib is not installed")
    assert found_by["loky"] == EXPECTED


FROM_STDIN = """
import json
import numpy as np
from joblib.externals.loky import get_reusable_executor
import quadpy as qp

TEXT = '''
import quadpy as qp

@qp.kernel
def double(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    for i in x:
        x[i] *= 2.0
'''

def run(kernel):
    x = np.arange(3, dtype=np.float32)
    kernel(x)
    return x.tolist()

names = {"__name__": "__main__"}
exec(TEXT, names)
with get_reusable_executor(1) as pool:
    print(json.dumps(pool.submit(run, names["double"]).result(120)))
"""


def test_a_kernel_without_a_file_takes_its_text_along():
    pytest.importorskip("joblib", reason="joblib is not installed")
    assert results("-", input=FROM_STDIN) == [0, 2, 4]


@pytest.fixture
def by_value():
    """As another process would make it, where nothing of this one can be imported."""
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    return lambda made: cloudpickle.loads(cloudpickle.dumps(made))


def load(path, text):
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location("__main__", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LOCAL = """
    from __future__ import annotations
    import quadpy as qp

    ARRAY = qp.types.ndarray(dtype=qp.f32, ndim=1)
    WIDTH = 4

    @qp.func
    def power(x, n: qp.template()):
        result = x
        for _ in qp.static(range(n - 1)):
            result *= x
        return result

    def made(by):
        @qp.kernel(wave_size=64, debug=True)
        def scale(x: ARRAY, n: qp.i32 = 3):
            '''Scale.'''
            for i in range(n):
                x[i] = power(x[i], WIDTH) * by
        return scale
"""


def test_a_kernel_that_is_pickled_by_value(tmp_path, by_value):
    """With options, defaults, documentation, annotations that are text, a closure, and a function that calls itself."""
    kernel = load(tmp_path / "local.py", LOCAL).made(0.5)
    again = by_value(kernel)
    assert again is not kernel
    assert (again.wave_size, again.debug, again.__doc__, again.__qualname__) == (
        64,
        True,
        "Scale.",
        kernel.__qualname__,
    )
    x, y = (np.arange(5, dtype=np.float32) for _ in range(2))
    kernel(x)
    again(y)
    np.testing.assert_array_equal(x, [0, 0.5, 8, 3, 4])
    np.testing.assert_array_equal(y, x)
    assert by_value(again).wave_size == 64  # what was made so can be pickled again


def test_a_kernel_whose_file_is_gone(tmp_path, by_value):
    """As on another host."""
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    path = tmp_path / "local.py"
    stored = cloudpickle.dumps(load(path, LOCAL).made(2.0))
    path.unlink()
    linecache.clearcache()
    x = np.ones(3, np.float32)
    cloudpickle.loads(stored)(x)
    np.testing.assert_array_equal(x, 2)


def test_copies_are_the_same_object_also_of_local_kernels(tmp_path):
    kernel = load(tmp_path / "local.py", LOCAL).made(1.0)
    assert copy.copy(kernel) is copy.deepcopy(kernel) is kernel


def test_a_kernel_of_a_module_is_pickled_by_name(by_value):
    for made in (shared_kernels.square, shared_kernels.squared, shared_kernels.square_twice):
        assert by_value(made) is made
        assert pickle.loads(pickle.dumps(made)) is made
        assert len(pickle.dumps(made)) < 100


def test_another_kernel_of_that_name_is_not_taken_for_it(tmp_path, by_value, monkeypatch):
    """A worker's own ``__main__`` may have one."""
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    text = """
        import quadpy as qp

        @qp.kernel
        def fill(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            for i in x:
                x[i] = {value}
    """
    ours, theirs = (load(tmp_path / f"{name}.py", text.format(value=value)) for name, value in (("a", 1.0), ("b", 2.0)))
    monkeypatch.setitem(sys.modules, "__main__", ours)
    assert by_value(ours.fill) is ours.fill
    stored = cloudpickle.dumps(ours.fill)
    monkeypatch.setitem(sys.modules, "__main__", theirs)
    x = np.zeros(2, np.float32)
    cloudpickle.loads(stored)(x)
    np.testing.assert_array_equal(x, 1)
