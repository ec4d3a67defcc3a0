"""Loops with shared memory and barriers as code for GPUs: what their metadata says and which instructions they use."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.compile import lower
from quadpy.codegen.objects.metadata import read_metadata
from quadpy.core.target import AMD_ARCHS, NVIDIA_ARCHS, amd_arch, nvidia_shared_bytes, parse_target
from quadpy.ir.effects import effects_of
from quadpy.jit.offline import compile_with_asm, trace_for

pytestmark = pytest.mark.cpu_only
A = qp.types.ndarray
block = qp.simt.block
TILE = 16


@qp.kernel
def matmul(a: A(dtype=qp.f32, ndim=2), b: A(dtype=qp.f32, ndim=2), c: A(dtype=qp.f32, ndim=2)):
    qp.loop_config(block_dim=TILE * TILE)
    for t in range(c.shape[0] * c.shape[1]):
        of_a = block.SharedArray((TILE, TILE), qp.f32)
        of_b = block.SharedArray((TILE, TILE), qp.f32)
        lane, group, across = t % (TILE * TILE), t // (TILE * TILE), c.shape[1] // TILE
        i, j = lane // TILE, lane % TILE
        row, column = group // across * TILE + i, group % across * TILE + j
        total = 0.0
        for step in range(a.shape[1] // TILE):
            of_a[i, j] = a[row, step * TILE + j]
            of_b[i, j] = b[step * TILE + i, column]
            block.sync()
            for k in range(TILE):
                total += of_a[i, k] * of_b[k, j]
            block.sync()
        c[row, column] = total


@qp.kernel
def count(keys: A(dtype=qp.u8, ndim=1), counts: A(dtype=qp.i32, ndim=1), workers: qp.i32):
    for t in range(workers):
        bins = block.SharedArray(256, qp.i32)
        bins[block.thread_idx()] = 0
        block.sync()
        for i in range(keys.shape[0] // workers):
            bins[keys[t + i * workers]] += 1
        block.sync()
        counts[block.thread_idx()] += bins[block.thread_idx()]


def code(kernel, target):
    """The code object, and the instructions of its kernel."""
    made = compile_with_asm(kernel, parse_target(target), {})
    return made, made.asm.split(".section")[0]


@pytest.mark.parametrize("target", AMD_ARCHS)
def test_amd_uses_its_local_memory(target):
    made, text = code(matmul, target)
    (info,) = read_metadata(made.image).kernels
    assert info.lds_bytes == 2 * TILE * TILE * 4
    assert info.max_block_size == 256
    assert info.hidden_args == ()
    assert info.scratch_bytes == info.vgpr_spills == 0
    assert re.search(r"\bds_(read|load)_b128\b", text), "four neighbours at once"
    assert re.search(r"\bds_(write|store)", text)
    assert len(re.findall(r"\bs_barrier(_signal)?\b", text)) == 2
    assert "flat_" not in text


@pytest.mark.parametrize("target", AMD_ARCHS)
def test_amd_counts_in_local_memory(target):
    _, text = code(count, target)
    assert len(re.findall(r"\bds_add_u32\b", text)) >= 1
    assert len(re.findall(r"\bglobal_atomic_add(_u32)?\b", text)) == 1
    assert "cmpswap" not in text


def test_nvidia_uses_shared_memory():
    made, text = code(matmul, "sm_90")
    assert len(re.findall(r"\.shared \.align 16 \.b8 [\w$]+\[1024\]", text)) == 2
    assert len(re.findall(r"\bbar(rier)?\.(cta\.)?sync", text)) == 2
    assert "ld.shared.v4" in text
    assert ".local" not in text
    _, text = code(count, "sm_90")
    assert re.search(r"\batom\.\S*shared\S*\.add\.u32|\bred\.\S*shared\S*\.add\.u32", text)
    assert made.tasks[0].has_barrier
    assert made.tasks[0].block_dim == 256


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_the_block_is_found_in_the_number_of_the_iteration(target):
    """``t % 256`` and ``t // 256`` cost no more than ``thread_idx()`` and ``block_idx()``."""

    @qp.kernel
    def asked(x: A(dtype=qp.i32, ndim=2)):
        for _ in range(x.shape[0] * 256):
            x[block.block_idx(), block.thread_idx()] = block.block_idx()

    @qp.kernel
    def derived(x: A(dtype=qp.i32, ndim=2)):
        for t in range(x.shape[0] * 256):
            block.sync()
            x[t // 256, t % 256] = t // 256

    def count_of(kernel):
        return len(re.findall(r"^\s+[sv]_\w+|^\s+global_\w+", code(kernel, target)[1], re.MULTILINE))

    assert count_of(derived) <= count_of(asked) + 2


@qp.kernel
def large(x: A(dtype=qp.f32, ndim=1)):
    for i in range(256):
        first = block.SharedArray(10_000, qp.f32)
        second = block.SharedArray(10_000, qp.f32)
        first[i] = x[i]
        second[i] = x[i]
        block.sync()
        x[i] = first[255 - i] + second[255 - i]


@pytest.mark.parametrize("target", ["sm_75", "sm_90", "gfx942", "gfx950", "gfx1100", "gfx1250"])
def test_too_much_shared_memory_is_refused(target):
    """LLVM would end the process."""
    spec = parse_target(target)
    limit = amd_arch(target).lds_bytes if spec.family == "amdgpu" else nvidia_shared_bytes(target)
    if limit >= 80_000:
        assert code(large, target)[0].image
        return
    with pytest.raises(qp.CodegenError, match=rf"80000 bytes.*{limit}") as caught:
        large.compile(target)
    assert caught.value.span.line == large.source.span.line + 4


def test_nvidia_is_asked_for_what_its_code_cannot_declare():
    made, text = code(large, "sm_90")
    (task,) = made.tasks
    assert task.shared_bytes == 80_000
    assert re.search(r"\.extern \.shared \.align 16 \.b8 \w+\[", made.image.decode())
    assert re.search(r"ld\.shared\S*\s+%\w+, \[%\w+\+1020\]", text)
    assert re.search(r"ld\.shared\S*\s+%\w+, \[%\w+\+41020\]", text), "the second array begins after the first"
    assert code(matmul, "sm_90")[0].tasks[0].shared_bytes == 0


@pytest.mark.parametrize("target", NVIDIA_ARCHS)
def test_nvidia_shared_memory_has_the_size_of_the_processor(target):
    most = nvidia_shared_bytes(target) // 4

    def kernel_with(size):
        @qp.kernel
        def fill(x: A(dtype=qp.f32, ndim=1)):
            for i in x:
                tile = block.SharedArray(size, qp.f32)
                tile[block.thread_idx()] = x[i]

        return fill

    assert kernel_with(most).compile(target).tasks[0].shared_bytes == most * 4
    with pytest.raises(qp.CodegenError, match=f"{most * 4 + 16} bytes up to this one; nvptx has {most * 4} per block"):
        kernel_with(most + 1).compile(target)


def test_a_thread_of_a_block_has_one_iteration():
    """Loops without blocks may have several to a thread."""

    @qp.kernel
    def copy(x: A(dtype=qp.i32, ndim=1), y: A(dtype=qp.i32, ndim=1)):
        for i in range(x.shape[0]):
            y[i] = x[i] + block.thread_idx()

    (task,) = copy.compile("sm_90").tasks
    assert (task.coarsened, task.grid_stride) == (None, False)


def test_shared_arrays_are_no_effects():
    (task,) = trace_for(matmul, {}).kernel.tasks
    assert [name for name, _ in effects_of(task)] == ["a", "b", "c"]


def test_code_is_the_same_each_time():
    script = """if True:
        import sys
        sys.path[:0] = [sys.argv[1]]
        import test_blocks as t
        kernel = t.trace_for(t.matmul, {}).kernel
        print(*(t.lower(kernel, t.parse_target(target)) for target in ("cpu", "gfx942")))
    """
    kernel = trace_for(matmul, {}).kernel
    found = {
        subprocess.run(
            [sys.executable, "-c", script, str(Path(__file__).parent)], env={**os.environ, "PYTHONHASHSEED": seed},
            check=True, capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert found == {f"{lower(kernel, parse_target('cpu'))} {lower(kernel, parse_target('gfx942'))}\n"}


def test_64_bit_loops_meet_between_blocks():
    @qp.kernel
    def far(x: A(dtype=qp.i32, ndim=1), n: qp.i64):
        for i in range(n):
            held = block.SharedArray(256, qp.i32)
            held[block.thread_idx()] = x[i]
            block.sync()
            x[i] = held[255 - block.thread_idx()]

    made, text = code(far, "gfx1100")
    assert made.tasks[0].grid_stride
    assert len(re.findall(r"\bs_barrier\b", text)) == 2
    x = np.arange(512, dtype=np.int32)
    far(x, 512)
    assert (x == np.arange(512).reshape(2, 256)[:, ::-1].ravel()).all()
