"""Every public name has an entry in the reference: on one page, with its signature, parameters, errors and an example."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import logging
import re
import sys

import pytest

import quadpy as qp
from tools.docs import DOCS, entries, examples, public


def test_every_public_name_has_an_entry():
    names = {public.other_names().get(name, name) for name in public.public()}
    assert len(names) > 450
    assert names - set(public.pages()) == set(), "give it a place in a page of docs/reference"
    assert set(public.pages()) - names == set(), "pages name what is not public"


def test_a_name_that_no_page_has_is_found(monkeypatch):
    names = {**public.public(), "qp.brand_new": object()}
    monkeypatch.setattr(public, "public", lambda: names)
    public.other_names.cache_clear()
    with pytest.raises(AssertionError, match="brand_new"):
        test_every_public_name_has_an_entry()
    monkeypatch.undo()
    public.other_names.cache_clear()


def test_every_name_has_an_example():
    without = [name for name in public.pages() if not examples.source_of(name) and not examples.home_of(name)]
    assert without == [], "add a function example_NAME to a module of docs/_examples"


def test_examples_are_for_public_names():
    assert set(examples.all_names()) - set(public.pages()) == set()


@pytest.fixture
def quiet_start(tmp_path, monkeypatch):
    """What examples change is as before: the options, the folder, the level of the log."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("quadpy.api._HOOKS", [])
    log = logging.getLogger("quadpy")
    level = log.level
    qp.init(arch=qp.cpu)
    yield
    qp.profiler.set_kernel_profiler(False)
    log.setLevel(level)
    qp.init()


def has_vulkan() -> bool:
    wgpu = importlib.import_module("wgpu")
    return any("Vulkan" in adapter.summary for adapter in wgpu.gpu.enumerate_adapters_sync())


NEEDS = {"tools": ["av", "PIL", "plyfile", "pyevtk"], "torch": ["torch"], "view": ["pygfx"]}


@pytest.mark.parametrize("module", sorted(file.stem for file in (DOCS / "_examples").glob("*.py")))
@pytest.mark.usefixtures("quiet_start")
def test_the_examples_print_what_they_say(module, monkeypatch):
    for package in NEEDS.get(module, []):
        pytest.importorskip(package)
    if module == "view" and not has_vulkan():
        pytest.skip("no Vulkan driver")
    file = DOCS / "_examples" / f"{module}.py"
    spec = importlib.util.spec_from_file_location(f"examples_{module}", file)
    loaded = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, loaded)
    spec.loader.exec_module(loaded)
    for name in [name for name in vars(loaded) if name.startswith(examples.FIRST)]:
        qp.reset()
        qp.init(arch=qp.cpu)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            getattr(loaded, name)()
        said = examples.said(examples.name_of(module, name))
        assert said is None or printed.getvalue().splitlines() == said, name


def callables():
    """Functions and methods that users call, with the class of a method."""
    for name in public.pages():
        value = public.public()[name]
        if inspect.isfunction(value):
            yield name, value, value
        for last, member in entries.members(value).items():
            called = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
            if inspect.isfunction(called):
                yield f"{name}.{last}", called, value


def named_in(text):
    """The words of code in a docstring, and the names under ``Args:``."""
    code = " ".join(re.findall(r"``(.+?)``", text))
    return {*re.findall(r"\w+", code), *re.findall(r"^ {4}(\w+):", text, re.MULTILINE)}


def test_the_text_of_a_function_or_its_class_names_its_parameters():
    missing = {}
    for name, function, owner in callables():
        named = named_in(inspect.getdoc(function) or "") | named_in(inspect.getdoc(owner) or "")
        if silent := set(inspect.signature(function).parameters) - named - {"self", "cls"}:
            missing[name] = sorted(silent)
    assert {name: silent for name, silent in missing.items() if silent != ["_numpy", "_options"]} == {}


def test_every_link_target_of_the_inventory_is_an_entry():
    pytest.importorskip("sphobjinv", reason="the extra docs is not installed")
    found = {item.name: item.uri for item in importlib.import_module("tools.docs.inventory").inventory().objects}
    assert {public.anchor(name) for name in public.public()} <= set(found)
    assert found["quadpy.float32"] == found["quadpy.f32"] == "reference/types/#quadpy.f32"
    assert found["quadpy.graph.Graph.add_kernel"] == "reference/graph/#quadpy.graph.Graph.add_kernel"


def test_every_member_has_a_text():
    silent = [
        f"{name}.{last}"
        for name in public.pages()
        for last, member in entries.members(public.public()[name]).items()
        if not inspect.getdoc(member)
    ]
    assert silent == []
