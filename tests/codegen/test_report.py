"""Reports: instruction classes, and the two forms that a report takes."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from quadpy.codegen.emit import compile_amdgpu
from quadpy.codegen.report import INSTRUCTION_CLASSES, classify, format_reports, instruction_mix, report_tasks
from quadpy.core.target import TargetSpec, parse_target

ModuleText = Callable[[str, TargetSpec], str]


@pytest.mark.parametrize(
    ("mnemonic", "expected"),
    [
        ("v_fma_f32", "valu"),
        ("v_mfma_f32_16x16x16_f16", "valu"),
        ("s_add_u32", "salu"),
        ("s_and_saveexec_b64", "salu"),
        ("s_setreg_imm32_b32", "salu"),
        ("s_getpc_b64", "salu"),
        ("s_load_dwordx4", "smem"),
        ("s_buffer_load_b32", "smem"),
        ("global_load_dwordx4", "vmem load"),
        ("buffer_load_ubyte", "vmem load"),
        ("scratch_load_b32", "vmem load"),
        ("global_store_b128", "vmem store"),
        ("scratch_store_dword", "vmem store"),
        ("flat_load_dword", "flat"),
        ("flat_store_b32", "flat"),
        ("global_atomic_add_f32", "atomics"),
        ("flat_atomic_cmpswap_b32", "atomics"),
        ("buffer_atomic_add", "atomics"),
        ("ds_read_b128", "lds"),
        ("ds_add_u32", "lds"),
        ("s_cbranch_execz", "branch"),
        ("s_branch", "branch"),
        ("s_swappc_b64", "branch"),
        ("s_swap_pc_i64", "branch"),
        ("s_waitcnt", "wait"),
        ("s_wait_loadcnt", "wait"),
        ("s_delay_alu", "wait"),
        ("s_nop", "wait"),
        ("s_barrier", "other"),
        ("s_endpgm", "other"),
        ("s_clause", "other"),
        ("buffer_gl0_inv", "other"),
        ("global_inv", "other"),
        ("no_such_thing", "other"),
    ],
)
def test_classes(mnemonic: str, expected: str) -> None:
    assert classify(mnemonic) == expected
    assert expected in INSTRUCTION_CLASSES


def test_counts_one_function_and_no_directives() -> None:
    assembly = """\
helper:
\tv_mov_b32_e32 v0, 0
\ts_setpc_b64 s[30:31]
.Lfunc_end0:
"a b<1>":
; %bb.0:
\ts_load_dwordx2 s[0:1], s[4:5], 0x0
\t; a comment
.LBB1_1:
\tv_add_u32_e32 v0, 1, v0 ; a comment
\ts_cbranch_scc1 .LBB1_1
\ts_endpgm
\t.section\t.rodata,"a",@progbits
\t.amdhsa_kernel "a b<1>"
\t\t.amdhsa_group_segment_fixed_size 0
.Lfunc_end1:
\ts_nop 0
"""
    mix = instruction_mix(assembly, "a b<1>")
    assert {name: count for name, count in mix.items() if count} == {"valu": 1, "smem": 1, "branch": 1, "other": 1}
    assert sum(instruction_mix(assembly, "helper").values()) == 2
    assert sum(instruction_mix(assembly, "LBB1_1").values()) == 0


def test_saxpy_everywhere(amd: TargetSpec, module_text: ModuleText) -> None:
    image, assembly = compile_amdgpu(module_text("saxpy.ll", amd), amd, want_asm=True)
    (report,) = report_tasks(image, assembly, amd)
    mix = report.instructions
    assert (mix["vmem load"], mix["vmem store"], mix["flat"], mix["atomics"], mix["lds"]) == (2, 1, 0, 0, 0)
    assert mix["valu"] >= 3
    assert mix["smem"] >= 1
    assert mix["branch"] == 1
    assert report.instruction_count == sum(mix.values()) <= 40
    assert (report.task, report.target, report.block_dim) == ("saxpy", str(amd), 256)
    assert (report.kernarg_bytes, report.hidden_args, report.scratch_bytes) == (24, (), 0)
    assert report.occupancy.limited_by == "wave slots"


def test_the_two_forms(module_text: ModuleText) -> None:
    spec = parse_target("gfx942")
    image, assembly = compile_amdgpu(module_text("everything.ll", spec), spec, want_asm=True)
    reports = report_tasks(image, assembly, spec, 1024)
    data = [json.loads(json.dumps(report.to_dict())) for report in reports]
    assert [row["task"] for row in data] == ["tables", "exchange", "count", "a.b$c-d<1>"]
    assert all(row["block_dim"] == 1024 for row in data)
    exchange = data[1]
    assert exchange["lds_bytes"] == 1024
    assert exchange["occupancy"] == {"waves_per_simd": 8, "max_waves": 8, "blocks": 2, "limited_by": "wave slots"}
    assert exchange["instructions"]["lds"] == 2
    assert exchange["instructions"]["total"] == sum(exchange["instructions"][name] for name in INSTRUCTION_CLASSES)

    resources, instructions = (table.splitlines() for table in format_reports(reports).split("\n\n"))
    assert len(resources) == len(instructions) == 1 + len(reports)
    assert resources[0].split()[:5] == ["task", "target", "block", "wave", "VGPR"]
    assert resources[2].split()[:4] == ["exchange", "gfx942", "1024", "64"]
    assert resources[2].endswith("8 of 8  wave slots")
    for lines in (resources, instructions):
        column = lines[0].index("target")
        assert all(line[column:].startswith("gfx942") for line in lines[1:]), "columns are aligned"
