"""What all tests share: a kernel cache of their own, golden files."""

from __future__ import annotations

import difflib
import gc
import os
import signal
import sys
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

# Compiling inside a property makes its first example slow; the pytest timeout is what catches a hang.
hypothesis.settings.register_profile("quadpy", deadline=None)
hypothesis.settings.load_profile("quadpy")

DISPLAYS = "DISPLAY", "WAYLAND_DISPLAY"
OPTIONS = ("as_taichi", "debug", "fast_math", "interpreted")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files with what the tests see")
    parser.addoption("--random-kernels", type=int, default=20, help="how many kernels at random each property tries")
    parser.addoption("--random-graphs", type=int, default=10, help="how many graphs at random each property tries")
    parser.addoption("--random-streams", type=int, default=200, help="how many programs of streams at random are tried")
    parser.addoption("--random-threads", type=int, default=2, help="with how many seeds threads share objects")
    parser.addoption(
        "--every-processor", action="store_true", help="compile for each processor, not for one of each generation"
    )
    parser.addoption(
        "--interrupts", type=int, default=25, help="at how many places each program is interrupted; 0: all"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Keep the user's settings, cache and display out of the tests, in this process and its children.

    So, too, a Ctrl-C that is ignored, as after ``nohup`` and in many CI systems: programs that begin that way never see it.
    Hundreds of children import quadpy: they keep its bytecode, which halves their processor time.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in [name for name in os.environ if name.startswith("QUADPY_") or name in DISPLAYS]:
        del os.environ[name]
    folder = tempfile.TemporaryDirectory(prefix="quadpy-tests-")
    config.add_cleanup(folder.cleanup)
    os.environ["QUADPY_CACHE_DIR"] = folder.name


@pytest.fixture(scope="module", autouse=True)
def collections_pass_over_older_objects():
    """Many tests collect garbage at each of many steps; the hundred thousands of objects of pytest need no look then."""
    gc.collect()
    gc.freeze()


def options() -> dict[str, object]:
    """What ``init`` was asked for, of what changes how kernels are compiled."""
    current = sys.modules.get("quadpy.runtime.device.current")
    return {name: bool(getattr(current.current_config(), name)) if current else False for name in OPTIONS}


@pytest.fixture(autouse=True)
def options_end_with_their_test():
    """What one test asks for with ``init`` must not change what the next one compiles."""
    before = options()
    yield
    if (after := options()) != before:
        current = sys.modules["quadpy.runtime.device.current"]
        current.set_config(current.current_config()._replace(**before))
        pytest.fail(f"the test leaves options behind: {after}")


@pytest.fixture(autouse=True)
def settings_end_with_their_test():
    """What one test reads from its environment is read again by the next one."""
    yield
    if settings := sys.modules.get("quadpy.settings"):
        settings.settings.cache_clear()


@pytest.fixture
def own_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``qp.root`` without the fields that other tests keep: with a gradient, each would be cleared by every later tape."""
    from quadpy.runtime.arrays.derivatives import WITH_SHAPE
    from quadpy.runtime.arrays.tree import root

    for fields in root._trees, WITH_SHAPE:
        monkeypatch.setattr(fields, "_objects", weakref.WeakValueDictionary())


@dataclass(frozen=True)
class Golden:
    """Files beside a test module, in ``golden/``, that hold the text a stage must produce."""

    folder: Path
    update: bool

    def check(self, name: str, text: str) -> None:
        """Compare ``text`` with the file ``name``; ``pytest --update-golden`` writes it instead."""
        file = self.folder / name
        if self.update:
            self.folder.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        expected = file.read_text(encoding="utf-8") if file.exists() else ""
        if text != expected:
            diff = difflib.unified_diff(expected.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm="")
            pytest.fail("\n".join(diff) + "\n(pytest --update-golden accepts this)", pytrace=False)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.path.parent / "golden", request.config.getoption("--update-golden"))
