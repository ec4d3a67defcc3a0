"""``quadpy report``: tables, JSON and budgets."""

from __future__ import annotations

import json

import pytest

from quadpy.cli import main
from quadpy.codegen.report import INSTRUCTION_CLASSES


def rows(text: str) -> list[dict[str, str]]:
    """The lines of a table by column; columns are two spaces apart."""
    header, *lines = ([cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines())
    return [dict(zip(header, line, strict=True)) for line in lines]


def test_a_line_per_task_and_target(sample, capsys):
    assert main(["report", f"{sample}:saxpy", "--target", "gfx942,gfx1100"]) == 0
    resources, instructions = map(rows, capsys.readouterr().out.split("\n\n"))
    assert [(r["task"], r["target"], r["wave"]) for r in resources] == [
        ("saxpy_t0", "gfx942", "64"),
        ("saxpy_t0", "gfx1100", "32"),
    ]
    for line in resources:
        assert 1 <= int(line["VGPR"]) <= 24
        assert (line["spills"], line["scratch"], line["LDS"]) == ("0", "0", "0")
    for line in instructions:
        # Four iterations of a strip, and one in the loop for the remainder.
        assert (line["vmem load"], line["vmem store"], line["atomics"]) == ("10", "5", "0")


def test_json_has_the_same_facts(sample, capsys):
    assert main(["report", f"{sample}:histogram", "--target", "gfx942", "--json"]) == 0
    reports = json.loads(capsys.readouterr().out)
    (loop,) = [report for report in reports if report["instructions"]["atomics"]]
    assert set(loop["instructions"]) == {"total", *INSTRUCTION_CLASSES}
    assert loop["target"] == "gfx942"
    assert loop["hidden_args"] == []
    assert loop["occupancy"]["waves_per_simd"] == loop["occupancy"]["max_waves"] == 8


@pytest.mark.parametrize(
    ("option", "bound", "complaint"),
    [
        ("--max-vgprs", 1, "VGPRs, --max-vgprs is 1"),
        ("--min-occupancy", 9, "has 8 waves per SIMD, --min-occupancy is 9"),
    ],
)
def test_a_broken_budget_is_status_3_and_named(option, bound, complaint, sample, capsys):
    assert main(["report", f"{sample}:saxpy", "--target", "gfx942", option, str(bound)]) == 3
    printed = capsys.readouterr()
    assert "saxpy_t0 on gfx942" in printed.err
    assert complaint in printed.err
    assert rows(printed.out.split("\n\n")[0])  # the report is printed all the same


def test_spills_and_scratch_have_budgets(tmp_path, capsys):
    """More live values than a thread of a block of 1024 has registers."""
    file = tmp_path / "wide.py"
    file.write_text(
        "import quadpy as qp\n\n\n@qp.kernel\ndef wide(x: qp.types.ndarray(dtype=qp.f32, ndim=1), j: qp.i32):\n"
        "    qp.loop_config(block_dim=1024)\n    for i in range(x.shape[0]):\n"
        + "".join(f"        v{n} = x[i + {n}]\n" for n in range(140))
        + "        x[j] = 1.0\n"  # no load may sink below this store
        + "".join(f"        x[i - {n}] = v{n}\n" for n in range(140))
    )
    assert main(["report", str(file), "--target", "gfx942", "--max-spills", "0", "--max-scratch", "0"]) == 3
    spills, scratch = capsys.readouterr().err.splitlines()
    assert "spilled registers, --max-spills is 0" in spills
    assert "bytes of scratch memory per thread, --max-scratch is 0" in scratch


def test_kept_budgets_are_status_0(sample, capsys):
    budgets = ["--max-vgprs", "64", "--max-spills", "0", "--max-scratch", "0", "--min-occupancy", "8"]
    assert main(["report", f"{sample}:saxpy", "--all-amd", *budgets]) == 0
    assert capsys.readouterr().err == ""


def test_the_cpu_has_no_report(sample, capsys):
    assert main(["report", f"{sample}:saxpy", "--target", "cpu"]) == 1
    assert "there is no report for cpu" in capsys.readouterr().err
