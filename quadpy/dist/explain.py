"""What a call with distributed arrays does on this rank, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from quadpy.core.public import public
from quadpy.dist.arrays import DistributedArray
from quadpy.dist.boxes import Box, Widths
from quadpy.dist.division import Division
from quadpy.dist.halo import messages_to
from quadpy.dist.localise import LocalTask
from quadpy.dist.plan import DistributedPlan
from quadpy.dist.program import GridProgram
from quadpy.dist.reach import Reaches
from quadpy.errors import ArgumentError
from quadpy.jit.kernel import Kernel
from quadpy.jit.plan import Plan, Values, Views
from quadpy.runtime.arrays.view import ArrayView


@public
def explain(kernel: Kernel, /, *args: object, **kwargs: object) -> None:
    """Print what a call of ``kernel`` with ``args`` and ``kwargs`` does on this rank, without running it.

    For each loop: the cells that it runs over, how far it reads each array beyond the rank's block, the bytes that come
    from other ranks where the halos are not current, and the part that runs meanwhile.

    Raises:
        ArgumentError: no argument is distributed, or the call itself would raise it.
        DistributedError: the kernel does something that ranks cannot do together; the error shows the line.
    """
    print("\n".join(kernel.planned(args, kwargs, _lines)))  # noqa: T201 - this is what it is for


def _lines(plan: Plan, values: Values, views: Views) -> list[str]:
    if not isinstance(plan, DistributedPlan):
        raise ArgumentError("no argument is distributed: the call runs only on this rank")
    program, arrays = plan.program(views), {**dict(zip(plan.arrays, views, strict=False)), **plan.named}
    grid = program.grid
    size = " x ".join(map(str, grid.ranks))
    lines = [f"{plan.kernel.name} on {size} ranks; rank {grid.world.rank} owns {_cells(grid.block)}"]
    for task, found in program.reaches(values):
        lines += _serial(task) if found is None else _loop(program, task, found, arrays)
    return lines


def _serial(task: LocalTask) -> list[str]:
    return [f"  line {task.span.line}: every rank does the same"]


def _loop(program: GridProgram, task: LocalTask, found: Reaches, arrays: Mapping[str, ArrayView]) -> Iterator[str]:
    yield f"  line {task.span.line}: " + (
        f"a loop over {_cells(found.here)}" if found.here.size else "a loop that other ranks run"
    )
    total = 0
    for name, reaches in found.reads.items():
        array = arrays[name]
        assert isinstance(array, DistributedArray)
        messages = messages_to(array.lattice, program.grid.world.rank, reaches)
        nbytes = sum(each.box.size for each in messages) * math.prod(array.element_shape) * array.dtype.nbytes
        total += nbytes
        sources = sorted({each.source for each in messages})
        label = getattr(array, "name", "") or name
        if any(any(map(any, reach)) for reach in reaches):
            yield f"    reads {label} up to {_distances(program.grid, reaches)} beyond the block"
            yield f"      halo: {nbytes} bytes, from {_ranks(sources)}"
            for axis, (n, split) in enumerate(zip(program.grid.shape, program.grid.is_split, strict=True)):
                if split and 2 * max(max(reach[axis]) for reach in reaches) >= n:
                    yield f"      far: half of axis {axis} or more, which an index near the loop's own would not need"
        else:
            yield f"    reads {label} in its own block"
    for name in sorted(found.writes):
        yield f"    writes {getattr(arrays[name], 'name', '') or name}"
    for each in task.reduced:
        yield f"    combines one {each.type} of each cell by {each.op.value}, over {math.prod(found.lattice.tiles)} tiles"
    if total and found.here.size:
        slabs = found.then
        share = round(100 * found.inner.size / found.here.size)
        yield f"    split: {_cells(found.inner)} ({share}%) while halos are exchanged, then {len(slabs)} slab{'s' * (len(slabs) != 1)}"


def _distances(grid: Division, reaches: tuple[Widths, ...]) -> str:
    parts = []
    for axis in range(grid.ndim):
        below, above = (max(reach[axis][side] for reach in reaches) for side in (0, 1))
        if below or above:
            parts.append(f"{below} below and {above} above along axis {axis}")
    return ", ".join(parts)


def _ranks(sources: list[int]) -> str:
    if not sources:
        return "no rank"
    return f"rank{'s' * (len(sources) > 1)} {', '.join(map(str, sources))}"


def _cells(box: Box) -> str:
    ranges = ", ".join(f"{a}:{b}" for a, b in zip(box.low, box.high, strict=True))
    return f"[{ranges}]"
