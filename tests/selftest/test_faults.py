"""Drivers with defects: the self-test finds each and names it, and quadpy works without what is broken."""

from __future__ import annotations

import pytest

from quadpy import settings as settings_module
from quadpy.runtime.device.known import known_in

GRAPHS = "graphs.captured", "graphs.explicit", "graphs.branches", "graphs.updates", "graphs.replay", "features.programs"


def bad(session):
    return {name for name, result in session.results.items() if result.bad}


def settled(run, is_right):
    """The first session of four that is right, or the last: another program of the machine may disturb the times of one."""
    for _ in range(4):
        session = run()
        if is_right(session):
            break
    return session


def test_a_device_without_defects_passes(on_simulated):
    session = on_simulated("none", "graphs", "memory", "streams.order", "streams.sections")
    assert (session.status, session.off, bad(session)) == (0, {}, set())
    assert session.results["graphs.fused"].status == session.results["memory.pool"].status == "passed"


@pytest.mark.parametrize(
    ("fault", "off", "first", "checks"),
    [
        ("graphs", "graphs", "graphs.captured", GRAPHS),
        ("pool", "pool", "memory.pool", ("memory", "graphs.explicit", "features.programs")),
        ("stale", "large-graphs", "graphs.large", ("graphs.large", "graphs.captured", "features.programs")),
        (
            "updates",
            "graph-updates",
            "graphs.updates",
            ("graphs.updates", "graphs.replay", "graphs.graph-kernels", "features.programs"),
        ),
        ("branches", "graph-branches", "graphs.branches", ("graphs.branches", "graphs.captured", "features.programs")),
        ("cooperative", "cooperative", "graphs.fused", ("graphs.fused", "graphs.loops", "features.programs")),
        ("flushing", "float-atomics", "blocks.atomics-of-floats", ("blocks.atomics-of-floats", "language.reductions")),
        ("refused-parts", "parts", "streams.parts", ("streams.parts", "streams.order")),
        ("lost-parts", "parts", "streams.parts", ("streams.parts", "streams.sections")),
        ("crash", "graphs", "graphs.captured", ("graphs.captured", "graphs.explicit", "features.programs")),
    ],
)
def test_a_defect_is_found_and_named_and_quadpy_does_without(on_simulated, fault, off, first, checks):
    session = on_simulated(fault, *checks)
    assert first in bad(session)
    assert set(session.off) == {off}
    assert session.off[off].startswith(first)
    assert session.status == 3
    assert all(result.mended for result in session.results.values() if result.bad)
    assert dict(known_in(session.run.device["world"]).off) == session.off or settings_module.settings().cache is False


def test_what_hangs_is_ended_and_the_rest_runs(on_simulated):
    session = on_simulated("hang", "graphs.captured", "graphs.explicit", "memory.copies", slow=0.1)
    assert session.results["graphs.captured"].status == "hung"
    assert session.results["graphs.explicit"] == (
        "graphs.explicit",
        "not run",
        "graphs.captured hung before",
        0.0,
        {},
        "",
        "passed",
    )
    assert session.results["memory.copies"].status == "passed"
    assert (set(session.off), session.status) == ({"graphs"}, 3)


def test_a_part_whose_work_never_completes_is_not_used_again(on_simulated):
    session = on_simulated("dead-parts", "streams.parts", "streams.order", slow=0.1)
    assert (session.results["streams.parts"].status, session.results["streams.parts"].without) == ("hung", "skipped")
    assert (set(session.off), session.status) == ({"parts"}, 3)


@pytest.mark.parametrize(("fault", "off"), [("slow-parts", set()), ("none", {"parts"})])
def test_fewer_units_must_take_longer(on_simulated, fault, off):
    """Kernels of a simulated GPU take the same time on any part: as on a driver that ignores masks."""
    session = settled(lambda: on_simulated(fault, "streams.parts", quick=False), lambda found: set(found.off) == off)
    assert set(session.off) == off, session.results
    assert not off or "on 152 of 304 units as on all: it runs on others, too" in session.off["parts"]


@pytest.mark.parametrize(("fault", "found"), [("waiting", {"streams.waits"}), ("none", set())])
def test_a_wait_for_one_stream_must_not_wait_for_another(on_simulated, fault, found):
    assert bad(on_simulated(fault, "streams.waits", quick=False)) == found


@pytest.mark.parametrize(
    ("fault", "check", "says"),
    [
        ("no-clock", "streams.times", "events say 0.0 ms"),
        ("no-faults", "features.debugging", "must fail with IndexError"),
    ],
)
def test_what_no_capability_stands_for_is_named(on_simulated, fault, check, says):
    session = on_simulated(fault, check)
    assert bad(session) == {check}
    assert says in session.results[check].text
    assert (session.off, session.status) == ({}, 1)


def test_streams_that_run_one_after_another_are_named(on_simulated):
    """As those of a simulated GPU do."""
    session = settled(lambda: on_simulated("none", "streams.overlap", quick=False), bad)
    assert bad(session) == {"streams.overlap"}
    assert "times as long as one kernel" in session.results["streams.overlap"].text
    assert (session.off, session.status) == ({}, 1)


def test_too_little_memory_is_named_and_switches_nothing_off(on_simulated):
    session = on_simulated("small", "memory", "graphs.captured", "features.programs")
    assert bad(session) == {"memory.room"}
    assert session.results["memory.room"].lacked_memory
    assert (session.off, session.status) == ({}, 1)


def test_wrong_results_of_the_language_are_found(on_simulated):
    """Subnormal numbers are the same everywhere else: only the atomics are wrong."""
    session = on_simulated("flushing", "language.floats", "blocks.shared-memory")
    assert (session.status, bad(session)) == (0, set())
