"""The modules of the other projects: what ``import taichi.lang.ops`` and ``from quadrants.types import vector`` give.

A package of ``quadpy.compat`` has the names of the other project's own package.  Programs also import from the modules
below it, of which ``_LAYOUT`` has the names: each gives what the package's table has for it or for a module that it
belongs to, else what the package has.  What is not there at all is a ``Missing``, which says so when it is used.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, ClassVar, Final, NoReturn

import quadpy
from quadpy.core.elsewhere import INSTEAD
from quadpy.core.messages import no_attribute
from quadpy.errors import QuadpyError

_LAYOUT: Final = {
    "": """
        _funcs _kernels _lib _logging _snode _tensor _tensor_wrapper algorithms examples experimental graph lang linalg
        math profiler simt tools types ui
    """,
    "_lib": "core utils",
    "_snode": "fields_builder snode_tree",
    "algorithms": "_algorithms _radix_sort _reduce _reduce_by_key _scan _select",
    "examples": "patterns",
    "graph": "_graph",
    "lang": """
        _exceptions _fast_caching _func_base _kernel_types _ndarray _ndrange _perf_dispatch _quadrants_callable
        _template_mapper _texture _wrap_inspect any_array argpack ast buffer_view checkpoint common_ops enums exception
        expr field func graph graph_parallel graph_status impl intrinsics kernel kernel_arguments kernel_impl matrix
        matrix_ops mesh misc ops runtime_ops shell simt snode source_builder stream struct util
    """,
    "lang._fast_caching": "args_hasher config_hasher function_hasher src_hasher",
    "lang.simt": "_tile block grid reductions sorting subgroup warp",
    "linalg": "matrixfree_cg sparse_cg sparse_matrix sparse_solver",
    "math": "_complex mathimpl",
    "profiler": "kernel_metrics kernel_profiler memory_profiler scoped_profiler",
    "simt": "block grid subgroup warp",
    "tools": "diagnose image np2ply video vtk",
    "types": "annotations buffer_view_type compound_types enums ndarray_type primitive_types quant texture_type utils",
    "ui": "camera canvas constants gui scene ui window",
}
"""Modules of Taichi and of Quadrants, by the module that they belong to; not those of which quadpy has nothing."""


class _Submodule(ModuleType):
    """A module of the other project, which looks each name up where quadpy has it."""

    _sources: tuple[object, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return list(self._names())
        if not name.startswith("__"):
            for source in self._sources:
                if (found := _member(source, name)) is not _ABSENT:
                    return found
        return found_in(self.__name__, name, dir(self))

    def _names(self) -> Iterator[str]:
        """What ``import *`` gives: the names of its own table and module; where it has no module, those of the one above."""
        for source in self._sources:
            found = source if isinstance(source, Mapping) else getattr(source, "__all__", None) or dir(source)
            yield from (name for name in found if not name.startswith("_"))
            if not isinstance(source, Mapping):
                return

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *(name for source in self._sources for name in dir(source))})


class Missing(ModuleType):
    """What a program imported and quadpy does not have: each use says so."""

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        package, _, name = _called(self.__name__)
        raise no_attribute(f"quadpy's {package}", name, (), INSTEAD | {name: INSTEAD.get(name.rpartition(".")[2], "")})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what the machinery of Python asks of any module
            raise AttributeError(name)
        self._refuse()

    __call__ = __getitem__ = __mro_entries__ = __instancecheck__ = __iter__ = __or__ = __ror__ = _refuse


_ABSENT: Final = object()


def _member(source: object, name: str) -> object:
    return source.get(name, _ABSENT) if isinstance(source, Mapping) else getattr(source, name, _ABSENT)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules below the packages that were offered, under each name that they have."""

    offered: ClassVar[dict[str, Mapping[str, object]]] = {}
    installed: ClassVar[dict[str, str]] = {}

    @classmethod
    def invalidate_caches(cls) -> None:
        """Nothing is kept; ``importlib.invalidate_caches`` calls it on the class."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in cls.installed and not any(_paths(fullname)):
            return None
        return importlib.util.spec_from_loader(fullname, cls(), is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        for package, path in _paths(spec.name):
            parent, _, name = path.rpartition(".")
            if name not in _LAYOUT.get(parent, "").split():
                return Missing(spec.name)
            made = _Submodule(spec.name)
            vars(made)["_sources"] = _sources(package, path)
            made.__builtins__ = vars(builtins)  # type: ignore[attr-defined]  # which each module has
            return made
        return None  # under another name, which exec_module replaces

    def exec_module(self, module: ModuleType) -> None:
        name, _, path = module.__name__.partition(".")
        if name in self.installed:
            sys.modules[module.__name__] = importlib.import_module(f"{self.installed[name]}.{path}")


def _paths(name: str) -> Iterator[tuple[str, str]]:
    """The offered package that the module ``name`` belongs to, with its path below it."""
    for package in _Finder.offered:
        if name.startswith(f"{package}."):
            yield package, name.removeprefix(f"{package}.")


def _sources(package: str, path: str) -> tuple[object, ...]:
    """Where names of the module at ``path`` are looked up, in order: in its own table and module, then as in the one above."""
    root, (parent, _, name) = sys.modules[package], path.rpartition(".")
    if isinstance(made := sys.modules.get(f"{package}.{path}"), _Submodule) and "_sources" in vars(made):
        return vars(made)["_sources"]  # type: ignore[no-any-return]  # as it was made
    above = _sources(package, parent) if parent else (root,)
    own = (_own(root, name) if source is root else _member(source, name) for source in above)
    modules = [each for each in own if isinstance(each, (ModuleType, SimpleNamespace))]
    return (_Finder.offered[package].get(path, {}), *modules, *above)


def _called(name: str) -> tuple[str, str, str]:
    """The parts of a module's name as programs write it: ``("taichi", ".", "lang.ops")``."""
    return name.removeprefix("quadpy.compat.").partition(".")


def offer(package: str, table: Mapping[str, object]) -> None:
    """Let modules below ``package``, which has all its names, be imported; ``table`` has names of theirs by their path."""
    if not _Finder.offered:
        sys.meta_path.append(_Finder)
    _Finder.offered[package] = table
    for name in set(_LAYOUT[""].split()) & vars(sys.modules[package]).keys():
        importlib.import_module(f"{package}.{name}")  # the package's own, with the modules that belong to it


def take_over(package: str, late: Mapping[str, str] = MappingProxyType({})) -> None:
    """Give ``package`` all names of quadpy that it does not have itself and that are loaded.

    ``found_in`` gives those that quadpy loads late, and those of ``late``, with the modules that they stand for.
    """
    own = vars(sys.modules[package])
    given = {name: vars(quadpy)[name] for name in quadpy.__all__ if name in vars(quadpy) and name not in late}
    own |= given | own | {"_late": late}


def _own(package: ModuleType, name: str) -> object:
    """What ``package`` itself has of the name."""
    if name in vars(package):
        return vars(package)[name]
    if name in vars(package)["_late"]:
        return importlib.import_module(vars(package)["_late"][name])
    return getattr(quadpy, name) if name in quadpy.__all__ else None


def found_in(module: str, name: str, known: Sequence[str]) -> Any:
    """The attribute ``name`` of a module that does not have it yet: a module below it, or what quadpy loads late.

    Raises:
        AttributeError: there is none.
    """
    package, _, path = _called(module)
    if name in _LAYOUT.get(path, "").split():
        return importlib.import_module(f"{module}.{name}")
    if not path and name in quadpy.__all__:
        return vars(sys.modules[module]).setdefault(name, getattr(quadpy, name))
    raise no_attribute(f"quadpy's {package}{'.' * bool(path)}{path}", name, known, INSTEAD)


def install(package: str, name: str) -> None:
    """Let ``import name`` give ``package``, in this process and from now on.

    Raises:
        QuadpyError: the other project itself is imported already.
    """
    made = sys.modules[package]
    if sys.modules.setdefault(name, made) is not made:
        raise QuadpyError(f"{name} itself is imported already", hint="call install() before the first import of it")
    _Finder.installed[name] = package


def run(package: ModuleType) -> None:
    """Run the program or, after ``-m``, the module that the command line names, with ``package`` installed."""
    what, as_module = sys.argv[1:], False
    if what[:1] == ["-m"]:
        what, as_module = what[1:], True
    if not what or what[0].startswith("-"):
        raise SystemExit(f"usage: python -m {package.__name__} program.py [arguments], or -m module [arguments]")
    package.install()
    sys.argv = what
    if as_module:
        sys.path[0] = str(Path.cwd())
        runpy.run_module(what[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(what[0]).resolve().parent)
        runpy.run_path(what[0], run_name="__main__")
