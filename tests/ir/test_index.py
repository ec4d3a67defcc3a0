"""The algebra of indices against all values that expressions at random take, with the widths of their types."""

from __future__ import annotations

import random

from index_oracle import Launch, RandomIndex, is_exact, value_of, value_of_term

from quadpy.core.dtypes import bounds_of, i32
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.footprints.accesses import Reached
from quadpy.ir.footprints.find import box_of
from quadpy.ir.footprints.loops import enter_loop
from quadpy.ir.footprints.model import BoxFormula
from quadpy.ir.index.reader import Known, Reader
from quadpy.ir.index.telling import tells
from quadpy.ir.races.accesses import Facts, Iteration
from quadpy.ir.races.terms import Atom, Terms
from quadpy.lang.trace_state import Ranges


def box(made: RandomIndex) -> BoxFormula | None:
    """The box of the index of ``made``."""
    reader, known = Reader(), Known()
    for loop in made.loops:
        enter_loop(reader, loop, known)
    if made.condition is not None:
        known = known.fork(reader.condition(made.condition, known))
    span = made.index.span
    place = ir.Element("x", (made.index,), 0, made.index.type, span=span)
    return box_of(Reached(place, ir.Access.READ, None, (reader.index(made.index, known),), known.guards, span))


def test_bounds_steps_and_certainty_hold_for_all_values_that_occur(pytestconfig):
    held = certain = narrow = 0
    for seed in range(20 * pytestconfig.getoption("--random-kernels")):
        made = RandomIndex(random.Random(seed))
        if (found := box(made)) is None:
            continue
        (axis,) = found.axes
        for _ in range(6):
            launch = made.launch()
            if (runs := made.runs(launch)) is None or not value_of(found.holds, launch):
                continue
            values = {int(run.value(made.index)) for run in runs}
            low, last, step, origin = (value_of(each, launch) for each in (axis.low, axis.last, axis.step, axis.origin))
            about = f"seed {seed}: {made} {launch} {sorted(values)[:9]} {found}"
            assert not values or value_of(found.present, launch), about
            assert all(low <= value <= last and (value - origin) % (step or 1) == 0 for value in values), about
            present, always, exact = (value_of(each, launch) for each in (found.present, found.always, found.exact))
            if present and always:
                assert values, about
                assert not exact or len(values) == len(range(*first_of(low, last, step or 1, origin))), about
                certain += exact
            held, narrow = held + 1, narrow + ((low, last) != bounds_of(made.index.type))
    assert held > 100
    assert certain > held // 40
    assert narrow > held // 2


def first_of(low: int, last: int, step: int, origin: int) -> tuple[int, int, int]:
    return origin - (origin - low) // step * step, last + 1, step


def test_known_ranges_contain_all_values_that_occur(pytestconfig):
    narrow = 0
    for seed in range(20 * pytestconfig.getoption("--random-kernels")):
        made, ranges = RandomIndex(random.Random(seed)), Ranges()
        for loop in made.loops:
            ranges.add_counter(loop)
        low, high = ranges.of(made.index)
        narrow += (low, high) != bounds_of(made.index.type)
        for launch in (made.launch() for _ in range(6)):
            for run in made.runs(launch) or ():
                assert low <= run.value(made.index) <= high, f"seed {seed}: {made} {launch} {run.variables}"
    assert narrow > 80


def test_terms_have_the_values_of_their_expressions(pytestconfig):
    tried = 0
    for seed in range(20 * pytestconfig.getoption("--random-kernels")):
        made, terms = RandomIndex(random.Random(seed)), Terms()
        at = {loop.var: terms.atom(Atom(loop.var.name), varies=True) for loop in made.loops}
        facts = Facts(None, frozenset(), True, frozenset(), frozenset(), frozenset())
        term = Iteration(terms, facts, at, every=True).term(made.index)
        for launch in (made.launch() for _ in range(6)):
            for run in made.runs(launch) or ():
                if is_exact(made.index, run):
                    tried += 1
                    value = value_of_term(term, terms, run)
                    assert value == run.value(made.index), f"seed {seed}: {made} {launch} {run.variables} {term}"
    assert tried > 1000


def numbers_of_cells(choose: random.Random, made: RandomIndex) -> list[ir.Expr]:
    """Indices as trees have them: parts of numbers that are made of parts; some wrap, some leave a part out."""

    found: list[ir.Expr] = [ir.VarRead(loop.var, span=loop.span) for loop in made.loops]
    for _ in range(choose.randrange(1, 4)):
        a, b = (choose.choice(found) for _ in range(2))
        n = choose.choice((2, 3, 4, 8))
        match choose.randrange(4):
            case 0:
                found.append(a * n + b)
            case 1:
                found.append(a * choose.choice((n, 1 << 29)))
            case _:
                found += [a // n, a % choose.choice((n, n, n, n + 1))]
    return choose.sample(found, min(len(found), choose.randrange(1, 4)))


def test_indices_that_tell_the_iteration_are_never_equal(pytestconfig):
    told = clashes = 0
    for seed in range(60 * pytestconfig.getoption("--random-kernels")):
        choose = random.Random(seed)
        made = RandomIndex(choose)
        made.loops, made.condition = [constant_loop(choose, name) for name in ("i", "j")[: choose.choice((1, 2))]], None
        reader, known = Reader(), Known()
        for loop in made.loops:
            enter_loop(reader, loop, known)
        indices = numbers_of_cells(choose, made)
        axes = [counter for loop in made.loops for counter in reader.lets[loop.var].counters]
        values = [tuple(run.value(e) for e in indices) for run in made.runs(Launch({}, ()))]
        is_told, apart = tells([reader.index(e, known) for e in indices], axes), len({*values}) == len(values)
        assert apart or not is_told, f"seed {seed}: {indices} {made.loops}"
        told, clashes = told + is_told, clashes + (not apart)
    assert min(told, clashes) > 200


def constant_loop(choose: random.Random, name: str) -> ir.For:
    span = Span("", 1)
    start, stop, step = choose.choice(((0, 8, 1), (0, 12, 1), (0, 16, 1), (3, 9, 1), (0, 15, 2), (7, -1, -1)))
    bounds = (ir.Const(n, i32, span=span) for n in (start, stop, step))
    return ir.For(ir.Var(name, i32), *bounds, ir.Block((), span=span), span=span)
