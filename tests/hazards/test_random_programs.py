"""Random programs of streams, events, memory and graphs: the checker finds what the simulated driver's search finds.

``pytest tests/hazards/test_random_programs.py --random-streams 10000`` tries more of them.
"""

from __future__ import annotations

import struct
import warnings
from random import Random

import numpy as np
import pytest
from simulated import AnyKernel, compiled, simulated
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp

from .corpus import kernels
from .corpus.foreign import view
from .corpus.memory import array_at
from .random_programs import Oracle, any_program, source_of


def execute(steps):
    names = {"np": np, "qp": qp, "view": view, "array_at": array_at, "streams": qp.create_stream().device.streams}
    names |= {name: value for name, value in vars(kernels).items() if isinstance(value, qp.Kernel)}
    exec(compile(source_of(steps), "<program>", "exec"), names)


def reports_of(steps):
    """The lines of the certain and of the possible reports."""
    with warnings.catch_warnings(), qp.hazards.check(collect=True) as found:
        warnings.simplefilter("ignore")
        execute(steps)
    return {lines_of(hazard) for hazard in found.certain}, {lines_of(hazard) for hazard in found.possible}


def lines_of(hazard):
    return tuple(int(access.location.rpartition(":")[2]) for access in (hazard.first, hazard.second))


def complaints(steps):
    """What the reports lack, and what they have too much."""
    oracle = Oracle().run(steps)
    certain, any_ = oracle.pairs()
    found, maybe = reports_of(steps)
    wrong = [f"certain, and wrong: {pair}" for pair in found - certain]
    wrong += [f"possible, and impossible: {pair}" for pair in maybe - any_]
    reported = found | maybe
    for partners, second in oracle.first_races():
        if not any((first, second) in reported for first in partners):
            wrong.append(f"missed: {sorted(partners)} and {second}")
    return wrong


def smallest(steps):
    """The program without all steps that the complaint does not need."""
    k = 0
    while k < len(steps):
        fewer = steps[:k] + steps[k + 1 :]
        if complaints(fewer):
            steps = fewer
        else:
            k += 1
    return steps


@pytest.mark.parametrize("block", range(10))
def test_reports_are_those_of_the_oracle(request, block):
    count = request.config.getoption("--random-streams")
    for seed in range(block * count // 10, (block + 1) * count // 10):
        steps = any_program(Random(seed))
        if complaints(steps):
            steps = smallest(steps)
            numbered = [f"{k:3} {line}" for k, line in enumerate(source_of(steps).splitlines(), 1)]
            pytest.fail("\n".join([f"seed {seed}", *numbered, *complaints(steps)]), pytrace=False)


def test_reports_on_a_gpu_are_those_of_the_oracle(request):
    """There, calls that are like the last one tell the checker in another way."""
    driver = RecordingDriver(history=False)
    driver.kernels = AnyKernel()
    with simulated(driver):
        for seed in range(request.config.getoption("--random-streams") // 4):
            steps = any_program(Random(seed))
            assert not complaints(steps), (seed, source_of(steps))


def test_the_programs_are_worth_their_time():
    """Half of them race, and a quarter does not; all that can happen happens."""
    racy, names = 0, set()
    for seed in range(200):
        steps = any_program(Random(seed))
        racy += bool(Oracle().run(steps).pairs()[1])
        names |= {name for name, _ in steps}
    assert 50 < racy < 150
    assert len(names) == 28


def elements(array, begin=0, end=None, step=1):
    pointer, extent = array
    return [(pointer + 4 * i, 4) for i in range(begin, extent if end is None else end, step)]


TOUCHES = {
    "ramp": lambda x: ((), elements(x)),
    "part": lambda x, begin, end: ((), elements(x, begin, end)),
    "copy_part": lambda x, begin, end, y: (elements(x, begin, end), elements(y, begin, end)),
    "every": lambda x, first, step: ((), elements(x, first, None, step)),
    "clip": lambda x: (elements(x), elements(x)),
    "count": lambda c: (elements(c, 0, 8), ()),  # the driver knows no updates that commute
    "largest": lambda c: (elements(c, 0, 8), ()),
    "clear": lambda c: ((), elements(c)),
}
"""What each kernel reads and writes."""


def driver_with_kernels():
    """A simulated device whose kernels touch what they touch, and compute nothing."""
    driver = RecordingDriver()
    for name, touched in TOUCHES.items():
        code = compiled(getattr(kernels, name), driver.info.arch)

        def touches(block, code=code, touched=touched):
            parts = {}
            for slot, value in zip(code.layout.values, struct.unpack_from(code.layout.format, block), strict=True):
                if not slot.param.startswith("$"):
                    parts.setdefault(slot.param, []).append(value)
            return touched(*(tuple(part) if len(part) > 1 else part[0] for part in parts.values()))

        driver.kernels |= {task.symbol: RecordedKernel(lambda block: None, touches) for task in code.tasks}
    return driver


def test_the_driver_leaves_nothing_unordered_that_the_oracle_orders():
    """The oracle asks for less order than the runtime makes; so it cannot miss what the driver itself would see."""
    driver, seen = driver_with_kernels(), 0
    with simulated(driver) as device:
        for seed in range(60):
            steps = any_program(Random(seed))
            execute(steps)
            device.synchronize()
            races = driver.races()
            driver.simulation.ops.clear()
            if races:
                seen += 1
                assert Oracle().run(steps).pairs()[1], (source_of(steps), races)
    assert seen > 10
