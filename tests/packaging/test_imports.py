"""Who may import whom, read from the source; and what ``import quadpy`` loads, seen in a child process."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import quadpy

ROOT = Path(quadpy.__path__[0])
LEAVES = {"_version", "core", "errors", "settings"}
VENDORS = {"cuda", "hip", "rocm", "torch"}


@dataclass(frozen=True)
class Layer:
    """What a part of quadpy may import: other parts (itself and the leaves always), and other distributions."""

    parts: set[str] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)


INSIDE = {"cache", "codegen", "hostmath", "interpreter", "intrinsics", "ir", "jit", "lang", "mathlib", "runtime"}
PUBLIC = {
    "",
    "ad",
    "algorithms",
    "linalg",
    "aliases",
    "api",
    "capabilities",
    "clock",
    "dist",
    "graph",
    "hazards",
    "math",
    "profiler",
    "simt",
    "tools",
    "torch",
    "types",
    "view",
}

# The most specific name wins: "runtime.cpu" before "runtime".  "" is quadpy/__init__.py.
LAYERS = {
    **{leaf: Layer() for leaf in LEAVES},
    "cache": Layer(),
    "intrinsics": Layer(),
    "ir": Layer({"intrinsics"}),
    "mathlib": Layer({"intrinsics", "ir"}),
    "lang": Layer({"intrinsics", "ir", "lang.parsing", "mathlib"}),
    "lang.parsing": Layer({"runtime.device.locks"}),
    "codegen": Layer({"intrinsics", "ir"}, {"llvmlite"}),
    "interpreter": Layer({"codegen", "intrinsics", "ir", "lang.parsing"}, {"numpy"}),
    "runtime.device.locks": Layer(),
    "runtime": Layer(
        {"runtime.arrays.dlpack", "runtime.device.known", "runtime.device.locks", "runtime.memory.filling"},
        {"numpy", "hip", "rocm", "rocm_sdk", "cuda", "torch"},
    ),
    "runtime.cpu": Layer({"cache", "runtime"}, {"numpy", "llvmlite"}),
    "runtime.device.known": Layer({"cache", "runtime"}),  # what is stored beside compiled kernels
    "runtime.memory.filling": Layer({"runtime", "runtime.cpu"}, {"numpy"}),  # on the CPU's pool
    "runtime.arrays.dlpack": Layer({"runtime", "runtime.cpu"}),  # the end of a capsule is machine code
    "hostmath": Layer({"runtime"}, {"numpy"}),
    "jit": Layer(INSIDE | {"graph.engines"}, {"llvmlite", "numpy"}),
    "graph": Layer({"graph", "intrinsics", "lang", "runtime"}),
    "graph.device_graphs": Layer({"runtime"}),
    "graph.model": Layer({"graph.device_graphs", "runtime"}, {"numpy"}),
    "graph.engines": Layer({"graph.device_graphs", "graph.model", "runtime"}),  # jit runs graph kernels with them
    "graph.live_graph": Layer({"graph.engines", "graph.model", "runtime"}),
    "graph.execution": Layer({"graph.live_graph", "graph.engines", "graph.model", "runtime"}),
    "graph.building": Layer({"graph.execution", "graph.engines", "graph.model", "runtime"}, {"numpy"}),
    "graph.captures": Layer({"graph.building", "graph.model", "runtime"}, {"numpy"}),
    "graph.replays": Layer(
        {"graph.captures", "graph.building", "graph.execution", "graph.model", "runtime"}, {"numpy"}
    ),
    "graph.saved": Layer({"graph", "hostmath", "jit", "runtime"}, {"numpy"}),  # plans of machine code from files
    "graph.saved.save_kernel": Layer({"graph", "jit", "lang", "runtime"}),  # kernels without a graph
    "capabilities": Layer({"runtime"}),
    "clock": Layer({"", "runtime"}),  # its kernel is written as users write theirs
    "algorithms": Layer(INSIDE | {""}, {"numpy"}),  # its kernels are written as users write theirs
    "linalg": Layer({"", "algorithms", "jit", "runtime", "simt"}),  # as algorithms
    "ad": Layer({"algorithms", "graph", "hostmath", "intrinsics", "jit", "lang", "runtime"}, {"numpy"}),
    "dist": Layer(INSIDE | {"", "graph"}, {"h5py", "mpi4py", "nccl", "numpy", "rocm", "torch"}),  # as algorithms
    "hazards": Layer({"runtime", "hazards.races"}, {"numpy"}),
    "hazards.races": Layer({"jit"}),
    "profiler": Layer({"runtime", "hazards"}),  # the names of streams
    "math": Layer({"intrinsics", "lang", "hostmath", "typed"}),
    "typed": Layer(),  # a stub, which only type checkers read
    "simt": Layer({"hostmath", "intrinsics", "lang"}),
    "types": Layer({"hostmath"}),
    "view": Layer(set(), {"numpy"}),  # takes arrays by the protocols that NumPy knows
    "tools": Layer({"view"}, {"numpy"}),
    "torch": Layer({"jit", "runtime"}, {"torch"}),
    "api": Layer(INSIDE | {"reference_options"}),
    "aliases": Layer({"runtime"}),
    "reference_options": Layer({"aliases"}),
    "": Layer(INSIDE | PUBLIC),
    "compat": Layer(INSIDE | PUBLIC, {"numpy", "PIL"}),
    "examples": Layer(PUBLIC, {"numpy", "PIL"}),
    "selftest": Layer(INSIDE | PUBLIC, {"numpy", "torch"}),
    "cli": Layer(INSIDE | PUBLIC | {"examples", "selftest"}, {"llvmlite", "numpy"}),
    "__main__": Layer({"cli"}),
}


@dataclass(frozen=True)
class Import:
    module: str
    line: int
    at_import: bool  # runs when the module is imported: not inside a function, not only for type checkers


def modules() -> dict[str, Path]:
    """Every module of quadpy by its name below ``quadpy``."""
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = modules()


def imports(node: ast.AST, *, at_import: bool = True) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, at_import)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: relative import"
            for alias in child.names:
                submodule = f"{child.module}.{alias.name}"
                is_module = submodule.removeprefix("quadpy.") in MODULES
                yield Import(submodule if is_module else str(child.module), child.lineno, at_import)
        else:
            runs = not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and not (
                isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
            )
            yield from imports(child, at_import=at_import and runs)


@functools.cache
def imports_of(module: str) -> list[Import]:
    return list(imports(ast.parse(MODULES[module].read_text(encoding="utf-8"))))


def layer_of(module: str) -> str:
    name = module
    while name and name not in LAYERS:
        name = name.rpartition(".")[0]
    assert name or not module, f"quadpy/{module} belongs to no layer: add it to LAYERS, with what it may import"
    return name


def complaint(module: str, found: Import) -> str | None:
    """What is wrong with one import; ``None`` for nothing."""
    layer = LAYERS[layer_of(module)]
    package, _, part = found.module.partition(".")
    if package == "quadpy":
        target = layer_of(part)
        fine = target in layer.parts | LEAVES | {layer_of(module)} or target.split(".")[0] in layer.parts
    else:
        for_checkers = package == "typing_extensions" and not found.at_import  # which is no dependency
        fine = for_checkers or package in layer.packages | set(sys.stdlib_module_names)
    return None if fine else f"quadpy/{module.replace('.', '/')} line {found.line} imports {found.module}"


def test_modules_import_what_their_layers_may():
    complaints = [complaint(module, found) for module in MODULES for found in imports_of(module)]
    assert [c for c in complaints if c] == []


def test_every_layer_is_there():
    stubs = {"typed"}
    assert {layer for layer in LAYERS if layer not in MODULES} == stubs


def test_no_vendor_package_is_imported_with_a_module():
    early = {(module, found.module) for module in MODULES for found in imports_of(module) if found.at_import}
    assert [each for each in early if each[1].partition(".")[0] in VENDORS] == []


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("errors", "import numpy"),
        ("ir.nodes", "from quadpy.lang import values"),
        ("lang.values", "import llvmlite.binding"),
        ("lang.values", "def f():\n    from quadpy.runtime.memory.host_memory import Buffer"),
        ("codegen.link", "from quadpy.runtime import memory"),
        ("runtime.memory", "from quadpy.ir.nodes import Node"),
        ("runtime.memory", "import llvmlite"),
        ("ir.nodes", "import quadpy"),
        ("ir.nodes", "import typing_extensions"),
    ],
)
def test_the_check_sees_a_breach(module, statement):
    (found,) = imports(ast.parse(statement))
    assert complaint(module, found)


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of ``graph`` that have more than one module (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for target in graph[module]:
            if target not in number:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], number[target])
        if low[module] == number[module]:
            at = stack.index(module)
            component = set(stack[at:])
            del stack[at:]
            if len(component) > 1:
                found.append(component)

    for module in graph:
        if module not in number:
            visit(module)
    return found


def import_graph() -> dict[str, set[str]]:
    """Which module imports which, at any time: also inside functions, and for type checkers only."""
    names = {module: {found.module.partition(".")[2] for found in imports_of(module)} for module in MODULES}
    return {module: (found & MODULES.keys()) - {module, ""} for module, found in names.items()}


def test_no_modules_import_each_other():
    assert [sorted(found) for found in circles(import_graph())] == []


NAMED = {"lang.fingerprints", "lang.python_calls"}
"""Modules whose strings name modules and import none."""
CIRCLES = [2, 2, 2, 2, 4, 6, 13]
"""The sizes of the circles of modules that import each other late, by name.  Make none larger, and lower these."""
CIRCLES_OF_FOLDERS = [3, 5, 5, 5, 11, 11]
"""The same for folders, whether they import each other by name or not."""


def strings(node: ast.AST) -> Iterator[str]:
    """Every text in ``node``, except names of loggers and threads."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.keyword) and node.arg == "name":
        return
    elif not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("getLogger")):
        for child in ast.iter_child_nodes(node):
            yield from strings(child)


def late_graph() -> dict[str, set[str]]:
    """``import_graph``, and the modules that are imported when something is first used: their names stand in strings."""
    graph = import_graph()
    for module in graph.keys() - NAMED - {""}:
        named = strings(ast.parse(MODULES[module].read_text(encoding="utf-8")))
        found = {text.removeprefix("quadpy.") for text in named if text.startswith("quadpy.")}
        graph[module] = graph[module] | (found & MODULES.keys()) - {module, ""}
    return graph


def folders(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Which folder imports which; modules at the top level are folders of their own."""

    def folder(module: str) -> str:
        return module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0] or module

    found: dict[str, set[str]] = {folder(module): set() for module in graph if module}
    for module in graph.keys() - {""}:
        found[folder(module)] |= {folder(target) for target in graph[module]} - {folder(module)}
    return found


def test_circles_through_strings_only_shrink():
    assert sorted(len(found) for found in circles(late_graph())) == CIRCLES


def test_circles_of_folders_only_shrink():
    assert sorted(len(found) for found in circles(folders(late_graph()))) == CIRCLES_OF_FOLDERS


def test_names_in_strings_are_seen():
    source = 'def f():\n    log = logging.getLogger("quadpy.graph")\n    return import_late("quadpy.jit.kernel")'
    assert list(strings(ast.parse(source))) == ["quadpy.jit.kernel"]
    assert "jit.host_calls" in late_graph()["jit.decorators"]
    assert "jit.host_calls" not in import_graph()["jit.decorators"]


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
    assert circles(graph) == [{"a", "b", "c"}]
    assert circles({"a": {"b"}, "b": set()}) == []


def loaded_by(statement: str) -> set[str]:
    """The top-level packages that ``statement`` loads in a fresh interpreter."""
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(child.stdout.split())


MOST_MODULES = 123
"""Of quadpy, that `import quadpy` loads."""
MOST_DATACLASSES = 10
"""That `import quadpy` makes: each takes as long as a module or two, since its methods are compiled then."""
LATE = {
    "quadpy.core.artifact", "quadpy.codegen", "quadpy.core.conflicts", "quadpy.dist", "quadpy.core.faults", "quadpy.graph.building",
    "quadpy.graph.engines", "quadpy.hazards", "quadpy.interpreter", "quadpy.ir", "quadpy.jit.dispatcher", "quadpy.jit.specialisation",
    "quadpy.core.output", "quadpy.profiler", "quadpy.reference_options", "quadpy.runtime.device.device", "quadpy.runtime.drivers.cpu",
    "quadpy.runtime.drivers.cuda_api", "quadpy.runtime.drivers.graph_driver", "quadpy.runtime.drivers.hip_api",
    "quadpy.runtime.launch.observing", "quadpy.runtime.memory.device_memory", "quadpy.runtime.printing", "quadpy.settings",
    "quadpy.core.target", "quadpy.tools", "quadpy.view",
    "difflib", "hashlib", "importlib.metadata", "json", "logging", "numpy.typing", "inspect", "pathlib", "subprocess",
}  # fmt: skip
"""What most programs, or their first lines, do without."""


COUNTING = """
import dataclasses, sys, numpy
before, make, made = {*sys.modules}, dataclasses._process_class, []
dataclasses._process_class = lambda cls, *rest: made.append(cls) or make(cls, *rest)
import quadpy
print(len(made), *{*sys.modules} - before)
"""


def test_import_quadpy_loads_few_modules():
    """Its time follows from this, and is not measured: machines differ, and are busy."""
    child = subprocess.run([sys.executable, "-c", COUNTING], capture_output=True, text=True, check=True)
    made, *loaded = child.stdout.split()
    assert sorted(name for name in loaded if name in LATE or name.startswith(tuple(f"{late}." for late in LATE))) == []
    assert len([name for name in loaded if name.startswith("quadpy")]) <= MOST_MODULES
    assert 0 < int(made) <= MOST_DATACLASSES


def test_import_quadpy_loads_neither_llvm_nor_a_vendor_package():
    loaded = loaded_by("import quadpy")
    assert "quadpy" in loaded
    assert not loaded & (VENDORS | {"llvmlite", "PIL"})


INIT_ON_A_CPU = """
import sys, quadpy as qp
qp.init(arch=qp.cpu)
print(*sys.modules)
"""


def test_init_on_a_cpu_loads_neither_the_interpreter_nor_what_runs_graphs():
    child = subprocess.run([sys.executable, "-c", INIT_ON_A_CPU], capture_output=True, text=True, check=True)
    loaded = child.stdout.split()
    late = ("quadpy.interpreter", "quadpy.jit.graph_plan", "quadpy.jit.fusion", "quadpy.graph.engines.calls")
    assert "quadpy.jit.specialisation" in loaded
    assert [name for name in loaded if name.startswith(late)] == []


def test_a_cache_hit_needs_no_llvm():
    assert "llvmlite" not in loaded_by("import quadpy.cache.cache")


NEWER = {
    "typing": {"Never", "NotRequired", "Required", "Self", "TypeVarTuple", "Unpack", "assert_never", "assert_type", "override"},
    "enum": {"StrEnum", "verify"},
    "tomllib": {"*"},
    "itertools": {"batched"},
}  # fmt: skip
"""What Python has since a version after 3.10, from which on quadpy runs."""


def test_no_module_imports_what_python_3_10_lacks():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:  # what stands under TYPE_CHECKING is for type checkers
            if isinstance(node, ast.ImportFrom):
                newer = NEWER.get(node.module or "", set())
                wrong += [f"{path.name}: {name.name}" for name in node.names if name.name in newer or "*" in newer]
    assert wrong == []
