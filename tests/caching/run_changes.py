"""Runs programs one after the other: ``python run_changes.py FOLDER MODE...``, a JSON line for each mode.

A mode ``first`` or ``second`` imports each program anew with that version of ``cfg`` and gives its result, and whether
its kernel was traced.  ``late`` changes ``cfg`` under a kernel that was called, and gives the results of a call before,
of one with overlapping arrays, whose code is compiled then, and of a call like the first.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import quadpy as qp
from quadpy.jit import compiler


def loaded(folder: Path, version: str) -> Any:
    """The program of ``folder`` with this version of ``cfg``, as a new process would import it."""
    for name in ("cfg", "program"):
        sys.modules.pop(name, None)
    paths = [str(folder), str(folder / version)]
    sys.path[:0] = paths
    try:
        importlib.invalidate_caches()
        return importlib.import_module("program")
    finally:
        del sys.path[: len(paths)]


def called(program: Any) -> float:
    o, p = np.zeros(1), np.zeros(1)
    result = program.run(o, p)
    return float(o[0] if result is None else result)


def changed_late(folder: Path) -> list[float]:
    program = loaded(folder, "first")
    before = called(program)
    text = (folder / "second" / "cfg.py").read_text()
    exec(compile(text, "cfg.py", "exec"), program.cfg.__dict__)
    for name in [name for name in vars(program) if name in vars(program.cfg)]:
        if not name.startswith("__"):
            setattr(program, name, getattr(program.cfg, name))
    overlapping = np.zeros(1)
    try:
        program.run(overlapping, overlapping)
    except qp.CodegenError:  # it says that it cannot be what it was
        overlapping[0] = before
    return [before, float(overlapping[0]), called(program)]


def main(folder: Path, modes: list[str]) -> None:
    traces: list[object] = []
    trace = compiler.trace_kernel
    compiler.trace_kernel = lambda *args, **options: (traces.append(args), trace(*args, **options))[1]
    qp.init(arch=qp.cpu, cpu_max_num_threads=1)
    for mode in modes:
        found: dict[str, Any] = {}
        for program in sorted(path for path in folder.iterdir() if path.is_dir()):
            traces.clear()
            try:
                if mode == "late":
                    found[program.name] = changed_late(program) if (program / "late").exists() else None
                else:
                    found[program.name] = called(loaded(program, mode)), bool(traces)
            except Exception as error:  # noqa: BLE001 - the test shows it beside the program's name
                found[program.name] = f"{type(error).__name__}: {error}", None
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
