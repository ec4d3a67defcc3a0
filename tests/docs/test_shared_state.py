"""The page on shared state names all of it: locks, queues, what threads have of their own, what modules keep."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import quadpy

ROOT = Path(quadpy.__file__).parent
PAGE = Path(__file__).parents[2] / "docs/explanation/shared-state.md"
MAKERS = {"new_lock", "deque", "WeakSet", "WeakValueDictionary", "WeakKeyDictionary", "LiveObjects", "Lasting", "count"}
PARTS = ("runtime", "graph", "jit", "ad", "hazards", "profiler")


def maker_of(value):
    """What kind of shared thing an expression makes; None for anything else."""
    if isinstance(value, ast.Call):
        name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        return name if name in MAKERS else None
    return None


def is_empty_container(value):
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.List):
        return not value.elts
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") == "set" and not value.args


def assigned(node):
    if isinstance(node, ast.Assign):
        return node.targets, node.value
    return ([node.target], node.value) if isinstance(node, ast.AnnAssign) and node.value is not None else ([], None)


def shared_in(tree):
    """The names of what one module shares: its own, and attributes as ``Class.attribute``."""
    for node in tree.body:
        targets, value = assigned(node)
        for target in targets:
            if maker_of(value) or is_empty_container(value):
                yield target.id
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        if any(ast.unparse(base) == "threading.local" for base in cls.bases):
            yield cls.name
            continue
        for node in ast.walk(cls):
            targets, value = assigned(node)
            for target in targets:
                if maker_of(value) and (isinstance(target, ast.Attribute) or node in cls.body):
                    yield f"{cls.name}.{target.attr if isinstance(target, ast.Attribute) else target.id}"
            if isinstance(node, ast.Call) and any(maker_of(argument) == "new_lock" for argument in node.args):
                yield f"{cls.name}.{node.func.value.attr}"  # a dict of locks


def shared():
    found = set()
    for part in PARTS:
        for file in (ROOT / part).rglob("*.py"):
            module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            tree = ast.parse(file.read_text(encoding="utf-8"))
            found |= {f"{module}.{name}" for name in shared_in(tree)}
    return found


def test_the_page_names_what_is_shared_and_nothing_else():
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE))
    assert shared() - named == set(), "the page lacks these: say what protects them"
    assert named - shared() == set(), "the page names what is not there any more"


def test_every_lock_is_one_that_finalizers_and_forks_may_come_upon():
    """``runtime.device.locks`` makes all of them; and ``with`` takes them, which no signal can part from its end."""
    for file in ROOT.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        if module not in (
            "runtime.device.locks",
            "core.importing",
            "core.children",
        ):  # the last: only commands use it
            assert not re.search(r"threading\.(Lock|RLock|Condition|Semaphore)\(|\bqueue\.\w*Queue\(", text), module
            assert not re.search(r"lock\.(acquire|release)\(", text), module


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("_lock = new_lock()", {"_lock"}),
        ("_known: Final[dict[int, str]] = {}", {"_known"}),
        ("TABLE = {1: 2}", set()),
        ("class _Mine(threading.local):\n    x = 1", {"_Mine"}),
        ("class A:\n    def __init__(self):\n        self._queue: deque[int] = deque()", {"A._queue"}),
        ("class A:\n    def f(self):\n        with self._locks.setdefault(1, new_lock()): pass", {"A._locks"}),
        ("class A:\n    def f(self):\n        mine = deque()", set()),
    ],
)
def test_the_scan_sees_each_kind(source, names):
    assert set(shared_in(ast.parse(source))) == names
