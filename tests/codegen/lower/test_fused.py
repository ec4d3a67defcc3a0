"""All tasks of a kernel as one GPU kernel: where its blocks meet, what LLVM may know of its arrays, every target."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import quadpy as qp
from quadpy.codegen.compile import compile_kernel, lower
from quadpy.codegen.plans.fusion import NotFusable
from quadpy.codegen.plans.phases import Again, Meet, Phase, steps_of
from quadpy.codegen.schedule import Form
from quadpy.core.target import AMD_ARCHS, parse_target
from quadpy.jit.offline import trace_for

A = qp.types.ndarray
FLAG = qp.types.ndarray(qp.i32, 0)
TARGETS = [*(str(parse_target(f"{a.name}:w{w}")) for a in AMD_ARCHS.values() for w in a.wave_sizes), "sm_70", "sm_90"]


FUSED = Form(fused=True)


def ir_of(kernel, **changes):
    return replace(trace_for(kernel, {}).kernel, **changes)


def compiled(kernel, target, **options):
    return compile_kernel(ir_of(kernel), parse_target(target), FUSED, **options)


def steps(kernel, **changes):
    """The steps, briefly: tasks by number, chunks and merges marked, ``|`` for a meeting, loops in lists."""
    return _brief(steps_of(ir_of(kernel, **changes)))


def _brief(found):
    marks = {"all": "", "chunks": "c", "merge": "m"}
    brief = []
    for step in found:
        match step:
            case Phase(task=task, part=part):
                brief.append(f"{task}{marks[part]}")
            case Meet():
                brief.append("|")
            case Again(condition=condition, body=body):
                brief.append([condition, *_brief(body), "|"])
    return brief


# ---------------------------------------------------------- where blocks meet


@qp.kernel(graph=True)
def chain(x: A(qp.f32, 1), y: A(qp.f32, 1)):
    for i in x:
        x[i] = x[i] + 1.0
    for i in y:
        y[i] = x[i] * 2.0
    for i in x:
        x[i] = y[i] - 1.0


def test_blocks_meet_between_tasks_that_depend_on_each_other():
    assert steps(chain) == ["0", "|", "1", "|", "2"]


@qp.kernel(graph=True)
def apart(x: A(qp.f32, 1), y: A(qp.f32, 1), z: A(qp.f32, 1)):
    for i in x:
        x[i] = z[i] + 1.0
    for i in y:
        y[i] = z[i] * 2.0
    for i in y:
        y[i] = y[i] + x[i]


def test_and_not_between_others():
    """Two tasks may read the same array, and write arrays that are not each other's."""
    assert steps(apart) == ["0", "1", "|", "2"]


def test_of_arrays_that_may_overlap_any_two_are_one():
    assert steps(apart, noalias=False) == ["0", "|", "1", "|", "2"]


@qp.kernel(graph=True)
def writes_after_reads(x: A(qp.f32, 1), y: A(qp.f32, 1)):
    for i in x:
        y[i] = x[i]
    for i in x:
        x[i] = 0.0


def test_a_write_waits_for_reads():
    assert steps(writes_after_reads) == ["0", "|", "1"]


@qp.kernel(graph=True)
def dot(x: A(qp.f32, 1), out: A(qp.f32, 1)):
    total = 0.0
    for i in x:
        total += x[i] * x[i]
    out[0] = total
    out[1] = total * 2.0
    for i in x:
        x[i] = x[i] / out[0]


def test_serial_tasks_and_merges_are_one_threads_own():
    """The thread that merged stores the total as well: nobody else needs to know before the last loop."""
    assert steps(dot) == ["0", "1c", "|", "1m", "2", "|", "3"]


@qp.kernel(graph=True)
def loops(x: A(qp.f32, 1), y: A(qp.f32, 1), go: FLAG):
    for i in x:
        x[i] = 1.0
    while qp.graph.do_while(go):
        for i in x:
            y[i] = x[i]
        for i in x:
            x[i] = y[i] + 1.0
        go[None] = go[None] - 1


def test_a_loop_ends_with_a_meeting_and_asks_behind_it():
    """What the loop needs of tasks before it is waited for once, in front of it."""
    assert steps(loops) == ["0", "|", ["go", "1", "|", "2", "3", "|"]]


@qp.kernel(graph=True)
def begins_with_the_condition(x: A(qp.f32, 1), go: FLAG):
    while qp.graph.do_while(go):
        go[None] = go[None] - 1
        for i in x:
            x[i] = x[i] + 1.0


def test_the_condition_may_change_at_once():
    """The first thread asks, and the others take its answer, which the next iteration puts into another place."""
    assert steps(begins_with_the_condition) == [["go", "0", "1", "|"]]


@qp.kernel(graph=True)
def set_by_all(go: A(qp.i32, 1)):
    while qp.graph.do_while(go):
        for i in go:
            go[i] = 0


def test_the_first_thread_asks_for_what_others_wrote_behind_a_meeting():
    assert steps(set_by_all) == [["go", "0", "|", "|"]]


@qp.kernel(graph=True)
def nested(x: A(qp.f32, 1), outer: FLAG, inner: FLAG):
    while qp.graph.do_while(outer):
        inner[None] = outer[None]
        while qp.graph.do_while(inner):
            for i in x:
                x[i] = x[i] + 1.0
            inner[None] = inner[None] - 1
        outer[None] = outer[None] - 1


def test_nested_loops():
    assert steps(nested) == [["outer", "0", ["inner", "1", "2", "|"], "3", "|"]]


@qp.kernel(graph=True)
def forked(x: A(qp.f32, 1), y: A(qp.f32, 1), out: A(qp.f32, 1)):
    with qp.graph.parallel_context():
        with qp.graph.parallel():
            for i in x:
                x[i] = x[i] + 1.0
            for i in x:
                x[i] = x[i] * x[0]
        with qp.graph.parallel():
            for i in y:
                y[i] = y[i] + 1.0
            for i in y:
                y[i] = y[i] * y[0]
    for i in out:
        out[i] = x[i] + y[i]


def test_branches_stand_side_by_side():
    assert steps(forked) == ["0", "2", "|", "1", "3", "|", "4"]


# --------------------------------------------------------------- what is made


@qp.kernel(graph=True)
def everything(x: A(qp.f32, 2), y: A(qp.f32, 2), bins: A(qp.i32, 1), most: A(qp.f32, 0), n: FLAG, go: FLAG):
    while qp.graph.do_while(go):
        n[None] = 0
        for i, j in x:
            y[i, j] = x[i, j] * 0.5
            n[None] += 1
            qp.atomic_max(most[None], x[i, j])
        for i, _j in x:
            bins[i % 8] += 1
        for k in range(n[None]):
            bins[k % 8] += 1
        for i, j in x:
            x[i, j] = y[i, j]
        go[None] = go[None] - 1


@pytest.mark.parametrize("target", TARGETS)
def test_every_target(target):
    code = compiled(everything, target)
    (launch,) = code.tasks
    assert launch.cooperative
    assert launch.grid_stride
    assert launch.block_dim == 256
    assert dict(launch.effects)["go"] == "rw"
    assert code.flow == ()
    assert launch.extent is not None


@qp.kernel(graph=True)
def any_condition(x: A(qp.f32, 1), go: A(ndim=0)):
    while qp.graph.do_while(go):
        for i in x:
            x[i] += 1.0
        go[None] = go[None] - 1


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_conditions_of_every_integer_type(target, dtype):
    kernel = trace_for(any_condition, {"go": A(getattr(qp, dtype), 0)}).kernel
    assert compile_kernel(kernel, parse_target(target), FUSED).tasks[0].cooperative


def module(kernel, target="sm_90"):
    return lower(ir_of(kernel), parse_target(target), FUSED)


def test_llvm_is_promised_nothing_of_arrays_that_are_written():
    """It would move loads across a meeting; what no task writes it may take as it likes."""
    head = next(line for line in module(apart).splitlines() if line.startswith("define"))
    promised = re.findall(r"noalias[^%]*%p\.(\w+)", head)
    assert promised == ["z"]


def test_no_cached_loads_of_what_changes():
    """PTX's ``nc`` loads may answer with what was there when the launch began."""
    text = compiled(apart, "sm_90").image.decode()
    loads = re.findall(r"ld\.global\.nc\S*\s+%\w+, \[%rd(\d+)", text)
    assert len(loads) > 0
    for kernel in (chain, loops, dot):
        assert ".nc" not in compiled(kernel, "sm_90").image.decode(), kernel


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"])
def test_no_scalar_loads_of_what_changes_in_a_loop(target):
    """The scalar cache does not see what other units write; arguments it may load."""
    code = compiled(sums_one_element, target, want_asm=True)
    loads = re.findall(r"s_(?:buffer_)?load_\w+ \S+ (s\[\d+:\d+\])", code.asm)
    arguments = {"s[4:5]", "s[0:1]", "s[2:3]", "s[6:7]", "s[8:9]"}
    assert set(loads) <= arguments, loads


@qp.kernel(graph=True)
def sums_one_element(x: A(qp.f32, 1), y: A(qp.f32, 1), go: FLAG):
    while qp.graph.do_while(go):
        for i in x:
            x[i] = y[0] + 1.0
        for i in y:
            y[i] = x[0] + 1.0
        go[None] = go[None] - 1


def test_a_meeting_is_one_arrival_a_block():
    text = module(chain)
    assert text.count("atomicrmw add") == 2
    assert text.count("load atomic i32") == 2
    assert text.count('fence syncscope("device") release') == text.count('fence syncscope("device") acquire') == 2


def test_on_amd_every_wave_waits_for_its_own_stores():
    text = module(chain, "gfx942")
    assert text.count('fence syncscope("agent") release') == text.count('fence syncscope("agent") acquire') == 4


def test_loops_whose_iterations_the_host_counts_count_in_32_bits():
    assert "phi i64" not in module(chain)
    assert "phi i64" in module(everything)


# ------------------------------------------------------------- what cannot be


@qp.kernel(graph=True)
def two_sizes(x: A(qp.i32, 1)):
    qp.loop_config(block_dim=64)
    for i in x:
        x[i] = qp.simt.block.thread_idx()
    qp.loop_config(block_dim=128)
    for i in x:
        x[i] += qp.simt.block.thread_idx()


def test_blocks_of_two_sizes():
    with pytest.raises(NotFusable, match="blocks of 64 and 128 threads"):
        compiled(two_sizes, "sm_90")


@qp.kernel(graph=True)
def one_size(x: A(qp.i32, 1), y: A(qp.i32, 1)):
    qp.loop_config(block_dim=64)
    for i in x:
        x[i] = qp.simt.block.thread_idx()
    for i in y:
        y[i] = 1


def test_blocks_are_as_large_as_a_task_needs_them():
    assert compiled(one_size, "gfx942").tasks[0].block_dim == 64


@qp.kernel(graph=True)
def much_shared_memory(x: A(qp.f32, 1)):
    for i in x:
        a = qp.simt.block.SharedArray((8000,), qp.f32)
        a[qp.simt.block.thread_idx()] = x[i]
    for i in x:
        b = qp.simt.block.SharedArray((8000,), qp.f32)
        b[qp.simt.block.thread_idx()] = x[i]


def test_shared_memory_of_all_tasks_together():
    with pytest.raises(NotFusable, match="64000 bytes of shared memory; 49152 are the most"):
        compiled(much_shared_memory, "sm_90")


@qp.kernel(graph=True)
def histograms(x: A(qp.i32, 1), a: A(qp.i32, 1), b: A(qp.i32, 1), c: A(qp.i32, 1)):
    for i in x:
        a[x[i] % 8] += 1
    for i in x:
        b[x[i] % 8] += 1
        c[x[i] % 8] += 1
    for i in x:
        a[x[i] % 8] += 1
        b[x[i] % 8] += 1


@qp.kernel(graph=True)
def many_histograms(
    x: A(qp.i32, 1), a: A(qp.i32, 1), b: A(qp.i32, 1), c: A(qp.i32, 1), d: A(qp.i32, 1), e: A(qp.i32, 1),
    f: A(qp.i32, 1), total: A(qp.f32, 1),
):  # fmt: skip
    for i in x:
        total[0] += qp.f32(x[i])
    for i in x:
        a[x[i] % 8] += 1
    for i in x:
        b[x[i] % 8] += 1
    for i in x:
        c[x[i] % 8] += 1
    for i in x:
        d[x[i] % 8] += 1
    for i in x:
        e[x[i] % 8] += 1
    for i in x:
        f[x[i] % 8] += 1


def test_histograms_have_copies_as_long_as_there_is_room():
    """A copy of another size is another one; where there is no room for all of them, atomics update the arrays."""
    assert set(re.findall(r"^@copy\.(\w)\.(\d+) ", module(histograms), re.MULTILINE)) == {
        ("a", "2048"), ("b", "1024"), ("c", "1024"), ("a", "1024"),
    }  # fmt: skip
    assert "@copy" not in module(many_histograms)
    assert "@copy" in module(many_histograms, "gfx942")


def test_a_cpu_has_nothing_to_fuse():
    with pytest.raises(NotFusable, match="CPU"):
        compiled(chain, "cpu")
