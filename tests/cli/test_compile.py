"""``quadpy compile``: the files, and a manifest that agrees with them."""

from __future__ import annotations

import json
import struct

from quadpy.cli import main
from quadpy.codegen.objects.metadata import read_metadata
from quadpy.runtime.cpu.loader import load_object


def compiled(out, *arguments):
    """The manifest that a run writes."""
    assert main(["compile", *arguments, "-o", str(out)]) == 0
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))["code_objects"]


def test_one_file_per_kernel_and_target(sample, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    objects = compiled(out, sample, "--target", "gfx942,gfx1100:w64,cpu", "--arg", "source=f32[2]", "--arg", "n=1")
    names = [
        f"{k}-{t}" for k in ("saxpy", "shift", "histogram") for t in ("gfx942.hsaco", "gfx1100-w64.hsaco", "cpu.o")
    ]
    assert [entry["file"] for entry in objects] == names
    assert sorted(file.name for file in out.iterdir()) == sorted([*names, "manifest.json"])
    printed = capsys.readouterr().out.splitlines()
    assert printed == [f"{out / name}  {(out / name).stat().st_size} bytes" for name in names]


def test_the_manifest_of_a_gpu_agrees_with_the_code_object(sample, tmp_path):
    (entry,) = compiled(tmp_path, f"{sample}:histogram", "--target", "gfx1100")
    info = read_metadata((tmp_path / entry["file"]).read_bytes())
    assert info.target == f"amdgcn-amd-amdhsa--{entry['target']}"
    assert entry["entry"] is None
    assert entry["scratch_slots"] > 0
    assert [task["symbol"] for task in entry["tasks"]] == [kernel.name for kernel in info.kernels]
    assert entry["results"]
    scratch, results = ((entry["argument_bytes"] + after, 8) for after in (0, 8))
    for task, kernel in zip(entry["tasks"], info.kernels, strict=True):
        laid_out = [(argument["offset"], argument["bytes"]) for argument in entry["arguments"]]
        assert [(arg.offset, arg.size) for arg in kernel.args if not arg.hidden] == [*laid_out, scratch, results]
        resources = entry["resources"][task["symbol"]]
        assert (resources["vgprs"], resources["kernarg_bytes"]) == (kernel.vgprs, kernel.kernarg_bytes)
        assert task["block_dim"] == kernel.max_block_size


def test_the_manifest_of_the_cpu_names_its_entry(sample, tmp_path):
    (entry,) = compiled(tmp_path, f"{sample}:saxpy", "--target", "cpu")
    assert load_object((tmp_path / entry["file"]).read_bytes()).address(entry["entry"])
    assert entry["resources"] == {}
    assert entry["effects"] == {"x": "r", "y": "rw"}
    assert [(a["parameter"], a["part"], a["offset"], a["bytes"]) for a in entry["arguments"]] == [
        ("a", "scalar", 0, 4), ("x", "pointer", 8, 8), ("x", "extent", 16, 4), ("y", "pointer", 24, 8), ("y", "extent", 32, 4),
    ]  # fmt: skip
    formats = "".join(argument["format"] for argument in entry["arguments"])
    assert entry["argument_bytes"] == -(-struct.calcsize(formats) // 8) * 8


def test_effects_join_those_of_all_tasks(sample, tmp_path):
    (entry,) = compiled(tmp_path, f"{sample}:histogram", "--target", "gfx942")
    assert entry["effects"] == {"counts": "a", "keys": "r", "sums": "a", "weights": "r"}
    assert entry["results"] == ["i32"]


def test_the_manifest_has_the_order_of_a_graph_kernels_tasks(tmp_path):
    file = tmp_path / "looping.py"
    file.write_text(
        "import quadpy as qp\nprint('a line of the module')\n\n@qp.kernel(graph=True)\n"
        "def halve(x: qp.types.ndarray(dtype=qp.f32, ndim=1), go: qp.types.ndarray(dtype=qp.i32, ndim=1)):\n"
        "    while qp.graph.do_while(go):\n        for i in x:\n            x[i] *= 0.5\n        go[0] -= 1\n"
    )
    (entry,) = compiled(tmp_path / "out", f"{file}:halve", "--target", "gfx942")
    assert entry["flow"] == [{"loop": "go", "body": [0, 1]}]
    (entry,) = compiled(tmp_path / "out", f"{file}:halve", "--target", "cpu")
    assert entry["flow"]


def test_what_a_module_prints_is_no_output_of_the_command(tmp_path, capsys):
    file = tmp_path / "talking.py"
    file.write_text(
        "import quadpy as qp\nprint('a line of the module')\n\n@qp.kernel\n"
        "def one(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):\n    for i in x:\n        x[i] = 1.0\n"
    )
    assert main(["report", str(file), "--target", "gfx942", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)[0]["task"] == "one_t0"
    assert "a line of the module" in printed.err


def test_what_stays_open_is_asked_for(sample, tmp_path, capsys):
    assert main(["compile", f"{sample}:shift", "--target", "gfx942", "-o", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert "'source' needs an array type" in error
    assert "--arg 'source=f32[2]'" in error
    assert main(["compile", f"{sample}:shift", "--target", "gfx942", "--arg", "source=f32[2]"]) == 1
    assert "--arg n=3" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_a_message(sample, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["compile", f"{sample}:saxpy", "--target", "gfx942", "-o", str(tmp_path / "file")]) == 1
    assert "File exists" in capsys.readouterr().err


def test_an_unknown_cpu_is_a_message(sample, tmp_path, capsys):
    assert main(["compile", f"{sample}:saxpy", "--target", "cpu:no-such-cpu", "-o", str(tmp_path)]) == 1
    assert "no-such-cpu" in capsys.readouterr().err


def test_nvidia_targets_get_ptx(sample, tmp_path):
    assert main(["compile", f"{sample}:saxpy", "--target", "sm_90", "-o", str(tmp_path)]) == 0
    ptx = (tmp_path / "saxpy-sm_90.ptx").read_text()
    assert ".target sm_90" in ptx
    assert ".entry saxpy_t0" in ptx
