"""Of how many arrays of how many tasks the host knows more than that some of them is touched.

``python tests/support/reach.py`` prints the figure for the kernels of the examples and of tests/language, and where no box
was found.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import quadpy as qp
from quadpy.errors import QuadpyError
from quadpy.ir import nodes as ir
from quadpy.ir.footprints import Footprint, footprints_of
from quadpy.ir.footprints.model import Indices
from quadpy.jit.kernel import Kernel
from quadpy.jit.offline import trace_for

__all__ = ["Reach", "kernels_of", "kernels_of_examples", "kernels_of_tests", "reach_of"]

_TESTS = Path(__file__).parents[1] / "language"


class Reach(NamedTuple):
    """How many pairs of a task and an array there are, how many have a box, and where the others are."""

    pairs: int
    known: int
    unknown: tuple[str, ...]

    @property
    def share(self) -> float:
        return self.known / self.pairs


def reach_of(kernels: Iterable[ir.Kernel]) -> Reach:
    """The reach of footprints over the tasks of ``kernels``."""
    pairs, unknown = 0, []
    for kernel in kernels:
        for task in kernel.tasks:
            found: dict[str, list[Footprint]] = {}
            for each in footprints_of(task):
                found.setdefault(each.array, []).append(each)
            pairs += len(found)
            for array, footprints in found.items():
                if not all(map(_is_known, footprints)):
                    unknown.append(f"{kernel.name}: {array} in {task.name}, {footprints[0].location}")
    return Reach(pairs, pairs - len(unknown), tuple(unknown))


def _is_known(footprint: Footprint) -> bool:
    """Whether the box leaves out any element: an axis whose index comes from memory is whole, others may be known."""
    axes = footprint.box.axes if footprint.box is not None else None
    return axes is not None and not (axes and all(map(_is_wide, axes)))


def _is_wide(axis: Indices) -> bool:
    """Whether the bounds are no more than those of a type."""
    low, last = axis.low, axis.last
    return isinstance(low, int) and isinstance(last, int) and last - low >= (1 << 31) - 1


def kernels_of_examples() -> Iterator[ir.Kernel]:
    """The kernels of the examples, of those which are methods such as their class alone determines."""
    folder = Path(qp.__file__).parent / "examples"
    for file in sorted(folder.glob("*.py")):
        yield from kernels_of(vars(importlib.import_module(f"quadpy.examples.{file.stem}")))


def kernels_of_tests() -> Iterator[ir.Kernel]:
    """The kernels of the modules of tests/language."""
    sys.path.append(str(_TESTS))
    try:
        for file in sorted(_TESTS.glob("test_*.py")):
            yield from kernels_of(_names_in(file))
    finally:
        sys.path.remove(str(_TESTS))


def _names_in(file: Path) -> dict[str, object]:
    """What a test module has after its import, or before an import that needs pytest."""
    spec = importlib.util.spec_from_file_location(f"reach_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        with contextlib.suppress(ImportError), contextlib.redirect_stdout(io.StringIO()):
            spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return vars(module)


def kernels_of(names: dict[str, object]) -> Iterator[ir.Kernel]:
    """Those of the kernels among ``names`` that compile without a call."""
    for value in list(names.values()):
        if isinstance(value, Kernel):
            with contextlib.suppress(QuadpyError):
                yield trace_for(value, {}).kernel


if __name__ == "__main__":
    qp.init(arch=qp.cpu)
    for name, kernels in (("examples", kernels_of_examples()), ("tests", kernels_of_tests())):
        reach = reach_of(kernels)
        print(f"{name}: {reach.known} of {reach.pairs}, {reach.share:.1%}", *reach.unknown, sep="\n  ")
