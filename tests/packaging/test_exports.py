"""Public means exported and documented."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import typing
from pathlib import Path

import pytest

import quadpy
from quadpy import errors

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(quadpy.__path__, "quadpy.") if not module.name.endswith("__main__")
)


def public_names() -> list[str]:
    return [name for name in quadpy.__all__ if not name.startswith("__")]


def test_all_names_what_is_there_each_once():
    assert len(set(quadpy.__all__)) == len(quadpy.__all__)
    assert [name for name in quadpy.__all__ if not hasattr(quadpy, name)] == []


def test_all_leaves_nothing_out():
    """A name without an underscore that is not a submodule is public, so ``__all__`` must say so."""
    own = {name for name, value in vars(quadpy).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert own - set(quadpy.__all__) <= {"annotations"}


def test_every_error_is_public():
    assert set(errors.__all__) <= set(quadpy.__all__)


@pytest.mark.parametrize("name", public_names())
def test_every_public_function_and_class_has_a_docstring(name):
    value = getattr(quadpy, name)
    if (inspect.isclass(value) or inspect.isroutine(value)) and typing.get_origin(value) is None:
        own = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        assert (own or "").strip()
        assert not own.startswith(f"{name}("), "dataclasses write this one"


def test_every_module_says_what_it_is_for_and_exports_what_it_has():
    missing = []
    for name in MODULES:
        module = importlib.import_module(name)
        is_empty = not Path(module.__file__).read_text(encoding="utf-8").strip()
        missing += [] if module.__doc__ or is_empty else [f"{name} has no docstring"]
        missing += [
            f"{name} has no {export}" for export in getattr(module, "__all__", ()) if not hasattr(module, export)
        ]
    assert missing == []


def test_the_stream_manager_has_the_name_that_its_documentation_gives():
    from quadpy.runtime import StreamManager
    from quadpy.runtime.streams import manager as stream_manager

    assert StreamManager is stream_manager.StreamManager
    assert "StreamManager" in dir(quadpy.runtime)
    with pytest.raises(ImportError, match="StreamManger"):
        from quadpy.runtime import StreamManger  # noqa: F401 - the name is wrong on purpose
