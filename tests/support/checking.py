"""Footprints against what a kernel touches when it runs."""

from __future__ import annotations

import itertools
import random

from recording import Endless, Recorder, Touched

from quadpy.codegen.abi import layout_of
from quadpy.codegen.launches import task_symbol
from quadpy.core.artifact import CodeObject, TaskInfo
from quadpy.ir import nodes as ir
from quadpy.jit.footprints import KernelFootprints, LaunchFootprint

__all__ = ["check_kernel", "footprints_for", "values_for"]


def footprints_for(kernel: ir.Kernel) -> KernelFootprints:
    """The footprints of ``kernel``, with one launch for each task."""
    tasks = tuple(TaskInfo(task_symbol(kernel, number), True) for number in range(len(kernel.tasks)))
    return KernelFootprints(CodeObject("cpu", b"", "", layout_of(kernel), tasks), kernel)


def values_for(kernel: ir.Kernel, numbers: dict[str, int], shapes: dict[str, tuple[int, ...]]) -> list[int]:
    """The values of the argument block."""
    parts = {"scalar": lambda v: numbers.get(v.param, 0), "extent": lambda v: shapes[v.param][v.axis]}
    return [parts.get(value.part, lambda _: 0)(value) for value in layout_of(kernel).values]


def check_kernel(kernel: ir.Kernel, choose: random.Random, launches: int = 6, runs: int = 4) -> tuple[int, int, int]:
    """Runs the tasks of ``kernel`` with numbers and data at random; how many boxes there were, exact and certain ones.

    Raises:
        AssertionError: something was touched outside of the boxes, or not touched that certainly should be.
    """
    found, boxes, exact, certain = footprints_for(kernel), 0, 0, 0
    for _ in range(launches):
        numbers = {
            p.name: choose.choice([0, 1, 2, 3, 4, 5, 7, -1]) for p in kernel.params if isinstance(p, ir.ScalarParam)
        }
        shapes = {p.name: p.type.shape or tuple(choose.randrange(7) for _ in range(p.type.ndim))
                  for p in kernel.params if isinstance(p, ir.ArrayParam)}  # fmt: skip
        values = values_for(kernel, numbers, shapes)
        for task, each in zip(kernel.tasks, found.at(values), strict=True):
            boxes, exact = boxes + len(each), exact + sum(touch.box.exact for touch in each)
            certain += sum(touch.box.exact and touch.box.always for touch in each)
            for _ in range(runs):
                try:
                    run = Recorder(numbers, shapes, random.Random(choose.random()))
                    run.run(task)
                except Endless:
                    continue
                _check(each, run, shapes, f"{numbers} {shapes}")
    return boxes, exact, certain


def _check(touches: tuple[LaunchFootprint, ...], run: Recorder, shapes: dict[str, tuple[int, ...]], about: str) -> None:
    for one in run.touched:
        if one.array in shapes:
            assert any(_holds(touch, one) for touch in touches), f"{one} is in no box of {touches} with {about}"
    for touch in touches:
        inside = {one for one in run.touched if _holds(touch, one)}
        if touch.box.always:
            missed = {
                (touch.footprint.array, touch.footprint.access, part) for part in touch.footprint.components or ()
            }
            assert inside or missed & run.missed, f"{touch} touched nothing with {about}"
        if touch.box.exact and touch.box.always:
            assert touch.box.axes is not None
            elements = {one.index for one in inside}
            missing = [index for index in itertools.product(*touch.box.axes) if index not in elements]
            assert not missing, f"{touch} did not touch {missing[:3]} with {about}"


def _holds(touch: LaunchFootprint, one: Touched) -> bool:
    footprint, box = touch
    if (footprint.array, footprint.access) != (one.array, one.access) or one.component not in (
        footprint.components or ()
    ):
        return False
    return box.axes is None or all(i in axis for i, axis in zip(one.index, box.axes, strict=True))
